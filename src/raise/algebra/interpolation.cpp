// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/interpolation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/preferences.h"

namespace jaxport::raise {
namespace {

double linear(double distance) { return std::max(0.0, 1 - distance); }

// Keys' kernel with a = -0.5
double cubic(double distance) {
  if (distance >= 2) return 0;
  if (distance >= 1) return ((-0.5 * distance + 2.5) * distance - 4) * distance + 2;
  return (1.5 * distance - 2.5) * distance * distance + 1;
}

struct Kernel {
  std::string_view mode;
  double (*weight)(double distance);
};
constexpr Kernel kKernels[] = {{"linear", linear}, {"cubic", cubic}};

// Where element j of the result lies among `from` elements: coordinate_transformation_mode
// half_pixel.
double place(std::int64_t j, std::int64_t from, std::int64_t to) {
  const float scale = static_cast<float>(to) / static_cast<float>(from);
  return static_cast<double>((static_cast<float>(j) + 0.5F) / scale - 0.5F);
}

// The weights of all elements for one place; those outside of the axis go to those inside
// (exclude_outside).
std::vector<double> column(const Kernel& kernel, double at, std::int64_t from, double stretch) {
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t i = 0; i < from; ++i) {
    weights.push_back(kernel.weight(std::abs(at - static_cast<double>(i)) / stretch));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

bool gives(const Kernel& kernel, bool antialias, const Tensor& weights) {
  const std::int64_t from = weights.shape[0], to = weights.shape[1];
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  const double stretch = antialias ? std::max(ratio, 1.0) : 1.0;
  const double rounding = std::ldexp(1, -mantissa_bits(weights.dtype) - 1);
  for (std::int64_t j = 0; j < to; ++j) {
    const std::vector<double> want = column(kernel, place(j, from, to), from, stretch);
    for (std::int64_t i = 0; i < from; ++i) {
      const double w = want[i], off = weights.at(i * to + j) - w;
      if (!(std::abs(off) <= Preferences::kResizeError + rounding * std::abs(w))) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Interpolation> interpolation_by(const Tensor& weights) {
  if (weights.shape[0] == weights.shape[1]) return std::nullopt;
  for (const Kernel& kernel : kKernels) {
    const bool plain = gives(kernel, false, weights);
    const bool shrinks = weights.shape[0] > weights.shape[1];
    const bool antialias = shrinks ? gives(kernel, true, weights) : plain;
    if (plain || antialias) return Interpolation{kernel.mode, plain, antialias};
  }
  return std::nullopt;
}

// JAX takes floor((j + 1/2) from / to); Resize rounds its place, ties upwards (round_prefer_ceil).
std::optional<Interpolation> interpolation_at(const Tensor& indices, std::int64_t from) {
  const std::int64_t to = indices.size();
  if (from == to) return std::nullopt;
  for (std::int64_t j = 0; j < to; ++j) {
    const std::int64_t exact = (2 * j + 1) * from / (2 * to);
    const auto rounded = static_cast<std::int64_t>(std::round(place(j, from, to)));
    if (indices.int_at(j) != exact || std::clamp<std::int64_t>(rounded, 0, from - 1) != exact) {
      return std::nullopt;
    }
  }
  return Interpolation{"nearest"};
}

bool are_means(const Tensor& weights) {
  const std::int64_t from = weights.shape[0], to = weights.shape[1];
  const double rounding = std::ldexp(static_cast<double>(from), -mantissa_bits(weights.dtype));
  for (std::int64_t j = 0; j < to; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < from; ++i) sum += weights.at(i * to + j);
    if (!(std::abs(sum - 1) <= rounding)) return false;
  }
  return true;
}

}  // namespace jaxport::raise
