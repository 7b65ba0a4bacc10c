// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/moment.h"

#include <cmath>

#include "raise/algebra/premise.h"

namespace jaxport::raise {
namespace {

using axis::Binding;
using axis::Graph;
using axis::Use;

// coefficient * sum_a y^2 -> y, a
std::optional<Moment> mean_square(Graph& graph, const Addend& term) {
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
      moment.problem = "the sum is divided by n - 1 (ddof=1)";
    } else {
      return std::nullopt;
    }
    return moment;
  }
  return std::nullopt;
}

// mean_a y^2: a variance when y = x - mean_a x
std::optional<Moment> two_pass(Graph& graph, const Addend& term) {
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
std::optional<Moment> one_pass(Graph& graph, const Addend& squares, const Addend& mean) {
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

// The moment that the terms of a sum are, without eps.
std::optional<Moment> moment_in(Graph& graph, const Sum& sum) {
  if (sum.terms.size() == 1) return two_pass(graph, sum.terms[0]);
  if (sum.terms.size() != 2) return std::nullopt;
  auto moment = one_pass(graph, sum.terms[0], sum.terms[1]);
  return moment ? moment : one_pass(graph, sum.terms[1], sum.terms[0]);
}

// A mean of squares is not negative. Nor is a variance, but for the rounding noise of its one-pass
// form. So a clamp at zero is idle around them, and around them plus what is not negative.
std::optional<Moment> moment_below_clamp(Graph& graph, const Use& clamped, double& constant) {
  const Use u = clamped_at_zero(graph, clamped);
  if (!u) return std::nullopt;
  const Sum sum = terms(graph, u);
  constant += sum.constant;
  auto moment = moment_in(graph, sum);
  if (moment && moment->problem.empty() && !(sum.constant >= 0)) {
    moment->problem = "what is clamped at zero may be negative";
  }
  return moment;
}

}  // namespace

std::optional<Moment> moment_of(Graph& graph, const Use& use) {
  const Sum sum = terms(graph, use);
  double eps = sum.constant;
  auto moment = moment_in(graph, sum);
  if (!moment && sum.terms.size() == 1 && sum.terms[0].coefficient == 1) {
    moment = moment_below_clamp(graph, sum.terms[0].use, eps);
  }
  if (!moment || !moment->problem.empty()) return moment;
  if (!(eps >= 0) || std::isinf(eps)) return std::nullopt;
  moment->eps = eps / moment->ratio;
  return moment;
}

}  // namespace jaxport::raise
