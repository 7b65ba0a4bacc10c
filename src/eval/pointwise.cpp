// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparisons, logic, bits and selection, element by element.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "eval/arithmetic.h"
#include "eval/map.h"

namespace jaxport::eval {
namespace {

using U64 = std::uint64_t;

constexpr auto kSquare = []<Number T>(T x) -> T { return kMul(x, x); };

template <Integer T>
bool is_minus_one(T x) {
  return std::is_signed_v<T> && x == static_cast<T>(-1);
}
// XLA: x / 0 has all bits set, and the smallest integer divided by -1 is itself.
constexpr auto kDiv = []<Number T>(T x, T y) -> T {
  if constexpr (Integer<T>) {
    if (y == 0) return static_cast<T>(-1);
    if (is_minus_one(y)) return kNeg(x);
  }
  return x / y;
};
constexpr auto kRem = []<Number T>(T x, T y) -> T requires(!Complex<T>) {
  if constexpr (Integer<T>) {
    if (y == 0) return x;
    return is_minus_one(y) ? T{0} : x % y;
  } else {
    return std::fmod(x, y);
  }
};

// jnp.floor_divide and jnp.remainder, which lowering makes of what JAX writes for them.
constexpr auto kFloorQuotient = []<Integer T>(T x, T y) -> T {
  const bool is_between = kRem(x, y) != 0 && ((x < 0) != (y < 0) || y == 0);
  return is_between ? kSub(kDiv(x, y), T{1}) : kDiv(x, y);
};
constexpr auto kFloorRemainder = []<Integer T>(T x, T y) -> T {
  if (y == 0) return T{0};
  const T rest = kRem(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? kAdd(rest, y) : rest;
};

constexpr auto kAbs = []<Number T>(T x) {
  if constexpr (Complex<T>) {
    return std::abs(x);
  } else if constexpr (Integer<T>) {
    return x < T{0} ? kNeg(x) : x;
  } else {
    return std::fabs(x);
  }
};
// Zeros and NaN stay what they are.
constexpr auto kSign = []<Number T>(T x) -> T {
  if constexpr (Complex<T>) {
    return x == T{0} ? x : x / std::abs(x);
  } else if constexpr (Integer<T>) {
    return static_cast<T>((x > T{0}) - (x < T{0}));
  } else {
    return x == 0 || std::isnan(x) ? x : std::copysign(T{1}, x);
  }
};

constexpr auto kClamp = []<Ordered T>(T lo, T x, T hi) -> T { return kMin(kMax(x, lo), hi); };

// --- comparisons

constexpr auto kEq = []<class T>(T x, T y) -> bool { return x == y; };
constexpr auto kNe = []<class T>(T x, T y) -> bool { return x != y; };
constexpr auto kLt = []<Ordered T>(T x, T y) -> bool { return x < y; };
constexpr auto kLe = []<Ordered T>(T x, T y) -> bool { return x <= y; };

// IEEE total order: -NaN < -inf < … < -0 < +0 < … < inf < NaN.
template <Ordered T>
auto total_order(T x) {
  if constexpr (Floating<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    const Bits bits = std::bit_cast<Bits>(x);
    return bits < 0 ? static_cast<Bits>(bits ^ std::numeric_limits<Bits>::max()) : bits;
  } else {
    return x;
  }
}
constexpr auto kEqTotal = []<Ordered T>(T x, T y) -> bool {
  return total_order(x) == total_order(y);
};
constexpr auto kLtTotal = []<Ordered T>(T x, T y) -> bool {
  return total_order(x) < total_order(y);
};
constexpr auto kLeTotal = []<Ordered T>(T x, T y) -> bool {
  return total_order(x) <= total_order(y);
};
constexpr auto kIsFinite = []<Floating T>(T x) -> bool { return std::isfinite(x); };

template <auto Op>
constexpr auto kSwapped = []<Ordered T>(T x, T y) -> bool { return Op(y, x); };

// --- logic and bits

constexpr auto kNot = []<Bits T>(T x) -> T {
  if constexpr (Boolean<T>) {
    return !x;
  } else {
    return ~x;
  }
};

// The bits that an element really has: a negative i8 fills all 64 bits of its int64.
struct Width {
  explicit Width(const Call& c) : bits(c.in.empty() ? 64 : bit_width(c.in[0].dtype)) {}
  int bits;
  U64 low(U64 x) const { return x & (~U64{0} >> (64 - bits)); }
  std::int64_t sign_extended(U64 x) const {
    return static_cast<std::int64_t>(x << (64 - bits)) >> (64 - bits);
  }
  bool covers(U64 shift) const { return shift < static_cast<U64>(bits); }
};

Results shift_left(const Call& c) {
  return map<2>(c, [w = Width(c)]<Integer T>(T x, T y) -> T {
    const auto by = static_cast<U64>(y);
    return static_cast<T>(w.covers(by) ? static_cast<U64>(x) << by : 0);
  });
}

Results shift_right_logical(const Call& c) {
  return map<2>(c, [w = Width(c)]<Integer T>(T x, T y) -> T {
    const auto by = static_cast<U64>(y);
    return static_cast<T>(w.covers(by) ? w.low(static_cast<U64>(x)) >> by : 0);
  });
}

Results shift_right_arithmetic(const Call& c) {
  return map<2>(c, [w = Width(c)]<Integer T>(T x, T y) -> T {
    const auto by = static_cast<U64>(y);
    return static_cast<T>(w.sign_extended(static_cast<U64>(x)) >> (w.covers(by) ? by : 63));
  });
}

Results population_count(const Call& c) {
  return map<1>(c, [w = Width(c)]<Integer T>(T x) -> T {
    return static_cast<T>(std::popcount(w.low(static_cast<U64>(x))));
  });
}

Results clz(const Call& c) {
  return map<1>(c, [w = Width(c)]<Integer T>(T x) -> T {
    return static_cast<T>(std::countl_zero(w.low(static_cast<U64>(x))) - (64 - w.bits));
  });
}

// --- complex numbers

constexpr auto kReal = []<Complex T>(T x) { return x.real(); };
constexpr auto kImag = []<Complex T>(T x) { return x.imag(); };
constexpr auto kConj = []<Inexact T>(T x) { return std::conj(x); };
constexpr auto kComplex = []<Floating T>(T re, T im) { return std::complex<T>(re, im); };

// --- selection

// which picks the case of each element; an index out of range picks the nearest case.
Results select_n(const Call& c) {
  c.require(c.in.size() >= 2 && c.out.size() == 1, "needs a selector, cases and one result");
  const Shape shape = c.out_shape();
  const DType which_dtype = c.in[0].dtype;
  c.require(which_dtype == DType::kBool || is_integer(which_dtype), "the selector is not integer");
  const Tensor which = broadcast(c, c.in[0], shape);
  Results cases;
  for (const Tensor& operand : c.in.subspan(1)) {
    c.require(operand.dtype == c.out_dtype(), "the cases have other dtypes than the result");
    cases.push_back(broadcast(c, operand, shape));
  }
  MutableTensor out = allocate(c.out_dtype(), shape);
  const auto width = static_cast<std::int64_t>(byte_width(c.out_dtype()));
  const std::int64_t last = std::ssize(cases) - 1, total = out.tensor.size();
  std::array<std::int64_t, kBlock> picks;
  for (std::int64_t begin = 0; begin < total; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, total - begin);
    load(which, begin, count, picks.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const Tensor& from = cases[std::clamp<std::int64_t>(picks[i], 0, last)];
      const std::int64_t at = (begin + i) * width;
      std::memcpy(out.bytes + at, from.data.get() + at, static_cast<std::size_t>(width));
    }
  }
  return {std::move(out.tensor)};
}

constexpr Row kPointwiseRows[] = {
    {"abs", unary<kAbs>},
    {"add", binary<kAdd>},
    {"add_any", binary<kAdd>},
    {"and", binary<kAnd>},
    {"clamp", ternary<kClamp>},
    {"clz", clz},
    {"complex", binary<kComplex>},
    {"conj", unary<kConj>},
    {"div", binary<kDiv>},
    {"eq", binary<kEq>},
    {"eq_to", binary<kEqTotal>},
    {"floor_quotient", binary<kFloorQuotient>},
    {"floor_remainder", binary<kFloorRemainder>},
    {"ge", binary<kSwapped<kLe>>},
    {"gt", binary<kSwapped<kLt>>},
    {"imag", unary<kImag>},
    {"is_finite", unary<kIsFinite>},
    {"le", binary<kLe>},
    {"le_to", binary<kLeTotal>},
    {"lt", binary<kLt>},
    {"lt_to", binary<kLtTotal>},
    {"max", binary<kMax>},
    {"min", binary<kMin>},
    {"mul", binary<kMul>},
    {"ne", binary<kNe>},
    {"neg", unary<kNeg>},
    {"not", unary<kNot>},
    {"or", binary<kOr>},
    {"population_count", population_count},
    {"real", unary<kReal>},
    {"rem", binary<kRem>},
    {"select_n", select_n},
    {"shift_left", shift_left},
    {"shift_right_arithmetic", shift_right_arithmetic},
    {"shift_right_logical", shift_right_logical},
    {"sign", unary<kSign>},
    {"square", unary<kSquare>},
    {"sub", binary<kSub>},
    {"xor", binary<kXor>},
};
static_assert(std::ranges::is_sorted(kPointwiseRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> pointwise_rows() { return kPointwiseRows; }
}  // namespace jaxport::eval
