// SPDX-License-Identifier: Apache-2.0
// attention(q, k, v) = sum_s softmax_s(scale * sum_d q k + bias) v
//
// The root is the second contraction. Below it stands a softmax along the contracted labels; the
// score under the softmax is peeled off layer by layer (scales, masks, biases, a soft cap) until
// the first contraction is met. Axes have no order here, so one rule serves every layout and every
// extra batch label that vmap adds.
#include <cmath>
#include <limits>

#include "axis/pattern.h"
#include "raise/rules.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

constexpr int kMaxDepth = 16;
// A score of at most this is a mask: its weight is zero in f32.
constexpr double kMaskLevel = -1e4;
// Added to a score, this absorbs it: a row that is masked everywhere gets equal weights, as with
// JAX's fill.
constexpr double kAbsorbing = -1e30;

struct Score {
  double scale = 1;
  double cap = 0;  // 0: none
  double fill = -std::numeric_limits<double>::infinity();
  std::vector<Use> masks;  // true: attend
  std::vector<std::pair<double, Use>> biases;
  std::vector<Use> query_factors;
  Use query, key;
  Labels contracted;
};

bool is_mask_fill(const Graph& graph, const Use& use) {
  const auto value = graph.scalar_value(use);
  return value && *value <= kMaskLevel;
}

Use negated(Graph& graph, const Use& mask) { return graph.pointwise("not", {mask}, DType::kBool); }

struct AdditiveMask {
  Use keep;
  double fill;
};

// select(m, 0, -big) and its mirror image.
std::optional<AdditiveMask> additive_mask(Graph& graph, const Use& use) {
  if (!is_pointwise(use, "select_n") || use.node->edges.size() != 3) return std::nullopt;
  const Use predicate = graph.child(use, 0), off = graph.child(use, 1), on = graph.child(use, 2);
  if (predicate.node->dtype != DType::kBool) return std::nullopt;
  if (is_mask_fill(graph, off) && graph.scalar_value(on) == 0.0)
    return AdditiveMask{predicate, *graph.scalar_value(off)};
  if (is_mask_fill(graph, on) && graph.scalar_value(off) == 0.0) {
    return AdditiveMask{negated(graph, predicate), *graph.scalar_value(on)};
  }
  return std::nullopt;
}

// Takes the score apart from the outside in. `outer` is what the part at hand is multiplied with on
// its way out.
class Peeler {
 public:
  Peeler(Graph& graph, const Labels& along) : graph_(graph), along_(along) {}

  std::optional<Score> peel(const Use& use, double outer, Score score, int depth = 0) {
    if (depth > kMaxDepth) return std::nullopt;
    if (use.node->kind == Kind::kContract) return contraction(use, outer, std::move(score));
    if (use.node->kind != Kind::kPointwise) return std::nullopt;
    const std::string_view name = use.node->name;
    if (name == "convert_element_type") {
      const Use below = without_float_converts(graph_, use);
      if (below == use) return std::nullopt;
      return peel(below, outer, std::move(score), depth + 1);
    }
    if (name == "neg") return peel(graph_.child(use, 0), -outer, std::move(score), depth + 1);
    if (name == "mul" || name == "div") return product(use, outer, score, depth);
    if (name == "add" || name == "sub") return sum(use, outer, score, depth);
    if (name == "select_n") return masked(use, outer, std::move(score), depth);
    if (name == "tanh") return capped(use, outer, std::move(score), depth);
    return std::nullopt;
  }

 private:
  bool varies(const Use& use) const { return axis::intersects(use.flat(), along_); }

  std::optional<Score> contraction(const Use& use, double outer, Score score) {
    const Use lhs = graph_.child(use, 0), rhs = graph_.child(use, 1);
    for (const auto& [query, key] : {std::pair(lhs, rhs), std::pair(rhs, lhs)}) {
      if (!is_subset(along_, key.flat()) || varies(query)) continue;
      for (Label label : query.flat()) {
        if (axis::contains(key.flat(), label) && !axis::contains(use.flat(), label))
          score.contracted.push_back(label);
      }
      if (score.contracted.empty()) return std::nullopt;
      score.query = query;
      score.key = key;
      score.scale *= outer;
      return score;
    }
    return std::nullopt;
  }

