// SPDX-License-Identifier: Apache-2.0
// jaxport-opt: one stage of the compiler at a time, for text tests.
#include <fmt/format.h>

#include <string>

#include "tool/command.h"
#include "tool/source.h"
#include "tool/stage.h"
#include "wire/wire.h"

namespace jaxport::tool {
namespace {

int main_program(int argc, char** argv) {
  CLI::App app("Runs one stage on every function of a .jir file and prints the result.",
               "jaxport-opt");
  std::string path, pass;
  StageOptions options;
  const Stage* chosen = nullptr;
  app.add_option("program", path, "a .jir file; with --pass an ONNX model")->required();
  CLI::Option_group* stages = app.add_option_group("stage", "The stage to run");
  stages->require_option(1);
  for (const Stage& stage : all_stages()) {
    stages->add_flag_callback(
        stage.flag, [&chosen, &stage] { chosen = &stage; }, stage.help);
  }
  stages->add_option("--pass", pass, "run one pass or one rewrite of the target on an ONNX model")
      ->check(CLI::IsMember(pass_names()));
  bool no_raise = false;
  std::string target = "onnxruntime";
  app.add_flag("--no-raise", no_raise, "leave raising out");
  app.add_flag("--remarks", options.remarks, "say why rules that nearly fired did not");
  app.add_flag("--auto-functions", options.auto_functions,
               "with --passes: what the program repeats becomes a function");
  app.add_option("--without", options.raise.without, "raise rules to leave out")->delimiter(',');
  app.add_option("--opset", options.opset, "version of the operator set")->capture_default_str();
  app.add_option("--target", target, "what must run the model")->capture_default_str();
  return run_program(app, argc, argv, [&] {
    options.raise.enabled = !no_raise;
    options.target = target::target_from_name(target);
    fmt::print("{}", chosen ? chosen->run(read_program(path), options)
                            : run_pass(pass, wire::load(path), options));
    return kOk;
  });
}

}  // namespace
}  // namespace jaxport::tool

int main(int argc, char** argv) { return jaxport::tool::main_program(argc, argv); }
