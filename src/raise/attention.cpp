// SPDX-License-Identifier: Apache-2.0
// attention(q, k, v) = sum_s softmax_s(scale * sum_d q k + bias) v
//
// The root is the second contraction, or its quotient by the sum of the exponentials. Below it
// stands a softmax along the contracted labels; the score under the softmax is taken apart until
// the first contraction is met. Axes have no order here, so one rule serves every layout and every
// extra batch label that vmap adds.
//
// Masks become one summand of the score. A row that is masked everywhere keeps what JAX makes of
// it: equal weights after a finite fill, NaN after -inf, zeros when the weights are masked again.
// In 16-bit types the op rounds the result once, where JAX may round scores and weights too.
#include <algorithm>
#include <limits>

#include "axis/pattern.h"
#include "raise/attention_mask.h"
#include "raise/attention_score.h"
#include "raise/attention_weights.h"
#include "raise/rules.h"
#include "raise/softmax.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A fill within these bounds absorbs a score that it is added to. ONNX Runtime takes the lowest
// number of f32 for -inf.
constexpr double kSmallestFill = -1e30, kLargestFill = -3e38;
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

void multiply_into(Graph& graph, Use& operand, const Score::Factor& factor) {
  const DType dtype = common(operand.node->dtype, factor.use.node->dtype);
  operand =
      graph.pointwise(factor.divides ? "div" : "mul",
                      {convert(graph, operand, dtype), convert(graph, factor.use, dtype)}, dtype);
}

// What the scores are multiplied with goes into the op, the query or the key. False when it varies
// along axes of both.
bool place_factors(Graph& graph, Score& score) {
  score.query = without_scale(graph, score.query, score.scale);
  score.key = without_scale(graph, score.key, score.scale);
  for (const Score::Factor& factor : score.factors) {
    if (is_subset(factor.use.flat(), score.query.flat())) {
      multiply_into(graph, score.query, factor);
    } else if (is_subset(factor.use.flat(), score.key.flat())) {
      multiply_into(graph, score.key, factor);
    } else {
      return false;
    }
  }
  if (score.scale < 0) {  // ONNX Runtime takes positive scales only
    score.query = graph.pointwise("neg", {score.query}, score.query.node->dtype);
    score.scale = -score.scale;
  }
  return true;
}

struct QueryRoles {
  Labels time, group;
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
bool make_time(QueryRoles& roles, Label row) {
  Labels all = roles.group;
  all.insert(all.end(), roles.time.begin(), roles.time.end());
  if (!axis::contains(all, row)) return false;
  roles = {{row}, axis::without(all, {row})};
  return true;
}

// --- masks

// All masks as one summand: 0, and a fill where a mask is false. The outermost fill wins.
Use mask_summand(Graph& graph, const std::vector<Score::Mask>& masks, DType dtype) {
  Use total = graph.scalar(0, dtype);
  for (auto mask = masks.rbegin(); mask != masks.rend(); ++mask) {
    const double fill =
        mask->fill == -kInfinity ? mask->fill : std::clamp(mask->fill, kLargestFill, kSmallestFill);
    total = graph.pointwise("select_n", {mask->keep, graph.scalar(fill, dtype), total}, dtype);
  }
  return total;
}

// Two fills that are both raised to an absorbing one would become equal.
bool fills_stay_apart(const std::vector<Score::Mask>& masks) {
  const auto is_raised = [](const Score::Mask& mask) { return mask.fill > kSmallestFill; };
  const auto first = std::ranges::find_if(masks, is_raised);
  return std::ranges::none_of(
      masks, [&](const Score::Mask& mask) { return is_raised(mask) && mask.fill != first->fill; });
}

bool is_infinite(const std::vector<Score::Mask>& masks) {
  return std::ranges::find(masks, -kInfinity, &Score::Mask::fill) != masks.end();
}

// NaN in rows that are -inf everywhere, where JAX has NaN and ONNX Runtime zeros.
Use with_nan_in_empty_rows(Graph& graph, const Use& mask, const Labels& along) {
  const DType dtype = mask.node->dtype;
  const Use largest = graph.reduce("reduce_max", mask, along, dtype);
  const Use nan_or_zero = graph.pointwise("mul", {largest, graph.scalar(0, dtype)}, dtype);
  return graph.pointwise("add", {mask, nan_or_zero}, dtype);
}

Use sum_of_biases(Graph& graph, const std::vector<Score::Bias>& biases, DType dtype) {
  Use total;
  for (const auto& [coefficient, use] : biases) {
    Use term = convert(graph, use, dtype);
    if (coefficient != 1) {
      term = graph.pointwise("mul", {term, graph.scalar(coefficient, dtype)}, dtype);
    }
    total = total ? graph.pointwise("add", {total, term}, dtype) : std::move(term);
  }
  return total;
}

bool same_members(const std::vector<Use>& a, const std::vector<Use>& b) {
  const auto holds = [](const std::vector<Use>& all, const std::vector<Use>& some) {
    return std::ranges::all_of(
        some, [&](const Use& use) { return std::ranges::find(all, use) != all.end(); });
  };
  return holds(a, b) && holds(b, a);
}

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
        along_(graph_.role(weights_.softmax, "s")),
        score_(std::move(score)) {}

