// SPDX-License-Identifier: Apache-2.0
// jaxport: converts and inspects models on the command line.
#include <fmt/format.h>

#include "jaxport/version.h"
#include "tool/command.h"

namespace jaxport::tool {
namespace {

struct Command {
  const char *name, *description;
  Run (*add)(CLI::App&, const PythonSide&);
};

constexpr Command kCommands[] = {
    {"convert", "Convert a Python function, or a program in .jir form, to an ONNX model",
     add_convert},
    {"opt", "Make any model smaller: the same inputs, outputs, operator set and results", add_opt},
    {"replay", "Convert a case again, with the options that it was made with", add_replay},
    {"reduce", "Make a case smaller as long as a command succeeds", add_reduce},
    {"stats", "Count the nodes, parameters and bytes of a model", add_stats},
    {"check", "List everything that is wrong with a model; exit code 1 if there is something",
     add_check},
    {"targets", "Say which versions of ONNX Runtime load a model; exit code 1 if none does",
     add_targets},
    {"ops", "List the operators of models, as ONNX Runtime's reduced builds read them", add_ops},
    {"ort", "Write a model in ORT format", add_ort},
    {"text", "Print a model in ONNX's text syntax", add_text},
    {"diff", "Say in what two models differ; exit code 1 if they do", add_diff},
    {"expect", "Print the specification of a model, or check one; exit code 1 if it does not hold",
     add_expect},
    {"report", "Write a page that shows a model beside the program it was made from", add_report},
    {"profile", "Run a model and say where its time goes", add_profile},
};

}  // namespace

int run_jaxport(int argc, const char* const* argv, const PythonSide& python) {
  CLI::App app("Turns JAX programs into ONNX models. Exit code 2 means an error.", "jaxport");
  app.set_version_flag("--version", fmt::format("jaxport {}", kVersion));
  app.require_subcommand(1);
  Run chosen;
  for (const Command& command : kCommands) {
    CLI::App* subcommand = app.add_subcommand(command.name, command.description);
    subcommand->callback([&chosen, run = command.add(*subcommand, python)] { chosen = run; });
  }
  return run_program(app, argc, argv, [&chosen] { return chosen(); });
}

}  // namespace jaxport::tool