  std::optional<Score> product(const Use& use, double outer, const Score& score, int depth) {
    const bool divides = use.node->name == "div";
    const Use lhs = graph_.child(use, 0), rhs = graph_.child(use, 1);
    if (const auto factor = graph_.scalar_value(rhs)) {
      return peel(lhs, divides ? outer / *factor : outer * *factor, score, depth + 1);
    }
    if (divides) return std::nullopt;
    if (const auto factor = graph_.scalar_value(lhs))
      return peel(rhs, outer * *factor, score, depth + 1);
    for (const auto& [part, factor] : {std::pair(lhs, rhs), std::pair(rhs, lhs)}) {
      if (varies(factor)) continue;  // a factor that does not vary along s belongs to the query
      Score with_factor = score;
      with_factor.query_factors.push_back(factor);
      if (auto found = peel(part, outer, std::move(with_factor), depth + 1)) return found;
    }
    return std::nullopt;
  }

  std::optional<Score> sum(const Use& use, double outer, const Score& score, int depth) {
    const bool subtracts = use.node->name == "sub";
    const Use lhs = graph_.child(use, 0), rhs = graph_.child(use, 1);
    for (int i = 0; i < (subtracts ? 1 : 2); ++i) {
      const Use& part = i == 0 ? lhs : rhs;
      const Use& other = i == 0 ? rhs : lhs;
      Score with_term = score;
      const auto mask = outer > 0 && !subtracts ? additive_mask(graph_, other) : std::nullopt;
      if (mask) {
        add_mask(with_term, mask->keep, mask->fill * outer);
      } else {
        with_term.biases.emplace_back(subtracts ? -outer : outer, other);
      }
      if (auto found = peel(part, outer, std::move(with_term), depth + 1)) return found;
    }
    return std::nullopt;
  }

  std::optional<Score> masked(const Use& use, double outer, Score score, int depth) {
    if (use.node->edges.size() != 3) return std::nullopt;
    const Use predicate = graph_.child(use, 0), off = graph_.child(use, 1),
              on = graph_.child(use, 2);
    if (predicate.node->dtype != DType::kBool || outer <= 0) return std::nullopt;
    if (is_mask_fill(graph_, off)) {
      add_mask(score, predicate, *graph_.scalar_value(off) * outer);
      return peel(on, outer, std::move(score), depth + 1);
    }
    if (!is_mask_fill(graph_, on)) return std::nullopt;
    add_mask(score, negated(graph_, predicate), *graph_.scalar_value(on) * outer);
    return peel(off, outer, std::move(score), depth + 1);
  }

  // cap * tanh(x / cap): masks and biases stand outside of it.
  std::optional<Score> capped(const Use& use, double outer, Score score, int depth) {
    if (score.cap != 0 || outer <= 0) return std::nullopt;
    const std::size_t outside = score.masks.size() + score.biases.size();
    score.cap = outer;
    auto found = peel(graph_.child(use, 0), 1, std::move(score), depth + 1);
    if (!found || found->masks.size() + found->biases.size() != outside) return std::nullopt;
    found->scale *= outer;
    return found;
  }

  static void add_mask(Score& score, const Use& keep, double fill) {
    score.masks.push_back(keep);
    score.fill = std::max(score.fill, fill);
  }

  Graph& graph_;
  const Labels& along_;
};

// scale * q and scale * k move into the op.
Use without_scale(Graph& graph, Use use, double& scale) {
  for (int i = 0; i < 4; ++i) {
    if (!is_pointwise(use, "mul") && !is_pointwise(use, "div")) break;
    const auto factor = graph.scalar_value(graph.child(use, 1));
    if (!factor) break;
    scale = use.node->name == "mul" ? scale * *factor : scale / *factor;
    use = graph.child(use, 0);
  }
  return use;
}

