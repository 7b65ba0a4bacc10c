// SPDX-License-Identifier: Apache-2.0
// Bits of numbers: shifts, counts, reinterpretation. ONNX shifts unsigned numbers only.
#include <algorithm>
#include <numeric>

#include "lower/rows/float_bits.h"

namespace jaxport::lower {
namespace {

DType unsigned_dtype(int bits) {
  if (bits <= 8) return DType::kU8;
  if (bits <= 16) return DType::kU16;
  return bits <= 32 ? DType::kU32 : DType::kU64;
}

DType signed_dtype(int bits) {
  if (bits <= 8) return DType::kI8;
  if (bits <= 16) return DType::kI16;
  return bits <= 32 ? DType::kI32 : DType::kI64;
}

Value as_unsigned(const Value& x) { return cast(x, unsigned_dtype(bit_width(x.dtype()))); }
Value as_signed(const Value& x) { return cast(x, signed_dtype(bit_width(x.dtype()))); }

Value shifted(Ctx& c, Value x, Value by, const char* direction) {
  return c.op.BitShift(x, by, onnx::Args{{"direction", direction}});
}

// lax reads amounts as unsigned, and those of the width and more leave no bit. BitShift leaves them
// open, as C++ does: ONNX Runtime up to 1.26 gives 5 << 32 = 5.
bool is_known_to_fit(Ctx& c, const Value& by) {
  const Tensor* known = c.op.known(by);
  if (known == nullptr) return false;
  std::int64_t at = 0;
  while (at < known->size() && known->int_at(at) >= 0 && known->int_at(at) < bit_width(by.dtype()))
    ++at;
  return at == known->size();
}

// Whatever BitShift makes of an amount that does not fit, its product with 0 is 0. (Where has no
// kernel for u32 before ONNX Runtime 1.31.)
Value shifted_or_zero(Ctx& c, const char* direction) {
  const Value x = as_unsigned(c.in(0)), by = as_unsigned(c.in(1));
  Value result = shifted(c, x, by, direction);
  if (!is_known_to_fit(c, c.in(1))) {
    result = result * cast(by < bit_width(by.dtype()), result.dtype());
  }
  return cast(result, c.out_type().dtype);
}
// The amount of a signed number of 32 or 64 bits, when it is one number that 2^amount can be.
std::optional<std::int64_t> known_amount(Ctx& c) {
  const Value &x = c.in(0), &by = c.in(1);
  const int bits = bit_width(x.dtype());
  const Tensor* known = by.is_scalar() ? c.op.known(by) : nullptr;
  if (!is_signed(x.dtype()) || bits < 32 || known == nullptr) return std::nullopt;
  const std::int64_t amount = known->int_at(0);
  return amount >= 0 && amount < bits - 1 ? std::optional(amount) : std::nullopt;
}

// A product, which wraps around, takes 0.27 of the time of BitShift between two Casts.
Results shift_left(Ctx& c) {
  if (const auto amount = known_amount(c)) return c.in(0) * (std::int64_t{1} << *amount);
  return shifted_or_zero(c, "LEFT");
}
Results shift_right_logical(Ctx& c) { return shifted_or_zero(c, "RIGHT"); }

// The complement -1 - x of a negative x is not negative, and the complement of its shift is the
// result.
Results shift_right_arithmetic(Ctx& c) {
  const Value x = as_signed(c.in(0));
  const Value negative = x < 0;
  auto complemented = [&](Value v) { return where(negative, -1 - v, v); };
  const Value bits = as_unsigned(complemented(x));
  Value by = as_unsigned(c.in(1));
  if (!is_known_to_fit(c, c.in(1))) by = min(by, bit_width(by.dtype()) - 1);
  const Value result = as_signed(shifted(c, bits, by, "RIGHT"));
  return cast(complemented(result), c.out_type().dtype);
}

// Without its last bits x can be divided by 2^amount: 0.73 of the time.
Results shift_right_by_division(Ctx& c) {
  const auto amount = known_amount(c);
  if (!amount) return shift_right_arithmetic(c);
  const Value& x = c.in(0);
  const std::int64_t unit = std::int64_t{1} << *amount;
  const Value rest = c.op.BitwiseAnd(x, c.constant(int_scalar(x.dtype(), unit - 1)));
  return (x - rest) / unit;
}

// x >> 0, x >> 1, … along a new last dim.
Value right_shifts(Ctx& c, Value x) {
  x = as_unsigned(x);
  Ints amounts(static_cast<std::size_t>(bit_width(x.dtype())));
  std::iota(amounts.begin(), amounts.end(), 0);
  return shifted(c, c.op.Unsqueeze(x, c.ints({-1})), cast(c.ints(amounts), x.dtype()), "RIGHT");
}

// The axis is counted from the front: from the back, ONNX Runtime 1.31 returns an empty x as it is.
Value sum_along_last(Ctx& c, Value x) {
  const auto last = static_cast<std::int64_t>(x.rank()) - 1;
  return c.op.ReduceSum(x, c.ints({last}), onnx::Args{{"keepdims", 0}});
}

Results count_along_last(Ctx& c, Value flags) {
  return cast(sum_along_last(c, cast(flags, DType::kI32)), c.out_type().dtype);
}

// Bit k is the lowest bit of x >> k.
Results population_count(Ctx& c) {
  const Value shifts = right_shifts(c, c.in(0));
  return count_along_last(c, shifts % 2);
}

// As many leading zeros as there are k with x >> k = 0.
Results clz(Ctx& c) {
  const Value shifts = right_shifts(c, c.in(0));
  return count_along_last(c, equal(shifts, 0));
}

// --- bitcast_convert_type

// The bits of x as another dtype of the same width.
Value reinterpreted(Ctx& c, const Value& x, DType to) {
  if (x.dtype() == to) return x;
  if (c.op.opset() >= 26) return c.op.BitCast(x, onnx::Args{{"to", to}});
  const DType bits = is_float(to) ? unsigned_dtype(bit_width(to)) : to;
  const Value integer = is_float(x.dtype()) ? bits_of_float(c, x, bits) : x;
  return is_float(to) ? float_from_bits(c, integer, to) : cast(integer, to);
}

// Where the parts of a wider number stand: 1, 2^width, …; the lowest is the first.
Value places(Ctx& c, int width, int parts) {
  Ints places;
  for (int i = 0; i < parts; ++i)
    places.push_back(static_cast<std::int64_t>(std::uint64_t{1} << (width * i)));
  return c.ints(places);
}

// A number of another width has its parts along the last dim.
Results bitcast_convert_type(Ctx& c) {
  const Value x = c.in(0);
  const DType dtype = c.out_type().dtype;
  const int from = bit_width(x.dtype()), to = bit_width(dtype);
  if (from == to) return reinterpreted(c, x, dtype);
  Value bits = reinterpreted(c, x, unsigned_dtype(from));
  if (from > to) {
    const Value wide = c.op.Unsqueeze(cast(bits, DType::kU64), c.ints({-1}));
    bits = wide / cast(places(c, to, from / to), DType::kU64);
  } else {
    bits = sum_along_last(c, cast(bits, DType::kI64) * places(c, from, to / from));
  }
  return reinterpreted(c, cast(bits, unsigned_dtype(to)), dtype);
}

// The sign bit of a float, which a rewrite asks for where there is no BitCast.
Results has_sign_bit(Ctx& c) { return has_sign(c.in(0)); }

constexpr Row kBitsRows[] = {
    // sorted by primitive
    {"bitcast_convert_type", bitcast_convert_type},
    {"clz", clz},
    {"has_sign_bit", has_sign_bit},
    {"population_count", population_count},
    {"shift_left", shift_left},
    {"shift_right_arithmetic", shift_right_by_division, 18},
    {"shift_right_arithmetic", shift_right_arithmetic},
    {"shift_right_logical", shift_right_logical},
};
static_assert(std::ranges::is_sorted(kBitsRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> bits_rows() { return kBitsRows; }

}  // namespace jaxport::lower
