// SPDX-License-Identifier: Apache-2.0
// attention(q, k, v) = sum_s softmax_s(scale * sum_d q k + bias) v
//
// The root is the second contraction, or its quotient by the sum of the exponentials. Below it
// stands a softmax along the contracted labels; the score under the softmax is taken apart until
// the first contraction is met. Axes have no order here, so one rule serves every layout and every
// extra batch label that vmap adds.
//
// Masks and biases become one summand of the score, see attention_summand.h. In 16-bit types the op
// rounds the result once, where JAX may round scores and weights too.
#include <algorithm>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "raise/algebra/views.h"
#include "raise/engine/ops.h"
#include "raise/engine/rules.h"
#include "raise/rules/attention_score.h"
#include "raise/rules/attention_summand.h"
#include "raise/rules/attention_weights.h"
#include "raise/rules/softmax.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

constexpr const char* kUsedElsewhere = "the weights are used elsewhere";

// --- operands

// scale * q and scale * k move into the op.
Use without_scale(Graph& graph, Use use, double& scale) {
  for (int i = 0; i < 4; ++i) {
    if (!is_pointwise(use, "mul") && !is_pointwise(use, "div")) break;
    const auto factor = graph.scalar_value(graph.child(use, 1));
    if (!factor || *factor == 0) break;
    scale = use.node->name == "mul" ? scale * *factor : scale / *factor;
    use = graph.child(use, 0);
  }
  return use;
}

DType common(DType a, DType b) {
  if (holds_exactly(a, b)) return a;
  return holds_exactly(b, a) ? b : DType::kF32;
}

// In f32 at least: of 16 bits the product may overflow where no score does.
void multiply_into(Use& operand, const Score::Factor& factor) {
  const DType dtype = common(common(operand.node->dtype, factor.use.node->dtype), DType::kF32);
  const Use wide = convert(operand, dtype), by = convert(factor.use, dtype);
  operand = factor.divides ? wide / by : wide * by;
}

// What the scores are multiplied with goes into the op, the query or the key. False when it varies
// along axes of both.
bool place_factors(Graph& graph, Score& score, const Preferences& preferences) {
  score.query = without_scale(graph, score.query, score.scale);
  score.key = without_scale(graph, score.key, score.scale);
  for (const Score::Factor& factor : score.factors) {
    if (is_subset(factor.use.flat(), score.query.flat())) {
      multiply_into(score.query, factor);
    } else if (is_subset(factor.use.flat(), score.key.flat())) {
      multiply_into(score.key, factor);
    } else {
      return false;
    }
  }
  if (score.scale < 0 && preferences.refuses_negative_scale) {
    score.query = -score.query;
    score.scale = -score.scale;
  }
  return true;
}

struct QueryRoles {
  Labels time, group;

  Labels all() const {
    Labels both = group;
    both.insert(both.end(), time.begin(), time.end());
    return both;
  }
};

// Labels that only the query has are time, or groups of heads that share a key: a group stands in
// one axis with a label of the key. Not where the key has positions in that axis: then it is a row
// of windows.
QueryRoles query_roles(const Score& score, const Use& value, const Labels& along) {
  Labels shared;
  for (const Labels& axis : score.key.labels) {
    if (!axis::intersects(axis, along))
      axis::add_new(shared, axis::without(axis, score.contracted));
  }
  QueryRoles roles;
  for (const Labels& axis : score.query.labels) {
    const bool beside_key = axis::intersects(axis, shared);
    for (Label label : axis) {
      if (axis::contains(score.key.flat(), label) || axis::contains(value.flat(), label)) continue;
      (beside_key ? roles.group : roles.time).push_back(label);
    }
  }
  return roles;
}

// The label of the causal rows is the time; whatever else the query has is a group.
void make_time(QueryRoles& roles, Label row) { roles = {{row}, axis::without(roles.all(), {row})}; }

// --- the node

// Makes the node out of what was found at and below one contraction.
class Construction {
 public:
  Construction(const Matcher& m, const Use& contraction, Use value, Weights weights, Score score)
      : m_(m),
        graph_(m.graph),
        root_(contraction),
        value_(std::move(value)),
        weights_(std::move(weights)),
        along_(read<SoftmaxOp>(weights_.softmax).along),
        score_(std::move(score)) {}

