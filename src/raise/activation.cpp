// SPDX-License-Identifier: Apache-2.0
#include "raise/activation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Use;

// --- numbers: what <cmath> lacks
double max(double a, double b) { return nan_max(a, b); }
double min(double a, double b) { return -nan_max(-a, -b); }
double clamp(double lo, double x, double hi) { return min(max(x, lo), hi); }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double cube(double x) { return x * x * x; }
double kept_above(double x, double threshold) { return x > threshold ? x : 0; }

// --- expressions
Expr apply(std::string_view name, const Expr& x, front::Attrs attrs = {}) {
  return {x.graph, x.graph->pointwise(name, {x.use}, x.use.node->dtype, std::move(attrs))};
}
Expr apply(std::string_view name, const Expr& a, const Expr& b) {
  return {a.graph, a.graph->pointwise(name, {a.use, b.use}, a.use.node->dtype)};
}
Expr literal(double value, const Expr& like) {
  return {like.graph, like.graph->scalar(value, like.use.node->dtype)};
}
Expr operator+(const Expr& a, const Expr& b) { return apply("add", a, b); }
Expr operator+(const Expr& a, double b) { return apply("add", a, literal(b, a)); }
Expr operator+(double a, const Expr& b) { return apply("add", literal(a, b), b); }
Expr operator*(const Expr& a, const Expr& b) { return apply("mul", a, b); }
Expr operator*(const Expr& a, double b) { return apply("mul", a, literal(b, a)); }
Expr operator*(double a, const Expr& b) { return apply("mul", literal(a, b), b); }
Expr operator/(const Expr& a, const Expr& b) { return apply("div", a, b); }
Expr operator/(const Expr& a, double b) { return apply("div", a, literal(b, a)); }
Expr operator-(const Expr& x) { return apply("neg", x); }
Expr max(const Expr& a, double b) { return apply("max", a, literal(b, a)); }
Expr min(const Expr& a, double b) { return apply("min", a, literal(b, a)); }
Expr abs(const Expr& x) { return apply("abs", x); }
Expr erf(const Expr& x) { return apply("erf", x); }
Expr exp(const Expr& x) { return apply("exp", x); }
Expr expm1(const Expr& x) { return apply("expm1", x); }
Expr log1p(const Expr& x) { return apply("log1p", x); }
Expr logistic(const Expr& x) { return apply("logistic", x); }
Expr tanh(const Expr& x) { return apply("tanh", x); }
Expr cube(const Expr& x) { return apply("integer_pow", x, {{"y", front::Attr{std::int64_t{3}}}}); }
// x above the threshold, 0 elsewhere
Expr kept_above(const Expr& x, double threshold) {
  Graph& graph = *x.graph;
  const Use above = graph.pointwise("gt", {x.use, literal(threshold, x).use}, DType::kBool);
  return {x.graph,
          graph.pointwise("select_n", {above, literal(0, x).use, x.use}, x.use.node->dtype)};
}
Expr clamp(double lo, const Expr& x, double hi) {
  const DType dtype = x.use.node->dtype;
  return {x.graph,
          x.graph->pointwise("clamp", {literal(lo, x).use, x.use, literal(hi, x).use}, dtype)};
}

// --- formulas, on numbers and on expressions
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

template <class Formula>
constexpr Activation row(std::string_view name, AlphaRange alpha = {}) {
  return {name, [](double x, double a) { return Formula::of(x, a); },
          [](Expr x, double a) { return Formula::of(x, a); }, alpha};
}

constexpr double kTiny = std::numeric_limits<double>::min();
constexpr double kHuge = std::numeric_limits<double>::max();

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
    row<HardSigmoid>("hard_sigmoid", {kTiny, kHuge}),
    row<HardTanh>("hard_tanh"),
    row<Softsign>("softsign"),
    row<LeakyRelu>("leaky_relu", {kTiny, kHuge, false}),
    row<ThresholdedRelu>("thresholded_relu", {0, kHuge}),
    row<Elu>("elu", {kTiny, kHuge}),
    row<Celu>("celu", {kTiny, kHuge}),
};

}  // namespace

std::span<const Activation> activations() { return kActivations; }

double nan_max(double a, double b) { return a > b || std::isnan(a) ? a : b; }

const Activation* find_activation(std::string_view name) {
  const auto* found = std::ranges::find(kActivations, name, &Activation::name);
  return found == std::end(kActivations) ? nullptr : found;
}

Use expand_activation(Graph& graph, const Use& use) {
  const Activation* activation = find_activation(use.node->name);
  if (!activation) return {};
  return activation->formula({&graph, graph.child(use, 0)}, number(*use.node, "alpha")).use;
}

}  // namespace jaxport::raise
