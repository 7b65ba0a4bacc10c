// SPDX-License-Identifier: Apache-2.0
#include "raise/attention_score.h"

#include <limits>

#include "axis/pattern.h"
#include "raise/attention_mask.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

// Sums and products are searched on both sides; this many nodes are looked at in all.
constexpr int kMostNodes = 64;
// A score of at most this is a mask: its weight is zero.
constexpr double kMaskLevel = -1e4;
// Scores are multiplied after they were masked, seldom by less than this.
constexpr double kScaledMaskLevel = -1e3;
// Added to a score of ordinary size, this absorbs it: adding and filling are the same.
constexpr double kAbsorbing = -1e30;
constexpr double kNever = -std::numeric_limits<double>::infinity();

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

  // A mask that is added is as good as a fill when it absorbs the score, or when it is causal: then
  // no row consists of masked scores alone, which would show the difference.
  Score with_term(Score score, double coefficient, const Use& term) {
    if (along_.size() == 1 && coefficient > 0 &&
        is_causal_constant(term, along_[0], kMaskLevel / coefficient)) {
      score.masks.push_back({positions_in_order(term), kNever});
      return score;
    }
    if (auto mask = additive_mask(graph_, term); mask && coefficient > 0) {
      const double fill = mask->fill * coefficient;
      if (fill <= kAbsorbing || (fill <= kMaskLevel && is_causal_mask(mask->keep))) {
        score.masks.push_back({std::move(mask->keep), fill});
        return score;
      }
    }
    score.biases.push_back({coefficient, term});
    return score;
  }

  // column <= row, for a constant of rows and columns
  Use positions_in_order(const Use& constant) {
    const Labels labels = constant.flat();
    const Label row = labels[labels[0] == along_[0] ? 1 : 0];
    return graph_.pointwise(
        "ge", {graph_.iota(row, DType::kI32), graph_.iota(along_[0], DType::kI32)}, DType::kBool);
  }

  bool is_causal_mask(const Use& keep) {
    if (along_.size() != 1) return false;
    const auto band = band_of(graph_, conjuncts(graph_, keep), along_[0]);
    return band && is_causal(graph_, *band);
  }

  std::optional<Score> masked(const Use& use, double outer, Score score) {
    if (use.node->edges.size() != 3) return std::nullopt;
    const Use predicate = graph_.child(use, 0);
    if (predicate.node->dtype != DType::kBool) return std::nullopt;
    for (const std::size_t filled : {1u, 2u}) {
      const auto fill = graph_.scalar_value(graph_.child(use, filled));
      if (!fill || !(*fill <= kMaskLevel && *fill * outer <= kScaledMaskLevel)) continue;
      const Use keep = filled == 1 ? predicate : graph_.pointwise("not", {predicate}, DType::kBool);
      score.masks.push_back({keep, *fill * outer});
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
      const DType dtype = use.node->dtype;
      std::vector<Use> operands(3, graph_.scalar(0, dtype));
      operands[0] = graph_.child(use, 0);
      operands[moved] = graph_.scalar(subtracts ? -*by : *by, dtype);
      const Use shift = graph_.pointwise("select_n", std::move(operands), dtype);
      return peel(x, outer, with_term(score, outer, shift));
    }
    return std::nullopt;
  }

  // cap * tanh(x / cap): masks, biases and factors stand outside of it.
  std::optional<Score> capped(const Use& use, double outer, Score score) {
    if (score.cap != 0 || outer <= 0 || !score.factors.empty()) return std::nullopt;
    const std::size_t outside = score.masks.size() + score.biases.size();
    score.cap = outer;
    auto found = peel(graph_.child(use, 0), 1, std::move(score));
    if (!found || found->masks.size() + found->biases.size() != outside) return std::nullopt;
    found->scale *= outer;
    return found;
  }

  Graph& graph_;
  const Labels& along_;
  int nodes_left_ = kMostNodes;
};

}  // namespace

std::optional<Score> score_of(Graph& graph, const Use& use, const Labels& along) {
  return Peeler(graph, along).peel(use, 1, {});
}

}  // namespace jaxport::raise
