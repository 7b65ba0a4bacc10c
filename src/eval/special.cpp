// SPDX-License-Identifier: Apache-2.0
#include "eval/special.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "support/dtype.h"

namespace jaxport::eval {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// erf(y) - x without cancellation near 1, for y and x of at least 0.
double erf_error(double y, double x) { return x < 0.5 ? std::erf(y) - x : (1 - x) - std::erfc(y); }

// log(x) - 1/(2x) - sum of B(2k) / (2k x^2k), for x of at least 10.
double digamma_asymptotic(double x) {
  const double r = 1 / (x * x);
  const double series =
      r *
      (1.0 / 12 -
       r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * 691.0 / 32760)))));
  return std::log(x) - 0.5 / x - series;
}

}  // namespace

// A closed approximation (good to 2e-3), then Halley steps, each of which triples the digits.
double erf_inv(double x) {
  const double magnitude = std::fabs(x);
  if (!(magnitude <= 1)) return kNaN;
  if (magnitude == 1) return std::copysign(kInfinity, x);
  const double log_term = std::log1p(-magnitude * magnitude);
  const double half = 2 / (std::numbers::pi * 0.147) + log_term / 2;
  double y = std::sqrt(std::sqrt(half * half - log_term / 0.147) - half);
  for (int step = 0; step < 3; ++step) {
    const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-y * y);
    const double newton = erf_error(y, magnitude) / slope;
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

double digamma(double x) {
  if (x <= 0) {
    if (std::floor(x) == x) return kNaN;
    // digamma(x) = digamma(1 - x) - pi / tan(pi x); the tangent has period 1.
    return digamma(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * (x - std::round(x)));
  }
  if (std::isinf(x)) return x;
  double shift = 0;
  for (; x < 10; ++x) shift += 1 / x;
  return digamma_asymptotic(x) - shift;
}

}  // namespace jaxport::eval
