// SPDX-License-Identifier: Apache-2.0
#include "raise/moment.h"

namespace jaxport::raise {
namespace {

using axis::Binding;
using axis::Graph;
using axis::Use;

// coefficient * sum_a y^2 -> y, a
std::optional<Moment> mean_square(Graph& graph, const Term& term) {
  const Product product = factors(graph, term.use);
  for (const Power& power : product.powers) {
    if (power.exponent != 1 || !is_sum(power.base)) continue;
    Reduction sum = reduced(graph, power.base);
    const Use y = squared(graph, sum.of);
    if (!y) continue;
    Moment moment;
    moment.x = {y, sum.over};
    const Dim count = graph.size_of(sum.over);
    if (!count.is_static()) {
      moment.problem = "the size of the normalised axes is not static";
      return moment;
    }
    if (product.powers.size() != 1) return std::nullopt;
    const auto n = static_cast<double>(count.value());
    const double weight = term.coefficient * product.coefficient;
    if (near(weight * n, 1, term.use.node->dtype)) return moment;
    if (!near(weight * (n - 1), 1, term.use.node->dtype)) return std::nullopt;
    moment.problem = "the count is n-1 (ddof=1)";
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
  if (!moment || mean.coefficient >= 0) return std::nullopt;
  const DType dtype = mean.use.node->dtype;
  const Product product = factors(graph, mean.use);
  if (product.powers.size() != 1) return std::nullopt;
  const Power& power = product.powers.front();
  if (power.exponent != 2 || !is_sum(power.base)) return std::nullopt;
  const Reduction sum = reduced(graph, power.base);
  Binding binding;
  if (!graph.same(moment->x.of, sum.of, binding)) return std::nullopt;
  moment->center = true;
  if (!moment->problem.empty()) return moment;
  if (!same_set(resolve_all(moment->x.over, binding), resolve_all(sum.over, binding))) {
    moment->problem = "the mean runs over other axes than the variance";
    return moment;
  }
  const auto n = static_cast<double>(graph.size_of(sum.over).value());
  if (!near(mean.coefficient * product.coefficient * n * n, -1, dtype)) return std::nullopt;
  return moment;
}

// max(0, u) -> u
Use without_clamp(Graph& graph, const Use& use) {
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
  if (moment) moment->eps = sum.constant;
  return moment;
}

}  // namespace jaxport::raise
