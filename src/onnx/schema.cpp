// SPDX-License-Identifier: Apache-2.0
#include "onnx/schema.h"

#include <algorithm>
#include <iterator>

#include "onnx/ir.h"

namespace jaxport::onnx {
namespace {

#include "onnx/schemas.inc"

}  // namespace

const Schema* find_schema(std::string_view op, int opset) {
  const auto versions = std::ranges::equal_range(kSchemas, op, {}, &Schema::op);
  const auto after = std::ranges::upper_bound(versions, opset, {}, &Schema::since);
  return after == versions.begin() ? nullptr : &*std::prev(after);
}

bool allows(const TypeConstraint& constraint, DType dtype) {
  return (constraint.dtypes >> static_cast<unsigned>(dtype) & 1u) != 0;
}

std::int64_t ir_version_for(std::int64_t opset) {
  const std::int64_t in_table = std::clamp<std::int64_t>(opset, kOldestOpset, kNewestOpset);
  return kIrVersions[in_table - kOldestOpset];
}

}  // namespace jaxport::onnx
