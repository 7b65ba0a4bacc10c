// SPDX-License-Identifier: Apache-2.0
// Conversions between dtypes.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "eval/eval.h"
#include "eval/map.h"
#include "jaxport/error.h"

namespace jaxport::eval {
namespace {

// Rounds toward zero; saturates; NaN gives 0. As XLA on CPU.
template <Integer T>
T saturated(double x, DType dtype) {
  if (std::isnan(x)) return 0;
  const double limit = std::ldexp(1.0, bit_width(dtype) - (is_signed(dtype) ? 1 : 0));
  if (x >= limit) return highest<T>(dtype);
  if (x <= (is_signed(dtype) ? -limit : 0.0)) return lowest<T>(dtype);
  return static_cast<T>(x);
}

template <class To, class From>
To convert(From x, DType dtype) {
  if constexpr (Complex<From> && Complex<To>) {
    return To(x);
  } else if constexpr (Boolean<To>) {
    return x != From{0};
  } else if constexpr (Complex<From>) {
    return convert<To>(x.real(), dtype);
  } else if constexpr (Integer<To> && Floating<From>) {
    return saturated<To>(x, dtype);
  } else if constexpr (Complex<To>) {
    return To(static_cast<typename To::value_type>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void convert_blocks(const Tensor& tensor, MutableTensor& out) {
  std::array<From, kBlock> x;
  std::array<To, kBlock> y;
  const std::int64_t total = tensor.size();
  for (std::int64_t begin = 0; begin < total; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, total - begin);
    load(tensor, begin, count, x.data());
    for (std::int64_t i = 0; i < count; ++i) y[i] = convert<To>(x[i], out.tensor.dtype);
    store(y.data(), count, out, begin);
  }
}

Results convert_element_type(const Call& c) {
  c.require_counts(1, 1);
  return {broadcast(c, cast(c.in[0], c.out_dtype()), c.out_shape())};
}

Results bitcast_convert_type(const Call& c) {
  c.require_counts(1, 1);
  const DType from = c.in[0].dtype, to = c.out_dtype();
  for (const DType dtype : {from, to}) {
    if (bit_width(dtype) % 8 != 0 || class_of(dtype) == Class::kNone) throw c.no_dtype(dtype);
  }
  Tensor out{.dtype = to, .shape = c.out_shape(), .data = c.in[0].data};
  c.require(out.nbytes() == c.in[0].nbytes(), "operand and result have different sizes");
  return {std::move(out)};
}

int exponent_bits(DType dtype) {
  if (dtype == DType::kF64) return 11;
  return dtype == DType::kF16 ? 5 : 8;
}

// Keeps `mantissa` bits, rounding to nearest even.
template <Floating T>
T round_mantissa(T x, std::int64_t mantissa) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const std::int64_t drop = std::numeric_limits<T>::digits - 1 - mantissa;
  if (drop <= 0) return x;
  auto bits = std::bit_cast<Bits>(x);
  const Bits odd = (bits >> drop) & 1;
  bits += (Bits{1} << (drop - 1)) - 1 + odd;
  return std::bit_cast<T>(static_cast<Bits>(bits >> drop << drop));
}

// A float of fewer bits in the place of a wider one: too large becomes infinite, subnormal zero.
Results reduce_precision(const Call& c) {
  c.require_counts(1, 1);
  const std::int64_t exponent = c.integer("exponent_bits"), mantissa = c.integer("mantissa_bits");
  c.require(exponent >= 1 && mantissa >= 0, "a float has at least one exponent bit");
  const bool narrower = exponent < exponent_bits(c.in[0].dtype);
  const int bias = narrower ? (1 << (exponent - 1)) - 1 : 0;
  return map<1>(c, [=]<Floating T>(T x) -> T {
    if (!std::isfinite(x)) return x;
    const T rounded = round_mantissa(x, mantissa);
    if (!narrower) return rounded;
    if (std::fabs(rounded) >= std::ldexp(T{1}, bias + 1)) {
      return std::copysign(std::numeric_limits<T>::infinity(), x);
    }
    return std::fabs(rounded) < std::ldexp(T{1}, 1 - bias) ? std::copysign(T{0}, x) : rounded;
  });
}

constexpr Row kConvertRows[] = {
    {"bitcast_convert_type", bitcast_convert_type},
    {"convert_element_type", convert_element_type},
    {"reduce_precision", reduce_precision},
};
static_assert(std::ranges::is_sorted(kConvertRows, {}, &Row::primitive));

}  // namespace

Tensor cast(const Tensor& tensor, DType dtype) {
  if (tensor.dtype == dtype) return tensor;
  MutableTensor out = allocate(dtype, tensor.shape);
  const auto refusal = [&] {
    return Error("E040",
                 fmt::format("no conversion from {} to {}", name_of(tensor.dtype), name_of(dtype)));
  };
  with_class(
      class_of(tensor.dtype),
      [&]<class From>(From) {
        with_class(
            class_of(dtype), [&]<class To>(To) { convert_blocks<From, To>(tensor, out); }, refusal);
      },
      refusal);
  return std::move(out.tensor);
}

std::span<const Row> convert_rows() { return kConvertRows; }
}  // namespace jaxport::eval