  // Over the labels of the contraction and in its dtype; empty after a near miss.
  Use build() {
    if (!place_factors(graph_, score_, m_.preferences))
      return miss("a factor of the scores varies along the query and the key");
    if (has_no_elements()) return miss("an axis has no elements");
    if (!choose_dtype()) return miss("scores or weights are narrower than the operands");
    roles_ = query_roles(score_, value_, along_);
    if (has_values_of_each_query()) return miss("each query has values of its own");
    if (const char* reason = check_steps()) return miss(reason);
    auto [summand, reason] =
        summand_of(graph_, score_, weights_, along_, roles_.all(), score_dtype_);
    if (reason) return miss(reason);
    summand_ = std::move(summand);
    if (summand_.causal_row) make_time(roles_, *summand_.causal_row);
    for (const Use* use : {&summand_.added, &summand_.keep}) {
      if (*use) repeat_query(axis::without(use->flat(), labels()));
    }
    return with_steps(convert(node(), root_.node->dtype));
  }

 private:
  Use miss(std::string reason) { return m_.miss(root_, std::move(reason)); }

  Labels labels() const {
    Labels all = score_.query.flat();
    for (const Use* use : {&score_.key, &value_}) axis::add_new(all, use->flat());
    return all;
  }

  bool has_no_elements() const {
    return std::ranges::any_of(labels(), [&](Label label) { return graph_.size(label) == Dim(0); });
  }

  // The queries are a batch then, for which the keys would be repeated.
  bool has_values_of_each_query() const {
    const Labels keys = score_.key.flat(), values = value_.flat();
    return roles_.time.empty() && std::ranges::any_of(score_.query.flat(), [&](Label label) {
             return axis::contains(values, label) && !axis::contains(keys, label);
           });
  }

  // One dtype for all operands; scores and weights of 16-bit operands are f32. False when JAX
  // computes scores or weights in a narrower one than any operand has.
  bool choose_dtype() {
    DType narrowest = dtype_ = root_.node->dtype;
    Use* const operands[] = {&score_.query, &score_.key, &value_};
    for (const Use* use : operands) {
      dtype_ = common(dtype_, use->node->dtype);
      narrowest = narrower(narrowest, use->node->dtype);
    }
    for (Use* use : operands) *use = convert(*use, dtype_);
    score_dtype_ = common(dtype_, DType::kF32);
    const DType inside = narrower(score_.narrowest, weights_.narrowest);
    return mantissa_bits(inside) >= mantissa_bits(narrowest);
  }

  // What is done to the weights is done to the result, but for masks along the keys.
  bool is_of_result(const Weights::Step& step) const {
    return step.kind != Weights::Step::Kind::kMask || !axis::intersects(step.use.flat(), along_);
  }

  const char* check_steps() const {
    for (const Weights::Step& step : weights_.steps) {
      if (!is_of_result(step)) continue;
      if (axis::intersects(step.use.flat(), along_))
        return "the weights are multiplied along the keys";
      if (!is_subset(step.use.flat(), root_.flat()))
        return "the weights are multiplied along an axis of the values that is summed";
    }
    return nullptr;
  }

  Use with_steps(Use result) {
    for (auto step = weights_.steps.rbegin(); step != weights_.steps.rend(); ++step) {
      if (!is_of_result(*step)) continue;
      if (step->kind == Weights::Step::Kind::kMask) {
        result = select(step->use, result, 0);
      } else {
        const Use by = convert(step->use, result.node->dtype);
        result = step->kind == Weights::Step::Kind::kDivide ? result / by : result * by;
      }
    }
    return result;
  }

  // What only the masks and biases vary along is another axis of queries.
  void repeat_query(const Labels& more) {
    if (more.empty()) return;
    axis::Pattern axes = score_.query.labels;
    for (Label label : more) axes.push_back({label});
    score_.query = graph_.relayout(score_.query, axes);
    score_.query.labels = axes;
    axis::add_new(roles_.time, more);
  }

  Use node() {
    return make(AttentionOp{.query = score_.query,
                            .key = score_.key,
                            .value = value_,
                            .bias = summand_.added,
                            .mask = summand_.keep,
                            .contracted = score_.contracted,
                            .group = roles_.group,
                            .keys = along_,
                            .time = roles_.time,
                            .cap = score_.cap,
                            .is_causal = summand_.causal_row.has_value(),
                            .scale = score_.scale,
                            .zero_rows = summand_.zero_rows},
                root_.flat());
  }

  const Matcher& m_;
  Graph& graph_;
  const Use root_;
  Use value_;
  const Weights weights_;
  const Labels along_;
  Score score_;
  QueryRoles roles_;
  DType dtype_ = DType::kF32, score_dtype_ = DType::kF32;
  ScoreSummand summand_;
};

bool is_ordinary_float(DType dtype) { return is_float(dtype) && byte_width(dtype) >= 2; }