  // Over the labels of the contraction and in its dtype; empty after a near miss.
  Use build() {
    if (!place_factors(graph_, score_))
      return miss("a factor of the scores varies along the query and the key");
    if (has_no_elements()) return miss("an axis has no elements");
    if (!choose_dtype()) return miss("scores or weights are rounded more than the operands");
    roles_ = query_roles(score_, value_, along_);
    if (has_values_of_each_query()) return miss("each query has values of its own");
    if (const char* problem = read_masks()) return miss(problem);
    if (varies_along_keys(weights_.factors))
      return miss("the weights are multiplied along the keys");
    Use result = convert(graph_, node(), root_.node->dtype);
    const DType dtype = result.node->dtype;
    for (const Use& guard : row_guards_) {
      result = graph_.pointwise("select_n", {guard, graph_.scalar(0, dtype), result}, dtype);
    }
    for (const auto& [factor, divides] : weights_.factors) {
      result = graph_.pointwise(divides ? "div" : "mul", {result, convert(graph_, factor, dtype)},
                                dtype);
    }
    return result;
  }

 private:
  Use miss(std::string reason) { return m_.miss("attention", root_, std::move(reason)); }

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
    for (Use* use : operands) *use = convert(graph_, *use, dtype_);
    score_dtype_ = common(dtype_, DType::kF32);
    const DType inside = narrower(score_.narrowest, weights_.narrowest);
    return mantissa_bits(inside) >= mantissa_bits(narrowest);
  }

  bool varies_along_keys(const std::vector<Weights::Factor>& factors) const {
    return std::ranges::any_of(factors, [&](const Weights::Factor& factor) {
      return axis::intersects(factor.use.flat(), along_);
    });
  }

  // Returns what is wrong with the masks, or nullptr.
  const char* read_masks() {
    std::vector<Use> kept;
    for (const Score::Mask& mask : score_.masks) {
      for (Use& part : conjuncts(graph_, mask.keep)) {
        if (std::ranges::find(kept, part) == kept.end()) kept.push_back(std::move(part));
      }
    }
    const auto band = along_.size() == 1 ? band_of(graph_, kept, along_[0]) : std::nullopt;
    const bool has_empty_rows = !kept.empty() && !(band && has_no_empty_row(graph_, *band));
    for (const Use& guard : weights_.guards) {
      if (!axis::intersects(guard.flat(), along_)) {
        row_guards_.push_back(guard);
      } else if (same_members(conjuncts(graph_, guard), kept)) {
        zero_rows_ = has_empty_rows;
      } else {
        return "the weights are masked otherwise than the scores";
      }
    }
    if (weights_.has_no_nan) {
      if (!is_infinite(score_.masks)) return "NaN weights are replaced";
      zero_rows_ = has_empty_rows;
    }
    causal_ = band && is_causal(graph_, *band) && make_time(roles_, band->row);
    if (!causal_ && !fills_stay_apart(score_.masks)) return "the fills of the masks differ";
    summand_ = summand(has_empty_rows);
    if (summand_) repeat_query(axis::without(summand_.flat(), labels()));
    return nullptr;
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

  // All masks and biases that are added to the score; may be empty.
  Use summand(bool has_empty_rows) {
    Use total = sum_of_biases(graph_, score_.biases, score_dtype_);
    if (causal_ || score_.masks.empty()) return total;
    std::vector<Score::Mask> masks = score_.masks;
    if (zero_rows_) {
      for (Score::Mask& mask : masks) mask.fill = -kInfinity;
    }
    Use mask = mask_summand(graph_, masks, score_dtype_);
    if (is_infinite(masks) && has_empty_rows && !zero_rows_) {
      mask = with_nan_in_empty_rows(graph_, mask, along_);
    }
    return total ? graph_.pointwise("add", {total, mask}, score_dtype_) : mask;
  }

  Use node() {
    std::vector<Use> operands{score_.query, score_.key, value_};
    if (summand_) operands.push_back(summand_);
    return graph_.macro(
        "attention", std::move(operands), root_.flat(), dtype_,
        {{"d", score_.contracted}, {"g", roles_.group}, {"s", along_}, {"t", roles_.time}},
        {{"cap", {score_.cap}},
         {"causal", {causal_}},
         {"scale", {score_.scale}},
         {"zero_rows", {zero_rows_}}});
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
  std::vector<Use> row_guards_;
  bool causal_ = false;
  bool zero_rows_ = false;  // a row that is masked everywhere gives zeros
  Use summand_;
};

bool is_ordinary_float(DType dtype) { return is_float(dtype) && byte_width(dtype) >= 2; }

// contraction = sum_s weights value
Use attention_of(const Matcher& m, const Use& contraction, Weights weights, Use value) {
  if (!is_ordinary_float(contraction.node->dtype) || !is_ordinary_float(value.node->dtype))
    return {};
  const Labels along = m.graph.role(weights.softmax, "s");
  const Labels contracted = axis::without(weights.softmax.flat(), contraction.flat());
  if (!same_set(along, contracted))
    return m.miss("attention", contraction,
                  "the softmax runs along other axes than the contraction");
  auto score = score_of(m.graph, m.graph.child(weights.softmax, 0), along);
  if (!score)
    return m.miss("attention", contraction,
                  "no contraction of a query and a key under the softmax");
  return Construction(m, contraction, std::move(value), std::move(weights), std::move(*score))
      .build();
}

Use match_contraction(const Matcher& m, const Use& root) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Use operand = m.graph.child(root, i);
    auto weights = weights_of(m, operand);
    if (!weights) continue;
    if (weights->is_shared) return m.miss("attention", root, kUsedElsewhere);
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
    if (m.uses[unnormalised.node] > 2) return m.miss("attention", contraction, kUsedElsewhere);
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
      return multiply(m.graph, product.coefficient, convert(m.graph, found, root.node->dtype),
                      all_but(product.powers, i, j));
    }
  }
  return {};
}

