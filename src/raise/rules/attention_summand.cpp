// SPDX-License-Identifier: Apache-2.0
// The parts of a score are applied from the inside out, as JAX does: a bias is added to all that
// stands inside of it, a mask replaces it. What differs from JAX are the fills, see premise.h. A
// row that is masked everywhere keeps what JAX makes of it: equal weights after a finite fill, NaN
// after -inf, zeros when the weights are masked again.
#include "raise/rules/attention_summand.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "raise/algebra/premise.h"
#include "raise/algebra/views.h"
#include "raise/rules/attention_mask.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Label;
using axis::Labels;
using axis::Use;

constexpr double kNever = -kInfinity;

bool same_members(const std::vector<Use>& a, const std::vector<Use>& b) {
  const auto holds = [](const std::vector<Use>& all, const std::vector<Use>& some) {
    return std::ranges::all_of(
        some, [&](const Use& use) { return std::ranges::find(all, use) != all.end(); });
  };
  return holds(a, b) && holds(b, a);
}

// A part of the score, outermost first.
struct Item {
  enum class Kind : std::uint8_t {
    kBias,   // `value` is added
    kAdded,  // `value` is added: 0 where `keep` holds, `fill` elsewhere
    kFill,   // where `keep` is false, `fill` replaces what stands inside
  };
  Kind kind;
  Use value, keep;
  double fill = 0;
  bool varies = true;                         // along the keys
  std::optional<Range> range = std::nullopt;  // of the value
  bool is_scaled = false;                     // after it was added
  double literal = 0;                         // the largest in a value without a known range

  bool is_mask() const { return kind != Kind::kBias; }
  // What it masks has no weight beside scores without a bias.
  bool is_hard() const { return kind == Kind::kFill || is_mask_fill(fill); }
  bool never() const { return is_mask() && fill == kNever; }
};

class ScoreReading {
 public:
  ScoreReading(Graph& graph, const Score& score, const Weights& weights, const Labels& along,
               const Labels& rows, DType dtype)
      : graph_(graph),
        weights_(weights),
        along_(along),
        rows_(rows),
        dtype_(dtype),
        narrowest_(score.narrowest) {
    for (const Score::Part& part : score.parts) items_.push_back(item(score, part));
    if (std::ranges::none_of(items_, &Item::is_mask)) return;
    for (Item& each : items_) {
      if (each.kind != Item::Kind::kBias) continue;
      each.range = range_of(graph_, each.value);
      if (!each.range) each.literal = largest_literal(*each.value.node);
    }
  }

  SummandOrReason run() {
    for (auto step : {&ScoreReading::compare_guards, &ScoreReading::find_causal,
                      &ScoreReading::compare_fills, &ScoreReading::find_empty_rows}) {
      if (const char* reason = (this->*step)()) return {{}, reason};
    }
    build();
    return {std::move(result_)};
  }

 private:
  // --- parts

  Item item(const Score& score, const Score::Part& part) {
    if (part.kind == Score::Part::Kind::kMask)
      return {Item::Kind::kFill, {}, part.use, part.number};
    const bool varies = axis::intersects(part.use.flat(), along_) ||
                        std::any_of(score.factors.begin(), score.factors.begin() + part.factors,
                                    [&](const Score::Factor& factor) {
                                      return axis::intersects(factor.use.flat(), along_);
                                    });
    Item found{Item::Kind::kBias, bias(score, part), {}, 0, varies};
    auto mask = part.factors == 0 ? additive(part.use) : std::nullopt;
    if (!mask || !(mask->fill * part.number < 0)) return found;
    found.kind = Item::Kind::kAdded;
    found.varies = true;
    found.keep = std::move(mask->keep);
    found.fill = mask->fill * part.number;
    found.is_scaled = part.number != 1;
    found.range = std::isinf(found.fill) ? Range{0, 0, false} : Range{found.fill, 0, true};
    return found;
  }

  Use bias(const Score& score, const Score::Part& part) {
    Use value = convert(part.use, dtype_);
    for (std::size_t i = part.factors; i-- > 0;) {
      const auto& [factor, divides] = score.factors[i];
      const Use by = convert(factor, dtype_);
      value = divides ? value / by : value * by;
    }
    return part.number == 1 ? value : value * part.number;
  }

  std::optional<AdditiveMask> additive(const Use& use) {
    if (along_.size() == 1) {
      if (auto triangle = additive_triangle(graph_, use, along_[0])) return triangle;
    }
    return additive_mask(graph_, use);
  }

  std::vector<Use> keeps(bool (*test)(const Item&)) const {
    std::vector<Use> all;
    for (const Item& each : items_) {
      if (!each.is_mask() || !test(each)) continue;
      for (Use& part : conjuncts(graph_, each.keep)) {
        if (std::ranges::find(all, part) == all.end()) all.push_back(std::move(part));
      }
    }
    return all;
  }

