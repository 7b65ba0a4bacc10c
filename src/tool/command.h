// SPDX-License-Identifier: Apache-2.0
// The subcommands of jaxport. Each adds its options to the command line; run() does the work and
// returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tool/options.h"

namespace jaxport::tool {

// Exit codes. kFound: there are problems or differences.
constexpr int kOk = 0, kFound = 1, kFailed = 2;

using Run = std::function<int()>;

struct ConvertArguments {
  std::string program, output;
  ConvertOptions options;
  bool remarks = false;
  // Of a Python function, which a .jir file does not need:
  std::vector<std::string> inputs, params;
  bool double_precision = false;
};

struct ReportArguments {
  std::string program, output;
  compile::Choices choices;
  std::vector<std::string> inputs, params;  // of a Python function
  bool verify = false;
};

struct ProfileArguments {
  std::string program, report;  // no report: a table
  int runs = 20;
  std::vector<std::string> sizes;  // "B=8"
  bool is_function = false;        // else a model
  // Of a Python function:
  compile::Choices choices;
  std::vector<std::string> inputs, params;
};

struct OrtArguments {
  std::string model, output, operators;
  bool with_types = false;
};

// What only Python can do. The program jaxport has none of it; the command of the package has all.
struct PythonSide {
  using OfTwoFiles = std::function<int(const std::string&, const std::string&)>;
  std::function<int(const ConvertArguments&)> convert;  // traces a function
  OfTwoFiles diff_run;                                  // runs two models
  OfTwoFiles check_certificate;                         // a model and its certificate
  std::function<int(const OrtArguments&)> ort;          // writes ORT format
  // Writes a page with this data; without data, of a function.
  std::function<int(const ReportArguments&, const std::string& data)> report;
  std::function<int(const ProfileArguments&)> profile;
};

constexpr const char* kUsePackage =
    "install the Python package; its command jaxport, or python -m jaxport, does it";

Run add_convert(CLI::App& command, const PythonSide& python);
Run add_replay(CLI::App& command, const PythonSide& python);
Run add_reduce(CLI::App& command, const PythonSide& python);
Run add_stats(CLI::App& command, const PythonSide& python);
Run add_check(CLI::App& command, const PythonSide& python);
Run add_text(CLI::App& command, const PythonSide& python);
Run add_diff(CLI::App& command, const PythonSide& python);
Run add_targets(CLI::App& command, const PythonSide& python);
Run add_ops(CLI::App& command, const PythonSide& python);
Run add_ort(CLI::App& command, const PythonSide& python);
Run add_opt(CLI::App& command, const PythonSide& python);
Run add_report(CLI::App& command, const PythonSide& python);
Run add_profile(CLI::App& command, const PythonSide& python);
Run add_expect(CLI::App& command, const PythonSide& python);

// Adds a positional argument and returns where its value will be.
std::shared_ptr<std::string> add_model(CLI::App& command, const char* name, const char* help);

// Parses the command line, runs `chosen` and prints the error if there is one.
int run_program(CLI::App& app, int argc, const char* const* argv, const Run& chosen);

// The program jaxport; `python` must outlive the call.
int run_jaxport(int argc, const char* const* argv, const PythonSide& python);

}  // namespace jaxport::tool
