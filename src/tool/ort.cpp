// SPDX-License-Identifier: Apache-2.0
// jaxport ort: a model in ORT format, which only ONNX Runtime itself writes.
#include <memory>

#include "jaxport/error.h"
#include "tool/command.h"

namespace jaxport::tool {

Run add_ort(CLI::App& command, const PythonSide& python) {
  auto a = std::make_shared<OrtArguments>();
  command.add_option("model", a->model, "an ONNX file")->required();
  command.add_option("-o,--output", a->output, "the .ort file to write")->required();
  command.add_option("--ops", a->operators, "a file for the operators that the .ort file has");
  command.add_flag("--types", a->with_types, "with --ops: also their dtypes");
  return [a, &python] {
    if (!python.ort) {
      throw Error("E091", "ORT format is written by ONNX Runtime in Python").help(kUsePackage);
    }
    return python.ort(*a);
  };
}

}  // namespace jaxport::tool
