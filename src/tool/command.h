// SPDX-License-Identifier: Apache-2.0
// The subcommands of jaxport. Each adds its options to the command line; run() does the work and
// returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "wire/wire.h"

namespace jaxport::tool {

// Exit codes. kFound: there are problems or differences.
constexpr int kOk = 0, kFound = 1, kFailed = 2;

using Run = std::function<int()>;

constexpr int kAutoOpset = 0;  // the newest that the target runs

struct ConvertArguments {
  std::string program, output;
  compile::Options compile;
  wire::WriteOptions write;
  std::string target = "onnxruntime";
  std::string normalization_mode = "auto";
  bool no_raise = false, no_source_locations = false, remarks = false;
  // Of a Python function, which a .jir file does not need:
  std::vector<std::string> inputs, params;
  bool double_precision = false;
};

// What only Python can do. The program jaxport has none of it; the command of the package has all.
struct PythonSide {
  using OfTwoFiles = std::function<int(const std::string&, const std::string&)>;
  std::function<int(const ConvertArguments&)> convert;  // traces a function
  OfTwoFiles diff_run;                                  // runs two models
  OfTwoFiles check_certificate;                         // a model and its certificate
};

constexpr const char* kUsePackage =
    "install the Python package; its command jaxport, or python -m jaxport, does it";

Run add_convert(CLI::App& command, const PythonSide& python);
Run add_stats(CLI::App& command, const PythonSide& python);
Run add_check(CLI::App& command, const PythonSide& python);
Run add_text(CLI::App& command, const PythonSide& python);
Run add_diff(CLI::App& command, const PythonSide& python);
Run add_targets(CLI::App& command, const PythonSide& python);
Run add_expect(CLI::App& command, const PythonSide& python);

// Adds a positional argument and returns where its value will be.
std::shared_ptr<std::string> add_model(CLI::App& command, const char* name, const char* help);

// Parses the command line, runs `chosen` and prints the error if there is one.
int run_program(CLI::App& app, int argc, const char* const* argv, const Run& chosen);

// The program jaxport; `python` must outlive the call.
int run_jaxport(int argc, const char* const* argv, const PythonSide& python);

}  // namespace jaxport::tool