Use match_attention(const Matcher& m, const Use& root) {
  return root.node->kind == Kind::kContract ? match_contraction(m, root) : match_quotient(m, root);
}

constexpr std::string_view kRoots[] = {"contract", "div", "mul"};

constexpr std::string_view kSample = R"(
func @attention(%q: f32[B,5,3,4], %k: f32[B,6,3,4], %v: f32[B,6,3,4]) {
  %scale: f32[] = constant 0.5
  %qk: f32[B,3,5,6] = dot_general %q %k {dimension_numbers = (((3), (3)), ((0, 2), (0, 2)))}
  %score: f32[B,3,5,6] = mul %qk %scale
  %max: f32[B,3,5] = reduce_max %score {axes = (3)}
  %maxb: f32[B,3,5,1] = broadcast_in_dim %max {broadcast_dimensions = (0, 1, 2), shape = (B, 3, 5, 1)}
  %shift: f32[B,3,5,6] = sub %score %maxb
  %exp: f32[B,3,5,6] = exp %shift
  %sum: f32[B,3,5] = reduce_sum %exp {axes = (3)}
  %sumb: f32[B,3,5,1] = broadcast_in_dim %sum {broadcast_dimensions = (0, 1, 2), shape = (B, 3, 5, 1)}
  %p: f32[B,3,5,6] = div %exp %sumb
  %out: f32[B,3,5,4] = dot_general %p %v {dimension_numbers = (((3), (1)), ((0, 1), (0, 2)))}
  return %out
}
)";

// The weights are a result of their own; the softmax runs along the query's positions.
constexpr std::string_view kNearMisses[] = {R"(
func @weights_returned(%q: f32[5,4], %k: f32[6,4], %v: f32[6,4]) {
  %score: f32[5,6] = dot_general %q %k {dimension_numbers = (((1), (1)), ((), ()))}
  %exp: f32[5,6] = exp %score
  %sum: f32[5] = reduce_sum %exp {axes = (1)}
  %sumb: f32[5,1] = broadcast_in_dim %sum {broadcast_dimensions = (0), shape = (5, 1)}
  %p: f32[5,6] = div %exp %sumb
  %out: f32[5,4] = dot_general %p %v {dimension_numbers = (((1), (0)), ((), ()))}
  return %out %p
}
)",
                                            R"(
func @softmax_along_queries(%q: f32[5,4], %k: f32[6,4], %v: f32[6,4]) {
  %score: f32[5,6] = dot_general %q %k {dimension_numbers = (((1), (1)), ((), ()))}
  %exp: f32[5,6] = exp %score
  %sum: f32[6] = reduce_sum %exp {axes = (0)}
  %sumb: f32[1,6] = broadcast_in_dim %sum {broadcast_dimensions = (1), shape = (1, 6)}
  %p: f32[5,6] = div %exp %sumb
  %out: f32[5,4] = dot_general %p %v {dimension_numbers = (((1), (0)), ((), ()))}
  return %out
}
)"};

constexpr Rule kAttention{"attention", kRoots, match_attention, kSample, kNearMisses};
constexpr const Rule* kRules[] = {&kAttention};

}  // namespace

Rules attention_rules() { return kRules; }

}  // namespace jaxport::raise
