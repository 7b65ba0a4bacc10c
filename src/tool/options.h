// SPDX-License-Identifier: Apache-2.0
// What a conversion is told, on the command line and in the first lines of a case.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compile/choices.h"
#include "front/ir.h"
#include "support/watch.h"
#include "wire/wire.h"

namespace jaxport::tool {

// The options of a conversion, as they are written on a command line.
struct ConvertOptions {
  compile::Choices choices;
  wire::WriteOptions write;
  Limits limits;
};

// Refuses what is not a number above 0 in words that a reader understands.
CLI::Validator above_zero();

// Adds them to a command; what is given must outlive it.
void add_choices(CLI::App& command, compile::Choices& choices);
void add_options(CLI::App& command, ConvertOptions& options);
// Those of a Python function: --input and --params.
void add_arguments(CLI::App& command, std::vector<std::string>& inputs,
                   std::vector<std::string>& params);

// Those that differ from the defaults, such as "--opset=21".
std::vector<std::string> arguments_of(const ConvertOptions& options);

// A case is a program with the options of its conversion, as a .jir file:
//
//   // jaxport 0.1.0
//   // options: --opset=21 --target=onnxruntime>=1.28
//   func @f(…
std::string case_text(const front::Module& module, const ConvertOptions& options);
// The first lines of a case, up to the program.
std::string case_header(const ConvertOptions& options);
// The options that the text of a case starts with; none where there is no such line. Error E010.
std::vector<std::string> case_arguments(std::string_view text);

// The options that these arguments stand for; the last of two that contradict each other counts.
// Error E092.
ConvertOptions options_from(const std::vector<std::string>& arguments);

}  // namespace jaxport::tool
