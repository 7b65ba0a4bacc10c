// SPDX-License-Identifier: Apache-2.0
#include "raise/moment.h"

namespace jaxport::raise {
namespace {

using axis::Binding;
using axis::Graph;
using axis::Use;

// coefficient * sum_a y^2 -> y, a
std::optional<Moment> mean_square(Graph& graph, const Term& term) {
  const DType dtype = term.use.node->dtype;
  const Product product = factors(graph, term.use);
  for (const Power& power : product.powers) {
    if (power.exponent != 1 || !is_sum(power.base)) continue;
    Reduction sum = reduced(graph, power.base);
    const Use y = squared(graph, sum.of);
    if (!y) continue;
    const Dim count = graph.size_of(sum.over);
    const auto ratio = mean_ratio(graph, product, power, count);
    if (!ratio) return std::nullopt;
    Moment moment;
    moment.x = {y, sum.over};
    const double weight = *ratio * term.coefficient;
    if (near(weight, 1, dtype)) return moment;
    if (!count.is_static()) return std::nullopt;
    const auto n = static_cast<double>(count.value());
    if (weight == n) {
      moment.ratio = n;
    } else if (near(weight * (n - 1), n, dtype)) {
      moment.problem = "the count is n-1 (ddof=1)";
    } else {
      return std::nullopt;
    }
    return moment;
  }
  return std::nullopt;
}

// mean_a y^2: a variance when y = x - mean_a x
std::optional<Moment> two_pass(Graph& graph, const Term& term) {
  auto moment = mean_square(graph, term);
  if (!moment) return std::nullopt;
  const auto deviation = centred(graph, moment->x.of);
  if (deviation && same_set(deviation->over, moment->x.over)) {
    moment->center = true;
    moment->x.of = deviation->of;
  }
  return moment;
}

// mean_a x^2 - (mean_a x)^2
std::optional<Moment> one_pass(Graph& graph, const Term& squares, const Term& mean) {
  auto moment = mean_square(graph, squares);
  if (!moment || moment->ratio != 1 || mean.coefficient >= 0) return std::nullopt;
  const Product product = factors(graph, mean.use);
  for (const Power& power : product.powers) {
    if (power.exponent != 2 || !is_sum(power.base)) continue;
    const Reduction sum = reduced(graph, power.base);
    Binding binding;
    if (!graph.same(moment->x.of, sum.of, binding)) return std::nullopt;
    moment->center = true;
    if (!moment->problem.empty()) return moment;
    if (!same_set(resolve_all(moment->x.over, binding), resolve_all(sum.over, binding))) {
      moment->problem = "the mean runs over other axes than the variance";
      return moment;
    }
    const auto ratio = mean_ratio(graph, product, power, graph.size_of(sum.over));
    if (!ratio || !near(*ratio * mean.coefficient, -1, mean.use.node->dtype)) return std::nullopt;
    return moment;
  }
  return std::nullopt;
}

// max(0, u) -> u, select(u < 0, u, 0) -> u
Use without_clamp(Graph& graph, const Use& use) {
  if (is_pointwise(use, "select_n") && use.node->edges.size() == 3) {
    const Use test = graph.child(use, 0), u = graph.child(use, 1);
    const bool clamps = is_pointwise(test, "lt") && graph.child(test, 0) == u &&
                        graph.scalar_value(graph.child(test, 1)) == 0.0 &&
                        graph.scalar_value(graph.child(use, 2)) == 0.0;
    return clamps ? u : Use{};
  }
  if (!is_pointwise(use, "max")) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    if (graph.scalar_value(graph.child(use, i)) == 0.0) return graph.child(use, 1 - i);
  }
  return {};
}

}  // namespace

std::optional<Moment> moment_of(Graph& graph, const Use& use) {
  Sum sum = terms(graph, use);
  if (sum.terms.size() == 1 && sum.terms[0].coefficient == 1) {
    if (const Use inner = without_clamp(graph, sum.terms[0].use)) {
      const double eps = sum.constant;
      sum = terms(graph, inner);
      sum.constant += eps;
    }
  }
  if (sum.constant < 0) return std::nullopt;
  std::optional<Moment> moment;
  if (sum.terms.size() == 1) moment = two_pass(graph, sum.terms[0]);
  if (sum.terms.size() == 2) {
    moment = one_pass(graph, sum.terms[0], sum.terms[1]);
    if (!moment) moment = one_pass(graph, sum.terms[1], sum.terms[0]);
  }
  if (moment) moment->eps = sum.constant / moment->ratio;
  return moment;
}

}  // namespace jaxport::raise
