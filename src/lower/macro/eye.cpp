// SPDX-License-Identifier: Apache-2.0
#include "lower/macro/eye.h"

#include "lower/emit/emission.h"
#include "lower/macro/macro.h"
#include "onnx/expr.h"

namespace jaxport::lower {
namespace {

using axis::Label;
using axis::Labels;
using axis::Node;

// Rows and columns in the order that is wanted: the other one has the opposite diagonal.
void emit_eye(Emission& e, const Node& node) {
  const auto op = raise::read<EyeOp>(node);
  const Labels natural{op.row, op.column};
  const Labels order =
      wanted_order(e, node, LabelSet(node.sizes.size(), natural)).value_or(natural);
  Dims shape;
  for (Label label : order) shape.push_back(node.sizes[label]);
  const bool is_whole = node.dtype == DType::kI32 || node.dtype == DType::kI64;
  const DType dtype = node.dtype == DType::kF64 || is_whole ? node.dtype : DType::kF32;
  const Value zeros = e.op.call_with_shape("ConstantOfShape", {e.shapes.shape(shape)}, {}, shape);
  const Value ones = e.op.EyeLike(
      zeros, onnx::Args{{"dtype", dtype}, {"k", order == natural ? op.diagonal : -op.diagonal}});
  e.values.define(node, cast(ones, node.dtype), {{order[0]}, {order[1]}});
}

}  // namespace

MacroRow eye_macro() { return {.name = EyeOp::kName, .emit = emit_eye}; }

}  // namespace jaxport::lower
