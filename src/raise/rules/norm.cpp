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

#include "axis/graph/expr.h"
#include "axis/translate/size_value.h"
#include "raise/algebra/moment.h"
#include "raise/algebra/views.h"
#include "raise/engine/ops.h"
#include "raise/engine/rules.h"

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

// Every spelling of a norm has such a factor.
bool is_root(const axis::Node& node) {
  return node.kind == Kind::kPointwise &&
         (node.name == "rsqrt" || node.name == "sqrt" || node.name == "pow");
}

// (x - mean) * u^-1/2 * …, in any order and nesting
Use match_product(const Matcher& m, const Use& root, bool center) {
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
    if (!found->problem.empty()) return m.miss(root, found->problem);
    const double coefficient = found->rest.coefficient / std::sqrt(moment->ratio);
    return multiply(coefficient, found->norm, found->rest.powers);
  }
  return {};
}

struct NormSummand {
  double sign;
  Use use;
  Product product;
};

constexpr int kMaxSummandDepth = 3;

void collect_summands(Graph& graph, const Use& use, double sign, int depth,
                      std::vector<NormSummand>& into) {
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
Use cancel_mean(Graph& graph, const NormSummand& a, std::size_t root, const NormSummand& b,
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

Use add_others(Use result, const std::vector<NormSummand>& summands, std::size_t i, std::size_t j) {
  for (std::size_t k = 0; k < summands.size(); ++k) {
    if (k == i || k == j) continue;
    result = summands[k].sign > 0 ? result + summands[k].use : result - summands[k].use;
  }
  return result;
}

// x * i * w + (b - mean * i * w), the spelling of keras
Use match_sum(const Matcher& m, const Use& root) {
  std::vector<NormSummand> summands;
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
  return match_product(m, root, true);
}

Use match_rms_norm(const Matcher& m, const Use& root) {
  if (!has_norm_dtype(root)) return {};
  return match_product(m, root, false);
}

}  // namespace

Rules norm_rules() {
  static const Rule kRules[] = {
      {"layer_norm", {"add", "div", "mul", "sub"}, match_layer_norm},
      {"rms_norm", {"div", "mul"}, match_rms_norm},
  };
  return kRules;
}

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
