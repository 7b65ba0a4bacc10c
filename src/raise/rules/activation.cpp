// SPDX-License-Identifier: Apache-2.0
#include "raise/rules/activation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "axis/graph/expr.h"
#include "raise/algebra/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Use;

// --- numbers: what <cmath> and form.h lack
double clamp(double lo, double x, double hi) { return min(max(x, lo), hi); }
double cube(double x) { return x * x * x; }
double kept_above(double x, double threshold) { return x > threshold ? x : 0; }

// --- forms: what form.h lacks
Form cube(const Form& x) { return power(x, 3); }
Form clamp(double lo, const Form& x, double hi) { return min(max(x, lo), hi); }
Form kept_above(const Form& x, double threshold) {
  const Form zero(x.piece(), 0);
  return compare(x, Form(x.piece(), threshold)) > 0 ? x : zero;
}

// --- uses: what axis/graph/expr.h lacks
Use cube(const Use& x) { return integer_pow(x, 3); }
Use kept_above(const Use& x, double threshold) { return select(gt(x, threshold), x, 0); }

// --- formulas, on numbers, forms and uses
using std::abs, std::erf, std::exp, std::expm1, std::log1p, std::tanh;

constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;
constexpr double kSqrtTwoOverPi = std::numbers::inv_sqrtpi * std::numbers::sqrt2;
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

struct GeluTanh {
  template <class T>
  static T of(const T& x, double) {
    return x * (0.5 * (1.0 + tanh(kSqrtTwoOverPi * (x + 0.044715 * cube(x)))));
  }
};
struct GeluErf {
  template <class T>
  static T of(const T& x, double) {
    return 0.5 * x * (1.0 + erf(x * kSqrtHalf));
  }
};
struct Silu {
  template <class T>
  static T of(const T& x, double) {
    return x * logistic(x);
  }
};
struct Sigmoid {
  template <class T>
  static T of(const T& x, double) {
    return logistic(x);
  }
};
struct Relu {
  template <class T>
  static T of(const T& x, double) {
    return max(x, 0.0);
  }
};
struct Relu6 {
  template <class T>
  static T of(const T& x, double) {
    return clamp(0.0, x, 6.0);
  }
};
struct HardTanh {
  template <class T>
  static T of(const T& x, double) {
    return clamp(-1.0, x, 1.0);
  }
};
struct HardSigmoid {
  template <class T>
  static T of(const T& x, double alpha) {
    return clamp(0.0, alpha * x + 0.5, 1.0);
  }
};
struct HardSwish {
  template <class T>
  static T of(const T& x, double) {
    return x * (clamp(0.0, x + 3.0, 6.0) / 6.0);
  }
};
struct Softplus {
  template <class T>
  static T of(const T& x, double) {
    return max(x, 0.0) + log1p(exp(-abs(x)));
  }
};
struct Mish {
  template <class T>
  static T of(const T& x, double) {
    return x * tanh(Softplus::of(x, 0));
  }
};
struct Softsign {
  template <class T>
  static T of(const T& x, double) {
    return x / (abs(x) + 1.0);
  }
};
struct ThresholdedRelu {
  template <class T>
  static T of(const T& x, double alpha) {
    return kept_above(x, alpha);
  }
};
struct LeakyRelu {
  template <class T>
  static T of(const T& x, double alpha) {
    return max(x, 0.0) + alpha * min(x, 0.0);
  }
};
struct Elu {
  template <class T>
  static T of(const T& x, double alpha) {
    return max(x, 0.0) + alpha * expm1(min(x, 0.0));
  }
};
struct Selu {
  template <class T>
  static T of(const T& x, double) {
    return kSeluScale * Elu::of(x, kSeluAlpha);
  }
};
struct Celu {
  template <class T>
  static T of(const T& x, double alpha) {
    return max(x, 0.0) + alpha * expm1(min(x, 0.0) / alpha);
  }
};

// --- parameters, from the values of the function

constexpr double kTiny = std::numeric_limits<double>::min();
constexpr double kHuge = std::numeric_limits<double>::max();
double slope_below_zero(const NumericFunction& f) { return -f(-1); }
double depth(const NumericFunction& f) { return -f(-kInfinity); }

// Of a function that is 1/2 at zero and rises to 1: half way up no digits are lost.
double slope_at_zero(const NumericFunction& f) {
  constexpr int kMaxSteps = 100;
  if (f(0) != 0.5) return std::nan("");
  double end = 1;
  for (int i = 0; i < kMaxSteps && f(end) >= 1; ++i) end /= 2;
  for (int i = 0; i < kMaxSteps && f(end) < 1; ++i) end *= 2;
  return (f(end / 2) - 0.5) / (end / 2);
}

// Of a function that keeps large numbers: the largest that it does not keep.
double threshold(const NumericFunction& f) {
  if (f(kHuge) != kHuge) return std::nan("");
  auto lost = std::uint64_t{0}, kept = std::bit_cast<std::uint64_t>(kHuge);
  while (kept - lost > 1) {
    const std::uint64_t middle = lost + (kept - lost) / 2;
    const auto x = std::bit_cast<double>(middle);
    (f(x) == x ? kept : lost) = middle;
  }
  return std::bit_cast<double>(lost);
}

template <class Formula>
constexpr Activation row(std::string_view name, AlphaRange alpha = {},
                         double (*solve)(const NumericFunction&) = nullptr) {
  return {name,
          [](double x, double a) { return Formula::of(x, a); },
          [](const Form& x, double a) { return Formula::of(x, a); },
          [](const Use& x, double a) { return Formula::of(x, a); },
          alpha,
          solve};
}

// Where two functions agree the earlier one wins: celu with alpha 1 is elu.
constexpr Activation kActivations[] = {
    row<GeluTanh>("gelu_tanh"),
    row<GeluErf>("gelu_erf"),
    row<Silu>("silu"),
    row<Sigmoid>("sigmoid"),
    row<Relu>("relu"),
    row<Relu6>("relu6"),
    row<Softplus>("softplus"),
    row<Mish>("mish"),
    row<Selu>("selu"),
    row<HardSwish>("hard_swish"),
    row<HardSigmoid>("hard_sigmoid", {kTiny, kHuge}, slope_at_zero),
    row<HardTanh>("hard_tanh"),
    row<Softsign>("softsign"),
    row<LeakyRelu>("leaky_relu", {kTiny, kHuge, false}, slope_below_zero),
    row<ThresholdedRelu>("thresholded_relu", {0, kHuge, true, true}, threshold),
    row<Elu>("elu", {kTiny, kHuge}, depth),
    row<Celu>("celu", {kTiny, kHuge}, depth),
};

}  // namespace

std::span<const Activation> activations() { return kActivations; }

const Activation* find_activation(std::string_view name) {
  const auto* found = std::ranges::find(kActivations, name, &Activation::name);
  return found == std::end(kActivations) ? nullptr : found;
}

double alpha_of(const axis::Node& node) { return read_attrs<AlphaAttr>(node.attrs).alpha; }

Use expand_activation(Graph& graph, const Use& use) {
  return find_activation(use.node->name)->formula(graph.child(use, 0), alpha_of(*use.node));
}

}  // namespace jaxport::raise
