// SPDX-License-Identifier: Apache-2.0
// Integer ops whose kernels are wrong for large numbers, by ops whose kernels are right.
#include <algorithm>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "target/compose.h"
#include "target/reduction.h"

namespace jaxport::target {
namespace {

using onnx::Args;
using onnx::Builder;
using onnx::Node;
using onnx::Value;

Value larger(const Value& a, const Value& b) { return where(a > b, a, b); }
Value smaller(const Value& a, const Value& b) { return where(a < b, a, b); }

// --- reductions

// The elements where ArgMax or ArgMin finds the extreme, one axis after the other.
std::optional<Value> extreme(Builder& op, const Node& node, std::string_view finder) {
  const std::optional<Reduction> reduction = reduction_of(op, node);
  if (!reduction) return std::nullopt;
  Value x = reduction->x;
  for (std::int64_t axis : reduction->axes) {
    const Value place = op.call(finder, {x}, {{"axis", axis}, {"keepdims", 1}});
    x = op.GatherElements(x, place, Args{{"axis", axis}});
  }
  return reduction->keeps_dims ? x : op.Squeeze(x, op.ints(reduction->axes));
}

// Where the largest or the smallest element is. TopK has it in integers of 64 bits, which ArgMax
// takes from ONNX Runtime 1.20 on; of equal elements both find the first.
std::optional<Value> first_extreme(Builder& op, const Node& node, bool is_largest) {
  if (int_attribute(node, "select_last_index", 0) != 0) return std::nullopt;
  const std::int64_t axis = int_attribute(node, "axis", 0);
  const Value x(&op, node.in[0]);
  const Value place =
      op.call_n("TopK", {x, op.ints({1})}, 2, {{"axis", axis}, {"largest", is_largest ? 1 : 0}})[1];
  return int_attribute(node, "keepdims", 1) != 0 ? place : op.Squeeze(place, op.ints({axis}));
}

// The product along an axis, by a Scan that multiplies. ONNX Runtime refuses a Scan over no steps:
// where the size is known at run time only, there is one more element.
Value product(Builder& op, Value x, std::int64_t axis) {
  Ints others;
  Dims shape;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (static_cast<std::int64_t>(i) == axis) continue;
    others.push_back(static_cast<std::int64_t>(i));
    shape.push_back(x.shape()[i]);
  }
  const Value one = op.call_with_shape(
      "Expand", {onnx::like(x, 1), op.Gather(op.Shape(x), op.ints(others))}, {}, shape);
  if (!x.shape()[axis].is_static()) {
    const onnx::Values parts{op.Unsqueeze(one, op.ints({axis})), x};
    x = op.Concat(parts, Args{{"axis", axis}});
  }
  auto body = std::make_shared<onnx::Graph>();
  Builder inner(op, *body);
  const Value sofar = inner.input("", {x.dtype(), shape}),
              next = inner.input("", {x.dtype(), shape});
  inner.output(sofar * next, "");
  return op.Scan(one, x, Args{{"body", body}, {"num_scan_inputs", 1}, {"scan_input_axes", {axis}}});
}

}  // namespace

std::optional<Value> compose_max(Builder& op, const Node& node) {
  Value result(&op, node.in[0]);
  for (std::size_t i = 1; i < node.in.size(); ++i) {
    result = larger(result, Value(&op, node.in[i]));
  }
  return result;
}

std::optional<Value> compose_min(Builder& op, const Node& node) {
  Value result(&op, node.in[0]);
  for (std::size_t i = 1; i < node.in.size(); ++i) {
    result = smaller(result, Value(&op, node.in[i]));
  }
  return result;
}

std::optional<Value> compose_clip(Builder& op, const Node& node) {
  const auto bound = [&](std::size_t i) {
    return Value(&op, i < node.in.size() ? node.in[i] : onnx::kAbsent);
  };
  Value result(&op, node.in[0]);
  if (bound(1)) result = larger(result, bound(1));
  return bound(2) ? smaller(result, bound(2)) : result;
}

// The mask of x mod 2^n; nullopt for other divisors and where there is no op for it.
std::optional<std::int64_t> mask_of(const Builder& op, const Value& divisor) {
  const Tensor* known = op.known(divisor);
  if (known == nullptr || known->size() != 1 || op.opset() < 18) return std::nullopt;
  const std::int64_t value = known->int_at(0);
  return value > 0 && (value & (value - 1)) == 0 ? std::optional(value - 1) : std::nullopt;
}

// x fmod y = x - (x / y) * y. Without signs it is the other kind of Mod, which a target may lack.
std::optional<Value> compose_mod(Builder& op, const Node& node) {
  const Value x(&op, node.in[0]), y(&op, node.in[1]);
  if (!is_unsigned(x.dtype())) return x - x / y * y;
  if (node.attr("fmod") != nullptr) return x % y;
  const auto mask = mask_of(op, y);
  return mask ? std::optional(op.BitwiseAnd(x, like(x, static_cast<double>(*mask)))) : std::nullopt;
}

// sign(x) = (x > 0) - (x < 0)
std::optional<Value> compose_sign(Builder& op, const Node& node) {
  const Value x(&op, node.in[0]);
  return cast(x > 0, x.dtype()) - cast(x < 0, x.dtype());
}

std::optional<Value> compose_reduce_max(Builder& op, const Node& node) {
  return extreme(op, node, "ArgMax");
}
std::optional<Value> compose_reduce_min(Builder& op, const Node& node) {
  return extreme(op, node, "ArgMin");
}

std::optional<Value> compose_arg_max(Builder& op, const Node& node) {
  return first_extreme(op, node, true);
}
std::optional<Value> compose_arg_min(Builder& op, const Node& node) {
  return first_extreme(op, node, false);
}

std::optional<Value> compose_reduce_prod(Builder& op, const Node& node) {
  std::optional<Reduction> reduction = reduction_of(op, node);
  if (!reduction) return std::nullopt;
  Value x = reduction->x;
  std::ranges::sort(reduction->axes, std::greater());  // the last first, so that others stay
  for (std::int64_t axis : reduction->axes) x = product(op, x, axis);
  return reduction->keeps_dims ? op.Unsqueeze(x, op.ints(reduction->axes)) : x;
}

// sum(x) = 2^32 sum(hi) + sum(lo) with x = 2^32 hi + lo. The sum of hi may wrap in 32 bits.
std::optional<Value> compose_reduce_sum(Builder& op, const Node& node) {
  const std::optional<Reduction> reduction = reduction_of(op, node);
  if (!reduction) return std::nullopt;
  constexpr std::int64_t kUnit = std::int64_t{1} << 32;
  const Value x = reduction->x, lo = cast(cast(x, DType::kU32), x.dtype());
  const Value hi = cast((x - lo) / kUnit, is_signed(x.dtype()) ? DType::kI32 : DType::kU32);
  const auto sum = [&](const Value& part) {
    return op.ReduceSum(part, op.ints(reduction->axes),
                        Args{{"keepdims", reduction->keeps_dims ? 1 : 0}});
  };
  return cast(sum(hi), x.dtype()) * kUnit + sum(lo);
}

}  // namespace jaxport::target