  // Each row keeps a score, as far as these masks go.
  bool keeps_each_row(const std::vector<Use>& masks) const {
    if (masks.empty()) return true;
    const auto band = along_.size() == 1 ? band_of(graph_, masks, along_[0]) : std::nullopt;
    return band && has_no_empty_row(graph_, *band);
  }

  // --- weights that are masked again

  // Where the weights are masked along the keys, they must be masked as the scores are.
  const char* compare_guards() {
    const auto absorbing = [](const Item& each) {
      return each.kind == Item::Kind::kFill || absorbs(each.fill);
    };
    const std::vector<Use> masks = keeps(absorbing);
    for (const Weights::Step& step : weights_.steps) {
      if (!axis::intersects(step.use.flat(), along_)) continue;
      if (!same_members(conjuncts(graph_, step.use), masks))
        return "the weights have another mask than the scores";
      if (keeps_each_row(masks)) continue;
      if (has_factor_inside(step)) return "a factor of the weights stands inside of their mask";
      is_guarded_ = true;
    }
    return nullptr;
  }

  // It may be NaN in a row that the mask sets to zero.
  bool has_factor_inside(const Weights::Step& mask) const {
    return std::any_of(weights_.steps.begin() + (&mask - weights_.steps.data()) + 1,
                       weights_.steps.end(), [&](const Weights::Step& step) {
                         return step.kind != Weights::Step::Kind::kMask &&
                                !graph_.scalar_value(step.use);
                       });
  }

  // --- premises

  // The keys after the query have no weight beside the key at its place. Biases inside of a mask
  // may be anything then, but for numbers as low as its fill.
  const char* find_causal() {
    const auto masks = keeps([](const Item& each) { return each.is_hard(); });
    const auto band = along_.size() == 1 ? band_of(graph_, masks, along_[0]) : std::nullopt;
    if (!band || !is_causal(graph_, *band) || !axis::contains(rows_, band->row)) return nullptr;
    bool has_bias = false, has_unknown = false, is_inside = true;
    double lowest = 0, highest = 0;
    for (const Item& each : items_) {
      if (each.is_hard()) {
        is_inside = is_inside && each.never() && each.kind == Item::Kind::kFill && !has_bias;
        continue;
      }
      has_bias = true;
      has_unknown = has_unknown || !each.range || !each.range->is_finite;
      if (!each.range) continue;
      lowest += each.range->lowest;
      highest += each.range->highest;
    }
    const bool dominates = std::ranges::all_of(items_, [&](const Item& each) {
      return !each.is_hard() || is_far_below(each.fill + highest, lowest);
    });
    if (has_unknown ? is_inside : dominates) result_.causal_row = band->row;
    return nullptr;
  }

  // A number for the row that may be as large as a fill takes it away again, so that a row without
  // scores shows what stands outside: the maximum of masked scores, subtracted before a bias.
  bool is_taken_away(std::size_t mask) const {
    const double fill = items_[mask].fill;
    return std::any_of(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(mask),
                       [&](const Item& outside) {
                         return outside.kind == Item::Kind::kBias && !outside.varies &&
                                may_cancel(fill, magnitude(outside));
                       });
  }

