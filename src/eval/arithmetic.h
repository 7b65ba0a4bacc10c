// SPDX-License-Identifier: Apache-2.0
// Arithmetic on compute types with JAX's rules, and the monoids that reductions fold with.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "eval/element.h"

namespace jaxport::eval {

// Integers wrap, so they are computed without sign.

constexpr auto kAdd = []<Number T>(T x, T y) -> T {
  if constexpr (Integer<T>)
    return static_cast<T>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y));
  return x + y;
};
constexpr auto kSub = []<Number T>(T x, T y) -> T {
  if constexpr (Integer<T>)
    return static_cast<T>(static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y));
  return x - y;
};
constexpr auto kMul = []<Number T>(T x, T y) -> T {
  if constexpr (Integer<T>)
    return static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  return x * y;
};
constexpr auto kNeg = []<Number T>(T x) -> T {
  if constexpr (Integer<T>) return static_cast<T>(-static_cast<std::uint64_t>(x));
  return -x;
};
// NaN wins, and +0 is larger than -0.
constexpr auto kMax = []<Ordered T>(T x, T y) -> T {
  if constexpr (Floating<T>) {
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
    if (x == y) return std::signbit(x) ? y : x;
  }
  return x > y ? x : y;
};
constexpr auto kMin = []<Ordered T>(T x, T y) -> T {
  if constexpr (Floating<T>) {
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
    if (x == y) return std::signbit(x) ? x : y;
  }
  return x < y ? x : y;
};
template <class T>
concept Bits = Boolean<T> || Integer<T>;

constexpr auto kAnd = []<Bits T>(T x, T y) -> T { return static_cast<T>(x & y); };
constexpr auto kOr = []<Bits T>(T x, T y) -> T { return static_cast<T>(x | y); };
constexpr auto kXor = []<Bits T>(T x, T y) -> T { return static_cast<T>(x ^ y); };
// An operation with the value that a fold over nothing gives.
struct Sum {
  static constexpr auto kOp = kAdd;
  template <class T>
  static T start(DType) {
    return T{0};
  }
};
struct Product {
  static constexpr auto kOp = kMul;
  template <class T>
  static T start(DType) {
    return T{1};
  }
};
struct Maximum {
  static constexpr auto kOp = kMax;
  template <class T>
  static T start(DType dtype) {
    return lowest<T>(dtype);
  }
};
struct Minimum {
  static constexpr auto kOp = kMin;
  template <class T>
  static T start(DType dtype) {
    return highest<T>(dtype);
  }
};
struct All {
  static constexpr auto kOp = kAnd;
  template <class T>
  static T start(DType) {
    return static_cast<T>(-1);
  }
};
struct Any {
  static constexpr auto kOp = kOr;
  template <class T>
  static T start(DType) {
    return T{0};
  }
};
struct Parity {
  static constexpr auto kOp = kXor;
  template <class T>
  static T start(DType) {
    return T{0};
  }
};

}  // namespace jaxport::eval
