// SPDX-License-Identifier: Apache-2.0
// Emission: axis nodes -> ONNX nodes in topological order, each in the cheapest of its candidate
// layouts.
//
// Candidates of a node are the layouts that its operands already have, plus the wish; the price of
// a candidate is what its operands' conversions cost now plus what the conversion of the result to
// the wish will cost. At equal prices the wish wins: the operands are converted, and other users of
// them find the converted variant.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "lower/emit/value_store.h"
#include "lower/layout/label_set.h"
#include "lower/layout/plan.h"
#include "lower/rows/ctx.h"
#include "lower/rows/shape_values.h"

namespace jaxport::lower {

// What the emission of a program works with.
struct Emission {
  const Plan& plan;
  const Choice& choice;  // the layouts to follow, in place of the plan's own
  onnx::Builder& op;
  ShapeValues& shapes;
  ValueStore values{plan.facts, plan.conversions, op, shapes};
  // An equation with several results is several nodes, and is lowered once: by primitive and
  // operands.
  using Equation =
      std::tuple<const axis::PrimInfo*, std::vector<std::size_t>, std::vector<axis::Pattern>>;
  std::map<Equation, Values> lowered{};
};

// Emits the program as a whole model.
void emit_model(Emission& e);
// Emits the program as a part of a graph. Arguments and results have all dims in jaxpr order.
Values emit_program(Emission& e, const Values& arguments);
// Nodes from now on have the origin of `node`.
void set_origin(Emission& e, const axis::Node& node);

// --- wishes
const MaybeWish& wish_for(const Emission& e, const axis::Node& node);
// The wish restricted to `labels`; nullopt without one.
std::optional<Arrangement> wanted(const Emission& e, const axis::Node& node,
                                  const LabelSet& labels);
std::optional<axis::Labels> wanted_order(const Emission& e, const axis::Node& node,
                                         const LabelSet& labels);
// What it will cost that the result is not in the layout that its consumers wish.
double regret(const Emission& e, const axis::Node& node, const Arrangement& result);

// --- one kind of node each; macros are emitted by their rows (macro.h)
void emit_concat(Emission& e, const axis::Node& node);
void emit_contract(Emission& e, const axis::Node& node);
void emit_iota(Emission& e, const axis::Node& node);
void emit_pick(Emission& e, const axis::Node& node);
void emit_pointwise(Emission& e, const axis::Node& node);
void emit_prim(Emission& e, const axis::Node& node);
void emit_reduce(Emission& e, const axis::Node& node);
void emit_relayout(Emission& e, const axis::Node& node);
void emit_slice(Emission& e, const axis::Node& node);
void emit_stack(Emission& e, const axis::Node& node);

// --- what several of them share
// The cheapest arrangement of `labels` for operands that broadcast. `order`: that of the wish.
Arrangement aligned(const Emission& e, const axis::Node& node, const axis::Labels& labels,
                    const std::optional<axis::Labels>& order);
// All operands of a broadcasting node in one arrangement, without leading unit dims that no operand
// has.
std::pair<Values, Arrangement> broadcast_operands(Emission& e, const axis::Node& node);

}  // namespace jaxport::lower
