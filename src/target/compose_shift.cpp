// SPDX-License-Identifier: Apache-2.0
// Shifts to the right of 32 bits where unsigned numbers are kept as signed ones.
#include <cmath>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "target/compose.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Value;

constexpr std::int64_t kHalf = 1 << 16;

// 2^-n for each n from 0 to 32: a power that is computed might round.
Value negative_power(Builder& op, const Value& n) {
  MutableTensor powers = allocate(DType::kF32, {33});
  for (int i = 0; i <= 32; ++i) powers.as<float>()[i] = std::ldexp(1.0F, -i);
  return op.Gather(op.constant(powers.tensor), n);
}

}  // namespace

// With x = high * 2^16 + low, x >> n is floor(high * 2^(16 - n)) + floor(low * 2^-n): each half is
// exact in f32, and the two do not meet, because either is 0 or the other a multiple of it.
std::optional<Value> compose_right_shift(Builder& op, const onnx::Node& node) {
  const Value x(&op, node.in[0]), n(&op, node.in[1]);
  const bool is_right = text_attribute(node, "direction", "") == "RIGHT";
  if (x.dtype() != DType::kU32 || !is_right || op.opset() < 18) return std::nullopt;
  const Value bits = cast(x, DType::kI32), scale = negative_power(op, cast(n, DType::kI32));
  const Value low = cast(op.BitwiseAnd(bits, like(bits, kHalf - 1)), DType::kF32);
  const Value upper = cast(op.BitwiseAnd(bits, like(bits, -kHalf)), DType::kF32);
  const Value high = where(upper < 0, upper + 0x1p32, upper);
  const Value shifted =
      cast(floor(high * scale), DType::kI32) + cast(floor(low * scale), DType::kI32);
  const Value is_still = equal(cast(n, DType::kI32), 0);
  return cast(where(is_still, bits, shifted), DType::kU32);
}

}  // namespace jaxport::target
