// SPDX-License-Identifier: Apache-2.0
// layer_norm(x) = (x - mean_a x) / sqrt(mean_a (x - mean_a x)^2 + eps)
// rms_norm(x)   = x / sqrt(mean_a x^2 + eps)
// x / sqrt(sum_a x^2) is an rms norm divided by sqrt(n).
//
// The variance may be written in one pass, E[x^2] - E[x]^2, with or without a
// clamp at zero. That form loses digits in f32 when |mean| is much larger than the deviation; the
// macro stands for the two-pass form, which is at least as accurate.
#include <algorithm>
#include <cmath>

#include "axis/expr.h"
#include "axis/size_value.h"
#include "raise/moment.h"
#include "raise/ops.h"
#include "raise/rules.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Binding;
using axis::Graph;
using axis::Kind;
using axis::Labels;
using axis::Use;

Use norm(const Use& x, const Labels& over, const Moment& moment) {
  return make(NormOp{.x = x,
                     .along = over,
                     .center = moment.center,
                     .eps = as_written(moment.eps, x.node->dtype)},
              x.flat());
}

// The last axes of x, as it is seen, are `over`.
bool is_trailing(const Use& x, const Labels& over) {
  const Labels all = x.flat();
  const auto count = static_cast<std::ptrdiff_t>(std::min(all.size(), over.size()));
  return same_set(Labels(all.end() - count, all.end()), over);
}

// For sums of squares two transposes cost more than a norm of other axes saves.
bool is_worth_it(const Use& x, const Labels& over, const Moment& moment) {
  return moment.ratio == 1 || is_trailing(x, over);
}

// The norm and what it is multiplied with, or why it is nearly one.
struct Normalised {
  Use norm;
  Product rest;
  std::string problem;
};

// x among the factors.
std::optional<Normalised> normalised_value(Graph& graph, const Product& product,
                                           const Moment& moment) {
  Binding binding;
  auto rest = quotient(graph, product, moment.x.of, binding);
  if (!rest) return std::nullopt;
  const Use x = Graph::substitute(moment.x.of, binding);
  const Labels over = resolve_all(moment.x.over, binding);
  if (!moment.problem.empty()) return Normalised{{}, {}, moment.problem};
  if (!is_subset(over, x.flat()) || !is_worth_it(x, over, moment)) return std::nullopt;
  return Normalised{norm(x, over, moment), *std::move(rest), ""};
}

// x - mean_a x among the factors.
std::optional<Normalised> normalised_deviation(Graph& graph, const Product& product,
                                               const Moment& moment) {
  for (std::size_t i = 0; i < product.powers.size(); ++i) {
    if (product.powers[i].exponent != 1) continue;
    const auto deviation = centred(graph, product.powers[i].base);
    Binding binding;
    if (!deviation || !graph.same(deviation->of, moment.x.of, binding)) continue;
    const Labels over = resolve_all(moment.x.over, binding);
    if (!moment.problem.empty()) return Normalised{{}, {}, moment.problem};
    if (!is_worth_it(deviation->of, over, moment)) return std::nullopt;
    if (!is_subset(over, deviation->of.flat()) || !same_set(deviation->over, over)) {
      return Normalised{{}, {}, "the mean runs over other axes than the variance"};
    }
    return Normalised{norm(deviation->of, over, moment),
                      {product.coefficient, all_but(product.powers, i, i)},
                      ""};
  }
  return std::nullopt;
}

// The anchor of every spelling.
bool is_root(const axis::Node& node) {
  return node.kind == Kind::kPointwise &&
         (node.name == "rsqrt" || node.name == "sqrt" || node.name == "pow");
}

