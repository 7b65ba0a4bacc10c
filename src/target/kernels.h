// SPDX-License-Identifier: Apache-2.0
// The kernels of ONNX Runtime's CPU provider, generated from its registry by
// tools/generate_kernels.py.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "onnx/schema.h"
#include "target/target.h"

namespace jaxport::target {

// The dtypes that one kernel takes for the type variables of its schema; others are free.
struct Kernel {
  std::span<const onnx::TypeConstraint> types;
};
struct KernelEntry {
  std::string_view op;
  std::uint8_t since;  // of the schema
  std::span<const Kernel> kernels;
};

// The kernels that the target has for the ops of a schema; the schema itself for Target::kOnnx.
std::vector<Kernel> kernels_of(Target target, const onnx::Schema& schema);

// The version of ONNX Runtime that the table was made from: "1.31".
std::string_view table_version();

bool takes(const Kernel& kernel, std::string_view variable, DType dtype);

}  // namespace jaxport::target