// i >= j for row i of t and column j of s, or anything that says the same.
bool is_causal(Graph& graph, const Use& mask, Label t, Label s) {
  const std::string_view name = mask.node->name;
  if (mask.node->kind != Kind::kPointwise || mask.node->edges.size() != 2) return false;
  const bool greater = name == "ge" || name == "gt", less = name == "le" || name == "lt";
  if ((!greater && !less) || !is_integer(mask.node->edges[0].node->dtype)) return false;
  const Sum lhs = terms(graph, graph.child(mask, 0)), rhs = terms(graph, graph.child(mask, 1));
  double row = 0, column = 0, offset = lhs.constant - rhs.constant;
  auto collect = [&](const Sum& sum, double sign) {
    for (const Term& term : sum.terms) {
      if (term.use.node->kind != Kind::kIota || term.use.flat().size() != 1) return false;
      const Label label = term.use.flat()[0];
      if (label != t && label != s) return false;
      (label == t ? row : column) += sign * term.coefficient;
    }
    return true;
  };
  if (!collect(lhs, 1) || !collect(rhs, -1)) return false;
  const double sign = greater ? 1 : -1;
  const double strict = name == "gt" || name == "lt" ? 1 : 0;
  return sign * row == 1 && sign * column == -1 && sign * offset - strict == 0;
}

struct Roles {
  Labels time, group;
};

// Labels that only the query has are time, or groups of heads that share a key: a group stands in
// one axis with a label of the key. Not where the key has positions in that axis: then it is a row
// of windows.
Roles query_roles(const Use& query, const Use& key, const Use& value, const Labels& contracted,
                  const Labels& along) {
  Labels shared;
  for (const Labels& axis : key.labels) {
    if (axis::intersects(axis, along)) continue;
    for (Label label : axis) {
      if (!axis::contains(contracted, label)) shared.push_back(label);
    }
  }
  Roles roles;
  for (const Labels& axis : query.labels) {
    const bool beside_key = axis::intersects(axis, shared);
    for (Label label : axis) {
      if (axis::contains(key.flat(), label) || axis::contains(value.flat(), label)) continue;
      (beside_key ? roles.group : roles.time).push_back(label);
    }
  }
  if (roles.time.empty() && !roles.group.empty()) {
    roles.time.push_back(roles.group.back());
    roles.group.pop_back();
  }
  return roles;
}

// All masks and biases as one summand, or an empty Use.
Use combined_bias(Graph& graph, const Score& score, const std::vector<Use>& masks, DType dtype) {
  Use total;
  auto add = [&](Use term) {
    total = total ? graph.pointwise("add", {total, term}, dtype) : std::move(term);
  };
  for (const auto& [factor, bias] : score.biases) {
    const Use term = convert(graph, bias, dtype);
    add(factor == 1 ? term : graph.pointwise("mul", {term, graph.scalar(factor, dtype)}, dtype));
  }
  if (masks.empty()) return total;
  Use keep = masks[0];
  for (std::size_t i = 1; i < masks.size(); ++i)
    keep = graph.pointwise("and", {keep, masks[i]}, DType::kBool);
  const Use fill = graph.scalar(std::min(score.fill, kAbsorbing), dtype);
  add(graph.pointwise("select_n", {keep, fill, graph.scalar(0, dtype)}, dtype));
  return total;
}

