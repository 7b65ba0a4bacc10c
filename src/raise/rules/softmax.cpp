// SPDX-License-Identifier: Apache-2.0
// softmax(x)     = exp(x - c) / sum_s exp(x - c)
// log_softmax(x) = (x - c) - log sum_s exp(x - c)
// logsumexp(x)   = log sum_s exp(x - c) + c
//
// Any c that does not vary along s gives the same value, so its form is not matched: it may be the
// maximum, the maximum guarded against infinities, or absent. Anything else stays, because it may
// be infinite where the maximum is not. exp2(y) is exp(y log 2). An exponential that is set to zero
// where a mask is false, or multiplied with the mask, has -inf as exponent there.
#include "raise/rules/softmax.h"

#include <cmath>
#include <numbers>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "raise/algebra/premise.h"
#include "raise/engine/ops.h"
#include "raise/engine/rules.h"

namespace jaxport::raise {
namespace {

using axis::Binding;
using axis::Graph;
using axis::Kind;
using axis::Labels;
using axis::Use;

constexpr int kMaxShifts = 4;

bool is_exp(const axis::Node& node) {
  return node.is(Kind::kPointwise, "exp") || node.is(Kind::kPointwise, "exp2");
}

// The largest element along s, possibly guarded: what cancels in a softmax of x.
bool is_shift(const Use& c, const Use& x, const Labels& s) {
  return same_set(c.flat(), axis::without(x.flat(), s)) && is_made_of_maxima(*c.node, *x.node);
}

// Drops such subtrahends.
Use without_shift(Graph& graph, Use x, const Labels& s) {
  for (int i = 0; i < kMaxShifts && is_pointwise(x, "sub"); ++i) {
    Use kept = graph.child(x, 0);
    const Use shift = graph.child(x, 1);
    if (!same_set(kept.flat(), x.flat()) || !is_shift(shift, kept, s)) break;
    x = std::move(kept);
  }
  if (!is_pointwise(x, "mul") || !graph.scalar_value(graph.child(x, 1))) return x;
  const Use scaled = graph.child(x, 0), kept = without_shift(graph, scaled, s);
  if (kept == scaled) return x;
  return kept * graph.child(x, 1);
}

// e is zero where m is false, because its exponent is -inf there. What is subtracted from it does
// not vary along s: a number for the row.
bool vanishes_outside(Graph& graph, const Use& e, const Use& m, const Labels& s) {
  Use x = graph.child(e, 0);
  for (int i = 0; i < kMaxShifts && is_pointwise(x, "sub"); ++i) {
    if (axis::intersects(graph.child(x, 1).flat(), s)) return false;
    x = graph.child(x, 0);
  }
  return is_pointwise(x, "select_n") && x.node->edges.size() == 3 && graph.child(x, 0) == m &&
         graph.scalar_value(graph.child(x, 1)) == -kInfinity;
}

// e for select(m, e, 0) where e is zero already: the sum of softmax(x, where=m).
Use without_idle_mask(Graph& graph, const Use& use, const Labels& s) {
  if (!is_pointwise(use, "select_n") || use.node->edges.size() != 3) return use;
  const Use e = graph.child(use, 2);
  const bool idle = graph.scalar_value(graph.child(use, 1)) == 0.0 && is_exp(*e.node) &&
                    vanishes_outside(graph, e, graph.child(use, 0), s);
  return idle ? e : use;
}

// exp(y), zero where `keep` is false
Use masked_exp(Graph& graph, const Use& e, const Use& keep) {
  const Use exponent = select(keep, graph.child(e, 0), -kInfinity);
  return applied(e.node->name, exponent);
}

bool is_select_of_exp(const axis::Node& node) {
  return node.is(Kind::kPointwise, "select_n") && node.edges.size() == 3 &&
         is_exp(*node.edges[2].node);
}

bool is_exp_like(const axis::Node& node) { return is_exp(node) || is_select_of_exp(node); }

// The shift may stand inside of a mask.
Use without_masked_shift(Graph& graph, const Use& y, const Labels& s) {
  const bool is_masked = is_pointwise(y, "select_n") && y.node->edges.size() == 3 &&
                         graph.scalar_value(graph.child(y, 1)) == -kInfinity;
  if (!is_masked) return without_shift(graph, y, s);
  const Use kept = without_shift(graph, graph.child(y, 2), s);
  return select(graph.child(y, 0), kept, graph.child(y, 1));
}

template <class Op>
Use softmax_like(Graph& graph, const Use& y, const Labels& s) {
  const Use x = without_masked_shift(graph, y, s);
  return make(Op{{x, s}}, x.flat());
}

}  // namespace

Use as_exp(Graph& graph, const Use& use) {
  if (is_exp(*use.node)) return use;
  if (is_select_of_exp(*use.node) && graph.scalar_value(graph.child(use, 1)) == 0.0 &&
      graph.child(use, 0).node->dtype == DType::kBool) {
    return masked_exp(graph, graph.child(use, 2), graph.child(use, 0));
  }
  if (!is_pointwise(use, "mul")) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    const Use e = graph.child(use, i);
    if (!is_exp(*e.node)) continue;
    if (const Use keep = converted_bool(graph, graph.child(use, 1 - i)))
      return masked_exp(graph, e, keep);
  }
  return {};
}

