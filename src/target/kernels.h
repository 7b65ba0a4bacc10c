// SPDX-License-Identifier: Apache-2.0
// The kernels of runtimes by version: of ONNX Runtime's CPU provider, generated from its registries
// by tools/generate_kernels.py, and of OpenVINO, from what it answered to models of one node
// (tools/generate_openvino.py). ONNX Runtime Web has those of ONNX Runtime.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/schema.h"
#include "target/target.h"

namespace jaxport::target {

// A version of a runtime and the newest opset and IR version that it loads.
struct Release {
  int version;
  int opset;
  int ir;
};
std::span<const Release> releases(Runtime runtime);  // oldest first; none of Runtime::kOnnx
bool has(const Target& target, const Release& release);

// The dtypes that one kernel takes for the type variables of its schema; others are free.
struct Kernel {
  std::vector<onnx::TypeConstraint> types;
};

// The kernels that all versions of the target have for the ops of a schema; the schema itself for
// Target::kOnnx. The target is one of for_opset().
const std::vector<Kernel>& kernels_of(const Target& target, const onnx::Schema& schema);

// The newest version of ONNX Runtime that the table knows: "1.31".
std::string table_version();

// Whether ONNX defines the op by others, of which ONNX Runtime makes it where it has no kernel.
bool has_body(std::string_view op);

bool takes(std::span<const onnx::TypeConstraint> types, std::string_view variable, DType dtype);

}  // namespace jaxport::target
