// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace jaxport::bind {

// What can be asked of any ONNX model: jaxport.testing and jaxport.compare.
void define_inspect(nanobind::module_& m);

// The command line of the package: run_command.
void define_command(nanobind::module_& m);

}  // namespace jaxport::bind