  // A finite fill stands for every number below the scores. A bias must not tell the difference.
  const char* compare_fills() {
    if (result_.causal_row) return nullptr;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].is_mask() && items_[i].is_hard() && !items_[i].never() && is_taken_away(i))
        return "a number that may cancel the fill of a mask is added to the row";
    }
    const bool no_empty_row = keeps_each_row(keeps([](const Item&) { return true; }));
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Item& mask = items_[i];
      if (mask.kind != Item::Kind::kFill || mask.never()) continue;
      double lowest = 0, highest = 0;
      for (std::size_t j = 0; j < items_.size(); ++j) {
        const Item& other = items_[j];
        const bool is_outside = j < i;
        if (other.kind == Item::Kind::kFill || (is_outside && !other.varies)) continue;
        if (!other.range) {
          if (is_beyond(mask.fill, other.literal)) continue;
          return "a mask that is filled with a number stands beside a bias that may be as low";
        }
        lowest += other.range->lowest;
        if (!is_outside || is_beyond(mask.fill, -other.range->lowest)) continue;
        if (!no_empty_row || !other.range->is_finite)
          return "a bias outside of a mask shows in rows that are masked everywhere";
        highest += other.range->highest;
      }
      if (!is_far_below(mask.fill + highest, lowest))
        return "a bias is as low as the fill of a mask";
    }
    for (const Item& each : items_) {
      if (each.kind == Item::Kind::kFill) fills_.push_back(is_guarded_ ? kNever : each.fill);
    }
    const bool has_masks = !fills_.empty();
    fills_ = absorbing_fills(fills_);
    if (has_masks && fills_.empty()) return "the fills of the masks differ by little";
    return nullptr;
  }

  // A fill that becomes another number still decides where a bias is as large as it is.
  const char* compare_added() const {
    for (const Item& mask : items_) {
      if (mask.kind != Item::Kind::kAdded || !absorbs(mask.fill) || mask.never()) continue;
      if (!is_guarded_ && finite_fill(mask.fill) == mask.fill) continue;
      const bool all_beyond = std::ranges::all_of(items_, [&](const Item& each) {
        return each.kind != Item::Kind::kBias || is_beyond(mask.fill, magnitude(each));
      });
      if (!all_beyond) return "a mask is added beside a bias that may be as large as its fill";
    }
    return nullptr;
  }
  static double magnitude(const Item& bias) {
    if (!bias.range) return bias.literal;
    return std::max(std::abs(bias.range->lowest), std::abs(bias.range->highest));
  }

  // Rows of -inf: NaN in JAX, zeros in ONNX Runtime.
  const char* find_empty_rows() {
    if (result_.causal_row) return weights_.has_no_nan ? nan_reason(false) : nullptr;
    if (const char* reason = compare_added()) return reason;
    std::vector<double> added;
    for (const Item& each : items_) {
      if (each.kind == Item::Kind::kAdded && std::isfinite(each.fill)) added.push_back(each.fill);
    }
    const bool is_narrow = mantissa_bits(narrowest_) < mantissa_bits(DType::kF32);
    if (is_narrow && std::ranges::any_of(added, is_mask_fill) &&
        !keeps_each_row(keeps([](const Item& each) { return each.is_hard(); }))) {
      return "a mask absorbs the scores that it is added to in 16 bits";
    }
    // Sums that overflow before they are scaled are not looked into.
    const bool has_low = std::ranges::any_of(added, absorbs);
    const bool is_scaled = std::ranges::any_of(items_, &Item::is_scaled);
    if (has_low && added.size() > 1 && (is_scaled || !sums_stay_in_order(added)))
      return "the masks that are added overflow";
    if (std::ranges::any_of(added, [&](double fill) { return !is_held(fill, narrowest_); }))
      return "a mask that is added overflows";
    double sum = 0;
    for (double fill : added) sum += fill;
    const bool overflows = added.size() > 1 && sum < -std::numeric_limits<float>::max();
    const bool has_never = std::ranges::any_of(items_, &Item::never);
    has_nan_rows_ =
        overflows || !keeps_each_row(keeps([](const Item& each) { return each.never(); }));
    result_.zero_rows = is_guarded_ || (weights_.has_no_nan && has_nan_rows_);
    if (weights_.has_no_nan) return nan_reason(has_never || overflows);
    return nullptr;
  }

  const char* nan_reason(bool has_never) const {
    const bool has_unknown = std::ranges::any_of(
        items_, [](const Item& each) { return each.kind == Item::Kind::kBias && !each.range; });
    const bool is_infinite = has_never || std::ranges::any_of(items_, &Item::never);
    return !is_infinite || has_unknown ? "NaN weights are replaced" : nullptr;
  }

  // --- the summand

  void build() {
    std::size_t fill = fills_.size();
    for (auto each = items_.rbegin(); each != items_.rend(); ++each) {
      if (each->kind == Item::Kind::kFill) {
        if (!result_.causal_row) replace(each->keep, fills_[--fill]);
      } else if (!result_.causal_row || !each->is_hard()) {
        add(*each);
      }
    }
    if (has_nan_rows_ && !result_.zero_rows) mark_empty_rows();
  }

  Use scalar(double value) { return graph_.scalar(value, dtype_); }

  void replace(const Use& keep, double fill) {
    const Use inside = result_.added ? result_.added : scalar(0);
    result_.added = select(keep, inside, fill);
    result_.keep = result_.keep ? logical_and(result_.keep, keep) : keep;
  }

  void add(const Item& each) {
    Use value = each.value;
    if (each.kind == Item::Kind::kAdded && absorbs(each.fill)) {
      const double fill = is_guarded_ ? kNever : finite_fill(each.fill);
      if (fill != each.fill) value = select(each.keep, scalar(0), fill);
    }
    result_.added = result_.added ? result_.added + value : std::move(value);
  }

  void mark_empty_rows() {
    Labels over;
    for (Label label : along_) {
      if (axis::contains(result_.added.flat(), label)) over.push_back(label);
    }
    const Use nan_or_zero = reduce_max(result_.added, over) * 0;
    result_.added = result_.added + nan_or_zero;
  }

  Graph& graph_;
  const Weights& weights_;
  const Labels &along_, &rows_;
  const DType dtype_, narrowest_;
  std::vector<Item> items_;
  std::vector<double> fills_;  // what stands for the fills of the masks that replace scores
  bool is_guarded_ = false;    // rows that are masked everywhere give zeros
  bool has_nan_rows_ = false;  // rows may be -inf everywhere
  ScoreSummand result_;
};

}  // namespace

SummandOrReason summand_of(Graph& graph, const Score& score, const Weights& weights,
                           const Labels& along, const Labels& rows, DType dtype) {
  return ScoreReading(graph, score, weights, along, rows, dtype).run();
}

}  // namespace jaxport::raise
