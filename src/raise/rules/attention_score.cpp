// SPDX-License-Identifier: Apache-2.0
#include "raise/rules/attention_score.h"

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "raise/algebra/premise.h"
#include "raise/algebra/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

// Sums and products are searched on both sides; this many nodes are looked at in all.
constexpr int kMostPeeled = 64;

// `outer` is what the part at hand is multiplied with on its way out.
class Peeler {
 public:
  Peeler(Graph& graph, const Labels& along) : graph_(graph), along_(along) {}

  std::optional<Score> peel(const Use& use, double outer, Score score) {
    if (--nodes_left_ < 0 || !use) return std::nullopt;
    score.narrowest = narrower(score.narrowest, use.node->dtype);
    if (use.node->kind == Kind::kContract) return contraction(use, outer, std::move(score));
    if (use.node->kind != Kind::kPointwise) return std::nullopt;
    const std::string_view name = use.node->name;
    if (name == "convert_element_type") {
      const Use below = without_float_converts(graph_, use, score.narrowest);
      if (below == use) return std::nullopt;
      return peel(below, outer, std::move(score));
    }
    if (name == "neg") return peel(graph_.child(use, 0), -outer, std::move(score));
    if (name == "mul" || name == "div") return product(use, outer, score);
    if (name == "add" || name == "sub") return sum(use, outer, score);
    if (name == "select_n") return masked(use, outer, std::move(score));
    if (name == "tanh") return capped(use, outer, std::move(score));
    return std::nullopt;
  }

  const char* reason() const { return reason_; }

 private:
  std::optional<Score> contraction(const Use& use, double outer, Score score) {
    const Use lhs = graph_.child(use, 0), rhs = graph_.child(use, 1);
    for (const auto& [query, key] : {std::pair(lhs, rhs), std::pair(rhs, lhs)}) {
      if (!is_subset(along_, key.flat()) || axis::intersects(query.flat(), along_)) continue;
      for (Label label : query.flat()) {
        if (axis::contains(key.flat(), label) && !axis::contains(use.flat(), label))
          score.contracted.push_back(label);
      }
      if (score.contracted.empty() || outer == 0) return std::nullopt;
      score.query = query;
      score.key = key;
      score.scale *= outer;
      return score;
    }
    return std::nullopt;
  }

  std::optional<Score> product(const Use& use, double outer, const Score& score) {
    const bool divides = use.node->name == "div";
    const Use lhs = graph_.child(use, 0), rhs = graph_.child(use, 1);
    if (const auto factor = graph_.scalar_value(rhs)) {
      return peel(lhs, divides ? outer / *factor : outer * *factor, score);
    }
    if (const auto factor = graph_.scalar_value(lhs); factor && !divides) {
      return peel(rhs, outer * *factor, score);
    }
    if (auto found = peel(lhs, outer, with_factor(score, {rhs, divides}))) return found;
    if (divides) return std::nullopt;
    return peel(rhs, outer, with_factor(score, {lhs, false}));
  }

  static Score with_factor(Score score, Score::Factor factor) {
    score.factors.push_back(std::move(factor));
    return score;
  }

  std::optional<Score> sum(const Use& use, double outer, const Score& score) {
    const bool subtracts = use.node->name == "sub";
    const Use lhs = graph_.child(use, 0), rhs = graph_.child(use, 1);
    if (auto found = peel(lhs, outer, with_term(score, subtracts ? -outer : outer, rhs)))
      return found;
    return peel(rhs, subtracts ? -outer : outer, with_term(score, outer, lhs));
  }

  static Score with_term(Score score, double coefficient, const Use& term) {
    score.parts.push_back({Score::Part::Kind::kBias, term, coefficient, score.factors.size()});
    return score;
  }

  std::optional<Score> masked(const Use& use, double outer, Score score) {
    if (use.node->edges.size() != 3) return std::nullopt;
    const Use predicate = graph_.child(use, 0);
    if (predicate.node->dtype != DType::kBool) return std::nullopt;
    for (const std::size_t filled : {1u, 2u}) {
      const auto fill = graph_.scalar_value(graph_.child(use, filled));
      if (!fill || !is_mask_fill(*fill)) continue;
      const auto scaled = scaled_fill(*fill, outer, score.narrowest);
      if (!scaled || !score.factors.empty())
        return because("a mask is multiplied with something else than a positive number");
      const Use keep = filled == 1 ? predicate : logical_not(predicate);
      score.parts.push_back({Score::Part::Kind::kMask, keep, *scaled, 0});
      return peel(graph_.child(use, 3 - filled), outer, std::move(score));
    }
    return shifted(use, outer, score);
  }

  // select(m, x, x + c) = x + select(m, 0, c)
  std::optional<Score> shifted(const Use& use, double outer, const Score& score) {
    for (const std::size_t moved : {1u, 2u}) {
      const Use x = graph_.child(use, 3 - moved), other = graph_.child(use, moved);
      const bool subtracts = is_pointwise(other, "sub");
      if ((!subtracts && !is_pointwise(other, "add")) || graph_.child(other, 0) != x) continue;
      const auto by = graph_.scalar_value(graph_.child(other, 1));
      if (!by) continue;
      const Use m = graph_.child(use, 0), zero = graph_.scalar(0, use.node->dtype);
      const double c = subtracts ? -*by : *by;
      const Use shift = moved == 1 ? select(m, zero, c) : select(m, c, zero);
      return peel(x, outer, with_term(score, outer, shift));
    }
    return std::nullopt;
  }

  // cap * tanh(x / cap): masks, biases and factors stand outside of it.
  std::optional<Score> capped(const Use& use, double outer, Score score) {
    if (score.cap != 0 || outer <= 0 || !score.factors.empty()) return std::nullopt;
    const std::size_t outside = score.parts.size();
    score.cap = outer;
    auto found = peel(graph_.child(use, 0), 1, std::move(score));
    if (!found) return std::nullopt;
    if (found->parts.size() != outside) return because("a mask or a bias stands inside of the cap");
    found->scale *= outer;
    return found;
  }

  std::optional<Score> because(const char* reason) {
    reason_ = reason;
    return std::nullopt;
  }

  Graph& graph_;
  const Labels& along_;
  int nodes_left_ = kMostPeeled;
  const char* reason_ = "no contraction of a query and a key under the softmax";
};

}  // namespace

ScoreOrReason score_of(Graph& graph, const Use& use, const Labels& along) {
  Peeler peeler(graph, along);
  auto score = peeler.peel(use, 1, {});
  return {std::move(score), peeler.reason()};
}

}  // namespace jaxport::raise