// (x - mean) * u^-1/2 * …, in any order and nesting
Use match_product(const Matcher& m, const Use& root, bool center, std::string_view rule) {
  if (!has_factor(*root.node, is_root)) return {};
  const Product product = factors(m.graph, root);
  for (std::size_t i = 0; i < product.powers.size(); ++i) {
    if (product.powers[i].exponent != -0.5) continue;
    const auto moment = moment_of(m.graph, product.powers[i].base);
    if (!moment || moment->center != center) continue;
    const Product others{product.coefficient, all_but(product.powers, i, i)};
    const auto found = center ? normalised_deviation(m.graph, others, *moment)
                              : normalised_value(m.graph, others, *moment);
    if (!found) continue;
    if (!found->problem.empty()) return m.miss(rule, root, found->problem);
    const double coefficient = found->rest.coefficient / std::sqrt(moment->ratio);
    return multiply(coefficient, found->norm, found->rest.powers);
  }
  return {};
}

struct Summand {
  double sign;
  Use use;
  Product product;
};

constexpr int kMaxSummandDepth = 3;

void collect_summands(Graph& graph, const Use& use, double sign, int depth,
                      std::vector<Summand>& into) {
  const bool is_sub = is_pointwise(use, "sub");
  if (depth > 0 && (is_sub || is_pointwise(use, "add"))) {
    collect_summands(graph, graph.child(use, 0), sign, depth - 1, into);
    collect_summands(graph, graph.child(use, 1), is_sub ? -sign : sign, depth - 1, into);
    return;
  }
  into.push_back({sign, use, {}});
  if (has_factor(*use.node, is_root)) into.back().product = factors(graph, use);
}

// `rest` is `others` and one more factor: returns that one.
const Power* single_extra(const std::vector<Power>& rest, const std::vector<Power>& others) {
  if (rest.size() != others.size() + 1) return nullptr;
  const Power* extra = nullptr;
  for (const Power& power : rest) {
    if (std::ranges::find(others, power) != others.end()) continue;
    if (extra) return nullptr;
    extra = &power;
  }
  return extra;
}

// a = x * i * w and b = -mean_a(x) * i * w, where i = u^-1/2 is factor `root` of a. Returns
// norm(x) * w.
Use cancel_mean(Graph& graph, const Summand& a, std::size_t root, const Summand& b,
                const Moment& moment) {
  const auto& powers = a.product.powers;
  const auto inverse = std::ranges::find(b.product.powers, powers[root]);
  if (inverse == b.product.powers.end()) return {};
  const auto at = static_cast<std::size_t>(inverse - b.product.powers.begin());
  Binding binding;
  const auto rest =
      quotient(graph, {a.product.coefficient, all_but(powers, root, root)}, moment.x.of, binding);
  if (!rest) return {};
  const std::vector<Power> b_rest = all_but(b.product.powers, at, at);
  const Power* sum = single_extra(b_rest, rest->powers);
  if (!sum || sum->exponent != 1 || !is_sum(sum->base)) return {};
  const Use x = Graph::substitute(moment.x.of, binding);
  const Labels over = resolve_all(moment.x.over, binding);
  const Reduction total = reduced(graph, sum->base);
  Binding total_binding;
  if (!graph.same(x, total.of, total_binding) ||
      !same_set(resolve_all(total.over, total_binding), over)) {
    return {};
  }
  const Dim count = graph.size_of(over);
  if (!count.is_static()) return {};
  const auto n = static_cast<double>(count.value());
  const double coefficient = a.sign * rest->coefficient;
  if (!near(b.sign * b.product.coefficient * n, -coefficient, x.node->dtype)) return {};
  return multiply(coefficient, norm(x, over, moment), rest->powers);
}

Use add_others(Use result, const std::vector<Summand>& summands, std::size_t i, std::size_t j) {
  for (std::size_t k = 0; k < summands.size(); ++k) {
    if (k == i || k == j) continue;
    result = summands[k].sign > 0 ? result + summands[k].use : result - summands[k].use;
  }
  return result;
}

// x * i * w + (b - mean * i * w), the spelling of keras
Use match_sum(const Matcher& m, const Use& root) {
  std::vector<Summand> summands;
  collect_summands(m.graph, root, 1, kMaxSummandDepth, summands);
  for (std::size_t i = 0; i < summands.size(); ++i) {
    const auto& powers = summands[i].product.powers;
    for (std::size_t k = 0; k < powers.size(); ++k) {
      if (powers[k].exponent != -0.5) continue;
      const auto moment = moment_of(m.graph, powers[k].base);
      if (!moment || !moment->center || moment->ratio != 1 || !moment->problem.empty()) continue;
      for (std::size_t j = 0; j < summands.size(); ++j) {
        if (i == j) continue;
        Use found = cancel_mean(m.graph, summands[i], k, summands[j], *moment);
        if (found) return add_others(std::move(found), summands, i, j);
      }
    }
  }
  return {};
}

