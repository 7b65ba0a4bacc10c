// SPDX-License-Identifier: Apache-2.0
// The subcommands of jaxport. Each adds its options to the command line; run() does the work and
// returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace jaxport::tool {

// Exit codes. kFound: there are problems or differences.
constexpr int kOk = 0, kFound = 1, kFailed = 2;

using Run = std::function<int()>;

Run add_convert(CLI::App& command);
Run add_stats(CLI::App& command);
Run add_check(CLI::App& command);
Run add_text(CLI::App& command);
Run add_diff(CLI::App& command);

// Parses the command line, runs `chosen` and prints the error if there is one.
int run_program(CLI::App& app, int argc, char** argv, const Run& chosen);

}  // namespace jaxport::tool
