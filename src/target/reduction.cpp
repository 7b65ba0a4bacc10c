// SPDX-License-Identifier: Apache-2.0
#include "target/reduction.h"

#include "onnx/attributes.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Node;
using onnx::Value;

constexpr int kAxesAreInputs = 18;

std::optional<Ints> axes_of(const Builder& op, const Node& node) {
  if (auto axes = ints_attribute(node, "axes")) return axes;
  if (node.in.size() < 2 || node.in[1] == onnx::kAbsent) return Ints{};
  const Tensor* known = op.known(node.in[1]);
  if (known == nullptr) return std::nullopt;
  Ints axes;
  for (std::int64_t i = 0; i < known->size(); ++i) axes.push_back(known->int_at(i));
  return axes;
}

}  // namespace

std::optional<Reduction> reduction_of(Builder& op, const Node& node) {
  std::optional<Ints> axes = axes_of(op, node);
  if (!axes) return std::nullopt;
  const Value x(&op, node.in[0]);
  const auto rank = static_cast<std::int64_t>(x.rank());
  for (std::int64_t& axis : *axes) axis = axis < 0 ? axis + rank : axis;
  for (std::int64_t axis = 0; node.in.size() < 2 && !node.attr("axes") && axis < rank; ++axis) {
    axes->push_back(axis);  // no axes: all of them
  }
  return Reduction{x, *axes, int_attribute(node, "keepdims", 1) != 0};
}

Value reduced(Builder& op, std::string_view name, const Value& x, const Ints& axes,
              bool keeps_dims) {
  const std::int64_t keep = keeps_dims ? 1 : 0;
  if (op.opset() < kAxesAreInputs && name != "ReduceSum") {
    return op.call(name, {x}, {{"axes", axes}, {"keepdims", keep}});
  }
  return op.call(name, {x, op.ints(axes)}, {{"keepdims", keep}});
}

}  // namespace jaxport::target
