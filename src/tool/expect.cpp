// SPDX-License-Identifier: Apache-2.0
// jaxport expect: the specification of a model, or whether it fulfils one.
#include "inspect/expect.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "tool/command.h"
#include "wire/file.h"

namespace jaxport::tool {
namespace {

int check_specification(const onnx::Model& model, const std::string& path) {
  const wire::MappedFile file = wire::map_file(path, "specification");
  const std::string_view json(reinterpret_cast<const char*>(file.bytes.get()), file.size);
  const std::string report = inspect::unfulfilled(model, inspect::read_expectation(json));
  fmt::print("{}", report.empty() ? "the specification holds\n" : report);
  return report.empty() ? kOk : kFound;
}

}  // namespace

Run add_expect(CLI::App& command, const PythonSide&) {
  auto path = add_model(command, "model", "an ONNX file");
  auto as_json = std::make_shared<bool>(false);
  auto specification = std::make_shared<std::string>();
  command.add_flag("--json", *as_json, "print JSON, which --spec reads, instead of Python");
  command.add_option("--spec", *specification, "check the specification of this JSON file");
  return [=] {
    const onnx::Model model =
        wire::load(*path, {.check_names = false, .function_attributes = true});
    if (!specification->empty()) return check_specification(model, *specification);
    using enum inspect::SpecForm;
    fmt::print("{}", inspect::specification(model, *as_json ? kJson : kPython));
    return kOk;
  };
}

}  // namespace jaxport::tool
