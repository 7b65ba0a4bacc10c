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
  const Schema* found = nullptr;
  const auto* schema = std::ranges::lower_bound(kSchemas, op, {}, &Schema::op);
  for (; schema != std::end(kSchemas) && schema->op == op && schema->since <= opset; ++schema) {
    found = schema;
  }
  return found;
}

bool allows(const TypeConstraint& constraint, DType dtype) {
  return (constraint.dtypes >> static_cast<unsigned>(dtype) & 1u) != 0;
}

std::int64_t ir_version_for(std::int64_t opset) {
  const std::int64_t in_table = std::clamp<std::int64_t>(opset, kOldestOpset, kNewestOpset);
  return kIrVersions[in_table - kOldestOpset];
}

}  // namespace jaxport::onnx