// 16-bit models normalise in f32 between two conversions, which stay outside.
bool has_norm_dtype(const Use& root) {
  return root.node->dtype == DType::kF32 || root.node->dtype == DType::kF64;
}

Use match_layer_norm(const Matcher& m, const Use& root) {
  if (!has_norm_dtype(root)) return {};
  if (root.node->name == "add" || root.node->name == "sub") return match_sum(m, root);
  return match_product(m, root, true, "layer_norm");
}

Use match_rms_norm(const Matcher& m, const Use& root) {
  if (!has_norm_dtype(root)) return {};
  return match_product(m, root, false, "rms_norm");
}

constexpr std::string_view kLayerNormRoots[] = {"add", "div", "mul", "sub"};
constexpr std::string_view kLayerNormNearMisses[] = {
    // The mean runs over axis 0, the variance over axis 1.
    R"(func @mean_of_other_axis(%x: f32[4,4]) -> (%y) {
  %n: f32[] = constant 4.0
  %eps: f32[] = constant 1e-06
  %sum: f32[4] = reduce_sum %x {axes = (1)}
  %mean: f32[4] = div %sum %n
  %col: f32[4,1] = broadcast_in_dim %mean {shape = (4, 1), broadcast_dimensions = (0)}
  %dif: f32[4,4] = sub %x %col
  %sq: f32[4,4] = square %dif
  %ssq: f32[4] = reduce_sum %sq {axes = (1)}
  %var: f32[4] = div %ssq %n
  %safe: f32[4] = add %var %eps
  %inv: f32[4] = rsqrt %safe
  %scale: f32[4,1] = broadcast_in_dim %inv {shape = (4, 1), broadcast_dimensions = (0)}
  %sum0: f32[4] = reduce_sum %x {axes = (0)}
  %mean0: f32[4] = div %sum0 %n
  %row: f32[1,4] = broadcast_in_dim %mean0 {shape = (1, 4), broadcast_dimensions = (1)}
  %off: f32[4,4] = sub %x %row
  %y: f32[4,4] = mul %off %scale
  return %y
})",
    // jnp.var(ddof=1)
    R"(func @ddof_1(%x: f32[B,8]) -> (%y) {
  %n: f32[] = constant 8.0
  %m: f32[] = constant 7.0
  %eps: f32[] = constant 1e-05
  %sum: f32[B] = reduce_sum %x {axes = (1)}
  %col: f32[B,1] = broadcast_in_dim %sum {shape = (B, 1), broadcast_dimensions = (0)}
  %mean: f32[B,1] = div %col %n
  %dif: f32[B,8] = sub %x %mean
  %sq: f32[B,8] = square %dif
  %ssq: f32[B] = reduce_sum %sq {axes = (1)}
  %ssc: f32[B,1] = broadcast_in_dim %ssq {shape = (B, 1), broadcast_dimensions = (0)}
  %var: f32[B,1] = div %ssc %m
  %safe: f32[B,1] = add %var %eps
  %std: f32[B,1] = sqrt %safe
  %y: f32[B,8] = div %dif %std
  return %y
})",
};
// flax.nnx.LayerNorm without scale and bias
const Rule kLayerNorm{
    .name = "layer_norm",
    .roots = kLayerNormRoots,
    .match = match_layer_norm,
    .sample = R"(func @layer_norm(%x: f32[B,3,8]) -> (%y) {
  %n: f32[] = constant 8.0
  %zero: f32[] = constant 0.0
  %eps: f32[] = constant 1e-06
  %sq: f32[B,3,8] = square %x
  %sum: f32[B,3] = reduce_sum %x {axes = (2)}
  %mean: f32[B,3] = div %sum %n
  %ssq: f32[B,3] = reduce_sum %sq {axes = (2)}
  %msq: f32[B,3] = div %ssq %n
  %sqm: f32[B,3] = square %mean
  %dif: f32[B,3] = sub %msq %sqm
  %var: f32[B,3] = max %zero %dif
  %mean1: f32[B,3,1] = reshape %mean {new_sizes = (B, 3, 1)}
  %var1: f32[B,3,1] = reshape %var {new_sizes = (B, 3, 1)}
  %cen: f32[B,3,8] = sub %x %mean1
  %safe: f32[B,3,1] = add %var1 %eps
  %inv: f32[B,3,1] = rsqrt %safe
  %y: f32[B,3,8] = mul %cen %inv
  return %y
})",
    .near_misses = kLayerNormNearMisses,
};

