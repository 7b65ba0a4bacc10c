// SPDX-License-Identifier: Apache-2.0
#include "target/kernels.h"

#include <algorithm>
#include <iterator>

namespace jaxport::target {
namespace {

#include "target/kernels.inc"

}  // namespace

std::vector<Kernel> kernels_of(Target target, const onnx::Schema& schema) {
  if (target == Target::kOnnx) return {{schema.types}};
  const auto* entry = std::ranges::lower_bound(kEntries, schema.op, {}, &KernelEntry::op);
  for (; entry != std::end(kEntries) && entry->op == schema.op; ++entry) {
    if (entry->since == schema.since) return {entry->kernels.begin(), entry->kernels.end()};
  }
  return {};
}

std::string_view table_version() { return kTableVersion; }

bool takes(const Kernel& kernel, std::string_view variable, DType dtype) {
  const auto found = std::ranges::find(kernel.types, variable, &onnx::TypeConstraint::variable);
  return found == kernel.types.end() || onnx::allows(*found, dtype);
}

}  // namespace jaxport::target
