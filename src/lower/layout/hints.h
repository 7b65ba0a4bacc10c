// SPDX-License-Identifier: Apache-2.0
// The layouts that consumers want. A wish is what one consumer wants of an operand, in labels of
// the consumer. The wishes of all consumers of a value elect its hint, in labels of the value.
#pragma once

#include <optional>
#include <vector>

#include "lower/layout/facts.h"
#include "lower/layout/layout.h"

namespace jaxport::lower {

// Physical dims of a value in labels of its node; an empty dim is a unit dim. `order_only`: the
// grouping may follow the operands.
struct Hint {
  Arrangement dims;
  bool order_only = false;
  friend bool operator==(const Hint&, const Hint&) = default;
};
using Hints = std::vector<std::optional<Hint>>;  // by Facts::index

// What a consumer wants of an operand, in labels of the consumer, and how much.
struct Wish {
  double strength;
  Arrangement dims;
};
using MaybeWish = std::optional<Wish>;
constexpr double kStrong = 1, kWeak = 0.5;

// One backward sweep: each consumer, with its own wish known, says what it wants of its operands; a
// value elects the layout with the largest sum of strengths, the first consumer's on a tie. Values
// with a hint in `fixed` have that.
Hints collect_wishes(const Facts& facts, int opset, Hints fixed = {});
// The wish of one user of a value as a hint for the value. `wishes` has the hint of the user.
std::optional<Hint> vote_of(const Facts& facts, const axis::Node& value, const Facts::User& user,
                            const Hints& wishes, int opset);
std::optional<Hint> elected(const std::vector<Hint>& votes);

// The order in which a positional primitive takes operand `i`: its jaxpr dims permuted as its Row
// asks.
Arrangement prim_operand(const axis::Node& node, std::size_t i, int opset);

// The operand of a primitive that treats its dims one by one, for a result that is laid out so;
// nullopt when dims appear or vanish.
std::optional<Arrangement> dimwise_operand(const axis::Node& node, const Arrangement& result);

}  // namespace jaxport::lower
