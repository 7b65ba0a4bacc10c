// SPDX-License-Identifier: Apache-2.0
// What rules take for granted, as code that is checked: one place for the premises that more than
// one rule has.
#pragma once

#include <optional>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::raise {

// --- masks of attention
//
// JAX replaces a masked score by a fill; ONNX Attention can only add. So a fill becomes a number
// that absorbs what it is added to, and the softmax of the row must not notice. In a row with a
// score that is not masked, masked ones have no weight before and after. In a row without one the
// largest fills share the weight, so that fills keep their order. This takes scores and biases of a
// program to be of ordinary size: finite, and larger than the fill of a mask.

// Below every score of ordinary size.
bool is_mask_fill(double fill);
// fill * factor, when this is the fill of scores times the factor: it is positive, and `dtype`
// holds the product.
std::optional<double> scaled_fill(double fill, double factor, DType dtype);
// A finite number that `dtype` does not round to infinity.
bool is_held(double value, DType dtype);
// fill + x is fill in f32, for every x of ordinary size.
bool absorbs(double fill);
// A score plus `fill` has no weight beside a score plus `other`.
bool is_far_below(double fill, double other);
// For each fill a number that absorbs, in the order of the fills; -inf stays. Empty when two fills
// differ by so little that both have weight.
std::vector<double> absorbing_fills(const std::vector<double>& fills);
// The lowest number that ONNX Runtime does not take for -inf, with room for a score.
double finite_fill(double fill);
// Sums of some of these fills in f32 compare as the sums of finite_fill of them do.
bool sums_stay_in_order(const std::vector<double>& fills);

// The values that a use may have.
struct Range {
  double lowest, highest;  // of the finite ones
  bool is_finite;
};
// Known for literals, constants, what is computed from them, and a choice between them.
std::optional<Range> range_of(axis::Graph& graph, const axis::Use& use);
// The largest magnitude among the finite numbers that pointwise operations, reductions and moves
// make `root` of. A number such as -1e9 means a mask, whatever is computed with it. Infinite when
// there are too many operations.
double largest_literal(const axis::Node& root);
// A fill beside which a bias made of such numbers is of ordinary size.
bool is_beyond(double fill, double literal);
// A number made of such literals may leave little of the fill that it is added to.
bool may_cancel(double fill, double literal);

// --- clamps

// u for max(u, 0) and select(u < 0, 0, u), which both keep NaN; an empty Use for anything else. A
// caller that drops the clamp must show that u is not negative.
axis::Use clamped_at_zero(axis::Graph& graph, const axis::Use& use);

// --- values that cancel

// A maximum of what `of` is computed from, possibly guarded or scaled by numbers that keep it
// finite where it is. A value that cancels mathematically may be left out only then: NaN and
// infinities of anything else would be lost with it. A mean, or a single element, may be infinite
// as soon as one of the elements is -inf; their maximum only when all of them are.
bool is_made_of_maxima(const axis::Node& value, const axis::Node& of);

}  // namespace jaxport::raise