Use build_attention(const Matcher& m, const Use& root, const Use& value, const Labels& along,
                    Score score) {
  Graph& graph = m.graph;
  const DType dtype = root.node->dtype;
  score.query = without_scale(graph, score.query, score.scale);
  score.key = without_scale(graph, score.key, score.scale);
  for (const Use& factor : score.query_factors) {
    if (!is_subset(factor.flat(), score.query.flat()))
      return m.miss("attention", root, "a factor of the score has a foreign axis");
    score.query = graph.pointwise("mul", {score.query, factor}, score.query.node->dtype);
  }
  for (const Use* operand : std::initializer_list<const Use*>{&score.query, &score.key, &value}) {
    if (operand->node->dtype != dtype)
      return m.miss("attention", root, "query, key and value differ in dtype");
  }
  const Roles roles = query_roles(score.query, score.key, value, score.contracted, along);
  bool causal = false;
  std::vector<Use> masks;
  for (const Use& mask : score.masks) {
    const bool here = roles.time.size() == 1 && along.size() == 1 &&
                      graph.size(roles.time[0]) == graph.size(along[0]) &&
                      is_causal(graph, mask, roles.time[0], along[0]);
    causal = causal || here;
    if (!here) masks.push_back(mask);
  }
  // is_causal and a mask together are applied in an order that runtimes differ in.
  if (!masks.empty() || !score.biases.empty()) masks = score.masks, causal = false;
  std::vector<Use> operands{score.query, score.key, value};
  if (Use bias = combined_bias(graph, score, masks, dtype)) operands.push_back(std::move(bias));
  Labels rows = score.query.flat();
  for (const Labels& labels : {score.key.flat(), value.flat(), along})
    rows.insert(rows.end(), labels.begin(), labels.end());
  if (!is_subset(operands.back().flat(), rows))
    return m.miss("attention", root, "mask or bias has a foreign axis");
  front::Attrs attrs{{"cap", {score.cap}}, {"causal", {causal}}, {"scale", {score.scale}}};
  return graph.macro("attention", std::move(operands), root.flat(), dtype,
                     {{"d", score.contracted}, {"g", roles.group}, {"s", along}, {"t", roles.time}},
                     std::move(attrs));
}

Use match_attention(const Matcher& m, const Use& root) {
  Graph& graph = m.graph;
  if (root.node->dtype != DType::kF32) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    const Use weights = without_float_converts(graph, graph.child(root, i)),
              value = graph.child(root, 1 - i);
    if (!weights.node->is(Kind::kMacro, "softmax") || weights.node->dtype != DType::kF32) continue;
    const Labels along = graph.role(weights, "s");
    Labels contracted;
    for (Label label : weights.flat()) {
      if (!axis::contains(root.flat(), label)) contracted.push_back(label);
    }
    if (!same_set(along, contracted))
      return m.miss("attention", root, "the softmax runs along other axes than the contraction");
    if (m.uses[weights.node] > 1)
      return m.miss("attention", root, "the weights are used elsewhere");
    auto score = Peeler(graph, along).peel(graph.child(weights, 0), 1, {});
    if (!score)
      return m.miss("attention", root, "no contraction of a query and a key under the softmax");
    return build_attention(m, root, value, along, std::move(*score));
  }
  return {};
}

constexpr std::string_view kRoots[] = {"contract"};

constexpr std::string_view kSample = R"(
func @attention(%q: f32[2,5,3,4], %k: f32[2,6,3,4], %v: f32[2,6,3,4]) {
  %scale: f32[] = constant 0.5
  %qk: f32[2,3,5,6] = dot_general %q %k {dimension_numbers = (((3), (3)), ((0, 2), (0, 2)))}
  %score: f32[2,3,5,6] = mul %qk %scale
  %max: f32[2,3,5] = reduce_max %score {axes = (3)}
  %maxb: f32[2,3,5,1] = broadcast_in_dim %max {broadcast_dimensions = (0, 1, 2), shape = (2, 3, 5, 1)}
  %shift: f32[2,3,5,6] = sub %score %maxb
  %exp: f32[2,3,5,6] = exp %shift
  %sum: f32[2,3,5] = reduce_sum %exp {axes = (3)}
  %sumb: f32[2,3,5,1] = broadcast_in_dim %sum {broadcast_dimensions = (0, 1, 2), shape = (2, 3, 5, 1)}
  %p: f32[2,3,5,6] = div %exp %sumb
  %out: f32[2,3,5,4] = dot_general %p %v {dimension_numbers = (((3), (1)), ((0, 1), (0, 2)))}
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
