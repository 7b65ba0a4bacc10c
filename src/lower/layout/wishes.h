// SPDX-License-Identifier: Apache-2.0
// The layouts that are wished: a consumer has a wish for each operand, in labels of the consumer,
// and the wish for a value, in labels of the value, is what most of its consumers want.
#pragma once

#include <optional>
#include <vector>

#include "lower/layout/facts.h"
#include "lower/layout/layout.h"

namespace jaxport::lower {

constexpr double kStrong = 1, kWeak = 0.5;

// Physical dims, and how much they are wanted; an empty dim is a unit dim.
struct Wish {
  double strength;
  Arrangement dims;
  // A weak wish is for the order of the labels only; the grouping may follow the operands.
  bool is_for_order() const { return strength < kStrong; }
  friend bool operator==(const Wish&, const Wish&) = default;
};
using MaybeWish = std::optional<Wish>;
using Wishes = std::vector<MaybeWish>;  // for values, by Facts::index

// One backward sweep: each consumer, with the wish for its result known, says what it wants of its
// operands. Values with a wish in `fixed` have that.
Wishes collect_wishes(const Facts& facts, int opset, Wishes fixed = {});
// What one user of a value wants of it, in labels of the value. `wishes` has that for the user.
MaybeWish wish_of(const Facts& facts, const axis::Node& value, const Facts::User& user,
                  const Wishes& wishes, int opset);
// The dims with the largest sum of strengths, the first on a tie.
MaybeWish prevailing(const std::vector<Wish>& wishes);

}  // namespace jaxport::lower