// In 16-bit models JAX sums in f32 and converts back; a sum in a narrower type is something else,
// and so is one that is rounded on the way to a type that neither the exponentials nor the result
// have.
std::optional<Reduction> sum_of_exp(Graph& graph, const Use& use) {
  DType narrowest = use.node->dtype;
  const Use sum = without_float_converts(graph, use, narrowest);
  if (!is_sum(sum) || byte_width(sum.node->dtype) < byte_width(use.node->dtype)) {
    return std::nullopt;
  }
  Reduction reduction = reduced(graph, sum);
  const Use summed = without_idle_mask(
      graph, without_float_converts(graph, reduction.of, narrowest), reduction.over);
  reduction.of = as_exp(graph, summed);
  if (!reduction.of) return std::nullopt;
  const DType ends = narrower(reduction.of.node->dtype, use.node->dtype);
  if (mantissa_bits(narrowest) < mantissa_bits(ends)) return std::nullopt;
  return reduction;
}

Use softmax_of_exp(Graph& graph, const Use& e, const Labels& s) {
  Use y = graph.child(e, 0);
  if (e.node->name == "exp2") y = without_shift(graph, y, s) * std::numbers::ln2;
  return softmax_like<SoftmaxOp>(graph, y, s);
}

namespace {

// log sum_s exp(y) -> exp(y), s. logsumexp takes log(abs(…)); the sum is positive.
std::optional<Reduction> log_sum_exp(Graph& graph, const Use& use) {
  if (!is_pointwise(use, "log")) return std::nullopt;
  Use sum = graph.child(use, 0);
  if (is_pointwise(sum, "abs")) sum = graph.child(sum, 0);
  auto found = sum_of_exp(graph, sum);
  return found && is_pointwise(found->of, "exp") ? found : std::nullopt;
}

// `e`, or `e` times a mask among the factors when that is what was summed; the mask is taken out.
Use summed_exp(Graph& graph, const Use& e, const Use& summed, std::vector<Power>& rest) {
  if (e.node == summed.node) return e;
  for (std::size_t k = 0; k < rest.size(); ++k) {
    const Use keep = rest[k].exponent == 1 ? converted_bool(graph, rest[k].base) : Use{};
    if (!keep) continue;
    Use masked = masked_exp(graph, e, keep);
    if (masked.node != summed.node) continue;
    rest = all_but(rest, k, k);
    return masked;
  }
  return {};
}

// The factor i of a product is exp(y) and factor j is 1 / sum_s exp(y).
Use quotient(const Matcher& m, const Use& root, const Product& product, std::size_t i,
             std::size_t j) {
  Graph& graph = m.graph;
  if (!is_exp_like(*product.powers[i].base.node)) return {};
  const auto sum = sum_of_exp(graph, product.powers[j].base);
  const Use exp = sum ? as_exp(graph, product.powers[i].base) : Use{};
  if (!exp || exp.node->dtype != root.node->dtype) return {};
  std::vector<Power> rest = all_but(product.powers, i, j);
  const Use e = summed_exp(graph, exp, sum->of, rest);
  if (!e) return {};
  Binding binding;
  if (!graph.same(e, sum->of, binding)) {
    return m.miss(root, "the sum runs over other axes than it divides");
  }
  Use softmax = softmax_of_exp(graph, e, resolve_all(sum->over, binding));
  return multiply(product.coefficient, std::move(softmax), rest);
}

Use match_softmax(const Matcher& m, const Use& root) {
  if (root.node->name == "exp") {
    const Use x = m.graph.child(root, 0);
    if (!is<LogSoftmaxOp>(*x.node)) return {};
    const auto log = read<LogSoftmaxOp>(x);
    return softmax_like<SoftmaxOp>(m.graph, log.x, log.along);
  }
  if (!has_factor(*root.node, is_exp_like)) return {};
  const Product product = factors(m.graph, root);
  for (std::size_t j = 0; j < product.powers.size(); ++j) {
    if (product.powers[j].exponent != -1) continue;
    for (std::size_t i = 0; i < product.powers.size(); ++i) {
      if (product.powers[i].exponent != 1) continue;
      if (Use found = quotient(m, root, product, i, j)) return found;
    }
  }
  return {};
}

// log sum_s exp(x - c) + c
Use match_logsumexp(const Matcher& m, const Use& root) {
  Graph& graph = m.graph;
  if (!is_float(root.node->dtype) || byte_width(root.node->dtype) < 2) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto sum = log_sum_exp(graph, graph.child(root, i));
    if (!sum) continue;
    const Use y = graph.child(sum->of, 0);
    if (!is_pointwise(y, "sub") || y.node->dtype != root.node->dtype) continue;
    const Use x = graph.child(y, 0), c = graph.child(y, 1);
    if (graph.child(root, 1 - i) != c) {
      return m.miss(root, "what is added is not what was subtracted");
    }
    if (!is_shift(c, x, sum->over)) {
      return m.miss(root, "what is subtracted may be infinite where the maximum is not");
    }
    if (same_set(x.flat(), y.flat())) return make(LogSumExpOp{{x, sum->over}}, root.flat());
  }
  return {};
}