constexpr std::string_view kRmsNormRoots[] = {"div", "mul"};
constexpr std::string_view kRmsNormNearMisses[] = {
    R"(func @rms_count_is_less_1(%x: f32[B,8]) -> (%y) {
  %m: f32[] = constant 7.0
  %eps: f32[] = constant 1e-06
  %sq: f32[B,8] = square %x
  %ssq: f32[B] = reduce_sum %sq {axes = (1)}
  %msq: f32[B] = div %ssq %m
  %safe: f32[B] = add %msq %eps
  %inv: f32[B] = rsqrt %safe
  %col: f32[B,1] = reshape %inv {new_sizes = (B, 1)}
  %y: f32[B,8] = mul %x %col
  return %y
})",
    // The clamp sees the mean square less 0.2, which may be negative.
    R"(func @clamp_takes_effect(%x: f32[B,8]) -> (%y) {
  %n: f32[] = constant 8.0
  %less: f32[] = constant 0.2
  %zero: f32[] = constant 0.0
  %eps: f32[] = constant 0.3
  %sq: f32[B,8] = square %x
  %ssq: f32[B] = reduce_sum %sq {axes = (1)}
  %msq: f32[B] = div %ssq %n
  %dif: f32[B] = sub %msq %less
  %max: f32[B] = max %dif %zero
  %safe: f32[B] = add %max %eps
  %inv: f32[B] = rsqrt %safe
  %col: f32[B,1] = reshape %inv {new_sizes = (B, 1)}
  %y: f32[B,8] = mul %x %col
  return %y
})"};
// equinox.nn.RMSNorm without scale
const Rule kRmsNorm{
    .name = "rms_norm",
    .roots = kRmsNormRoots,
    .match = match_rms_norm,
    .sample = R"(func @rms_norm(%x: f32[B,8]) -> (%y) {
  %n: f32[] = constant 8.0
  %eps: f32[] = constant 1e-05
  %sq: f32[B,8] = integer_pow %x {y = 2}
  %ssq: f32[B] = reduce_sum %sq {axes = (1)}
  %msq: f32[B] = div %ssq %n
  %safe: f32[B] = add %msq %eps
  %inv: f32[B] = rsqrt %safe
  %col: f32[B,1] = broadcast_in_dim %inv {shape = (B, 1), broadcast_dimensions = (0)}
  %y: f32[B,8] = mul %col %x
  return %y
})",
    .near_misses = kRmsNormNearMisses,
};

constexpr const Rule* kRules[] = {&kLayerNorm, &kRmsNorm};

}  // namespace

Rules norm_rules() { return kRules; }

Use NormOp::expand() const {
  const DType dtype = sum_type(x.node->dtype);
  axis::Graph& graph = *x.node->graph;
  const Use n = convert(axis::size_as_value(graph, graph.size_of(along), DType::kI64), dtype);
  const auto mean = [&](const Use& of) { return reduce_sum(of, along) / n; };
  Use y = convert(x, dtype);
  if (center) y = y - mean(y);
  y = y * rsqrt(mean(y * y) + eps);
  if (scale) y = y * convert(scale, dtype);
  if (bias) y = y + convert(bias, dtype);
  return convert(y, x.node->dtype);
}

}  // namespace jaxport::raise
