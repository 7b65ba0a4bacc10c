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

// --- parts of formulas, on numbers, forms and uses
using std::abs, std::erf, std::exp, std::expm1, std::log1p, std::tanh;

constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;
constexpr double kSqrtTwoOverPi = std::numbers::inv_sqrtpi * std::numbers::sqrt2;
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

template <class T>
T softplus(const T& x) {
  return max(x, 0.0) + log1p(exp(-abs(x)));
}
template <class T>
T elu(const T& x, double alpha) {
  return max(x, 0.0) + alpha * expm1(min(x, 0.0));
}

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
constexpr Activation row(std::string_view name, AlphaRange alpha,
                         double (*solve)(const NumericFunction&), Formula) {
  return {name,
          [](double x, double a) { return Formula()(x, a); },
          [](const Form& x, double a) { return Formula()(x, a); },
          [](const Use& x, double a) { return Formula()(x, a); },
          alpha,
          solve};
}
template <class Formula>
constexpr Activation row(std::string_view name, Formula) {
  return row(name, {}, nullptr, [](const auto& x, double) { return Formula()(x); });
}

// Where two functions agree the earlier one wins: celu with alpha 1 is elu.
constexpr Activation kActivations[] = {
    row("gelu_tanh",
        [](const auto& x) {
          return x * (0.5 * (1.0 + tanh(kSqrtTwoOverPi * (x + 0.044715 * cube(x)))));
        }),
    row("gelu_erf", [](const auto& x) { return 0.5 * x * (1.0 + erf(x * kSqrtHalf)); }),
    row("silu", [](const auto& x) { return x * logistic(x); }),
    row("sigmoid", [](const auto& x) { return logistic(x); }),
    row("relu", [](const auto& x) { return max(x, 0.0); }),
    row("relu6", [](const auto& x) { return clamp(0.0, x, 6.0); }),
    row("softplus", [](const auto& x) { return softplus(x); }),
    row("mish", [](const auto& x) { return x * tanh(softplus(x)); }),
    row("selu", [](const auto& x) { return kSeluScale * elu(x, kSeluAlpha); }),
    row("hard_swish", [](const auto& x) { return x * (clamp(0.0, x + 3.0, 6.0) / 6.0); }),
    row("hard_sigmoid", {kTiny, kHuge}, slope_at_zero,
        [](const auto& x, double alpha) { return clamp(0.0, alpha * x + 0.5, 1.0); }),
    row("hard_tanh", [](const auto& x) { return clamp(-1.0, x, 1.0); }),
    row("softsign", [](const auto& x) { return x / (abs(x) + 1.0); }),
    row("leaky_relu", {kTiny, kHuge, false}, slope_below_zero,
        [](const auto& x, double alpha) { return max(x, 0.0) + alpha * min(x, 0.0); }),
    row("thresholded_relu", {0, kHuge, true, true}, threshold,
        [](const auto& x, double alpha) { return kept_above(x, alpha); }),
    row("elu", {kTiny, kHuge}, depth, [](const auto& x, double alpha) { return elu(x, alpha); }),
    row("celu", {kTiny, kHuge}, depth,
        [](const auto& x, double a) { return max(x, 0.0) + a * expm1(min(x, 0.0) / a); }),
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