// x - logsumexp_s(x)
Use minus_logsumexp(Graph& graph, const Use& x, const LogSumExpOp& total) {
  Binding binding;
  if (!graph.same(x, total.x, binding)) return {};
  return softmax_like<LogSoftmaxOp>(graph, x, resolve_all(total.along, binding));
}

Use match_log_softmax(const Matcher& m, const Use& root) {
  Graph& graph = m.graph;
  const Use y = graph.child(root, 0);
  const Use log = graph.child(root, 1);
  if (!is_float(root.node->dtype)) return {};
  if (is<LogSumExpOp>(*log.node)) return minus_logsumexp(graph, y, read<LogSumExpOp>(log));
  const auto sum = log_sum_exp(graph, log);
  if (!sum) return {};
  const Use exponent = graph.child(sum->of, 0);
  if (exponent.node != y.node) return {};
  Binding binding;
  if (!graph.same(y, exponent, binding)) {
    return m.miss(root, "the sum runs over other axes than it is subtracted along");
  }
  return softmax_like<LogSoftmaxOp>(graph, y, resolve_all(sum->over, binding));
}

}  // namespace

Rules softmax_rules() {
  static const Rule kRules[] = {
      {"softmax", {"div", "exp", "mul"}, match_softmax},
      {"logsumexp", {"add"}, match_logsumexp},
      {"log_softmax", {"sub"}, match_log_softmax},
  };
  return kRules;
}

namespace {

// Of bf16, f16, f32 and f64.
double largest_finite(DType dtype) {
  const int exponent = dtype == DType::kF64 ? 1023 : dtype == DType::kF16 ? 15 : 127;
  return std::ldexp(2 - std::ldexp(1, -mantissa_bits(dtype)), exponent);
}

Use summed(const Use& x, const Labels& over) {
  const DType dtype = x.node->dtype;
  return convert(reduce_sum(convert(x, sum_type(dtype)), over), dtype);
}

}  // namespace

Use SoftmaxOp::expand() const {
  const Use e = exp(x - reduce_max(x, along));
  return e / summed(e, along);
}

Use LogSoftmaxOp::expand() const {
  const Use shifted = x - reduce_max(x, along);
  return shifted - log(summed(exp(shifted), along));
}

// The largest element where it is finite: x - max x is NaN where both are infinite.
Use LogSumExpOp::expand() const {
  const double largest = largest_finite(x.node->dtype);
  const Use max = clamp(-largest, reduce_max(x, along), largest);
  return log(summed(exp(x - max), along)) + max;
}

}  // namespace jaxport::raise