// contraction = sum_s weights value
Use attention_of(const Matcher& m, const Use& contraction, Weights weights, Use value) {
  if (!is_ordinary_float(contraction.node->dtype) || !is_ordinary_float(value.node->dtype))
    return {};
  const auto [scores, along] = read<SoftmaxOp>(weights.softmax);
  const Labels contracted = axis::without(weights.softmax.flat(), contraction.flat());
  if (!same_set(along, contracted))
    return m.miss(contraction, "the softmax runs along other axes than the contraction");
  auto [score, reason] = score_of(m.graph, scores, along);
  if (!score) return m.miss(contraction, reason);
  return Construction(m, contraction, std::move(value), std::move(weights), std::move(*score))
      .build();
}

Use match_contraction(const Matcher& m, const Use& root) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Use operand = m.graph.child(root, i);
    auto weights = weights_of(m, operand);
    if (!weights) continue;
    if (weights->is_shared) return m.miss(root, kUsedElsewhere);
    return attention_of(m, root, std::move(*weights), m.graph.child(root, 1 - i));
  }
  return {};
}

// sum_s e v / sum_s e, with the factors i and j of a product
Use late_quotient(const Matcher& m, const Product& product, std::size_t i, std::size_t j) {
  Graph& graph = m.graph;
  const Use contraction = without_float_converts(graph, product.powers[i].base);
  const auto sum = sum_of_exp(graph, product.powers[j].base);
  if (!sum || m.uses[contraction.node] > 1) return {};
  for (std::size_t k = 0; k < 2; ++k) {
    DType narrowest = DType::kF64;
    const Use unnormalised = without_float_converts(graph, graph.child(contraction, k), narrowest);
    const Use e = as_exp(graph, unnormalised);
    axis::Binding binding;
    if (!e || e.node != sum->of.node || !graph.same(e, sum->of, binding)) continue;
    if (m.uses[unnormalised.node] > 2) return m.miss(contraction, kUsedElsewhere);
    Weights weights;
    weights.softmax = softmax_of_exp(graph, e, resolve_all(sum->over, binding));
    weights.narrowest = narrowest;
    return attention_of(m, contraction, std::move(weights), graph.child(contraction, 1 - k));
  }
  return {};
}

bool is_contraction(const axis::Node& node) {
  return node.kind == Kind::kContract || (node.is(Kind::kPointwise, "convert_element_type") &&
                                          node.edges[0].node->kind == Kind::kContract);
}

Use match_quotient(const Matcher& m, const Use& root) {
  if (!has_factor(*root.node, is_contraction)) return {};
  const Product product = factors(m.graph, root);
  for (std::size_t i = 0; i < product.powers.size(); ++i) {
    if (product.powers[i].exponent != 1 || !is_contraction(*product.powers[i].base.node)) continue;
    for (std::size_t j = 0; j < product.powers.size(); ++j) {
      if (product.powers[j].exponent != -1) continue;
      const Use found = late_quotient(m, product, i, j);
      if (!found) continue;
      return multiply(product.coefficient, convert(found, root.node->dtype),
                      all_but(product.powers, i, j));
    }
  }
  return {};
}

Use match_attention(const Matcher& m, const Use& root) {
  return root.node->kind == Kind::kContract ? match_contraction(m, root) : match_quotient(m, root);
}

}  // namespace

Rules attention_rules() {
  static const Rule kRules[] = {{"attention", {"contract", "div", "mul"}, match_attention}};
  return kRules;
}

namespace {

// Masked scores: the bias itself takes the place of a score that the mask leaves out. A bias that
// is a choice by the same mask has one value for each of the two.
Use masked(Use score, const Use& bias, const Use& mask) {
  Graph& graph = *score.node->graph;
  const bool chooses = mask && bias.node->is(Kind::kPointwise, "select_n") &&
                       bias.node->edges.size() == 3 && graph.child(bias, 0) == mask;
  const Use inside = chooses ? graph.child(bias, 2) : bias;
  const Use outside = chooses ? graph.child(bias, 1) : bias;
  if (graph.scalar_value(inside) != 0) score = score + inside;
  return mask ? select(mask, score, outside) : score;
}

}  // namespace

Use AttentionOp::expand() const {
  Graph& graph = *query.node->graph;
  const DType dtype = sum_type(query.node->dtype);
  Use score = graph.contract(query, key, contracted, dtype) * scale;
  if (cap != 0) score = tanh(score / cap) * cap;
  if (bias) score = masked(score, bias, mask);
  if (is_causal) {
    const Use row = graph.iota(time[0], DType::kI32);
    const Use column = graph.iota(keys[0], DType::kI32);
    score = select(ge(row, column), score, -kInfinity);
  }
  Use weights = make(SoftmaxOp{{score, keys}}, score.flat());
  if (zero_rows) weights = select(eq(bias, -kInfinity), 0, weights);
  return graph.contract(convert(weights, query.node->dtype), value, keys, query.node->dtype);
}

}  // namespace jaxport::raise
