// SPDX-License-Identifier: Apache-2.0
#include "axis/translate/counted_while.h"

#include <algorithm>
#include <utility>

#include "axis/graph/view.h"

namespace jaxport::axis {
namespace {

using front::Eqn;
using front::Function;
using front::ValueId;
using front::WhileParams;
using MaybeInt = std::optional<std::int64_t>;

// A scan without xs has a bool for each step.
constexpr std::int64_t kMostTrips = 1 << 16;
// Counters stay below, so that none of 32 bits runs over.
constexpr std::int64_t kLargestCount = std::int64_t{1} << 30;

std::optional<std::size_t> index_of(const std::vector<ValueId>& values, ValueId id) {
  const auto found = std::ranges::find(values, id);
  if (found == values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - values.begin());
}

MaybeInt small_int(MaybeInt value) {
  const bool is_small = value && -kLargestCount < *value && *value < kLargestCount;
  return is_small ? value : std::nullopt;
}

bool is_counter(const front::Type& type) {
  return type.shape.empty() && (type.dtype == DType::kI32 || type.dtype == DType::kI64);
}

// A number that the function holds.
MaybeInt constant_of(const Function& function, ValueId id) {
  const auto found = std::ranges::find(function.constants, id, &front::Constant::value);
  if (found == function.constants.end() || !is_counter(function.type(id))) return std::nullopt;
  return small_int(found->tensor.int_at(0));
}

// A number that the loop is given.
MaybeInt operand_of(const Translation& t, std::size_t i) {
  if (!is_counter(t.in_type(i))) return std::nullopt;
  const auto value = t.graph.scalar_value(t.in[i].use);
  if (!value || !(-kLargestCount < *value && *value < kLargestCount)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

// The operand of the loop that a parameter of the condition is: a constant or a carry.
std::size_t operand_index(const WhileParams& loop, std::size_t param) {
  return param < loop.cond_consts ? param : param + loop.body_consts;
}

// What a value of the condition is in all steps.
MaybeInt bound_of(const Translation& t, const WhileParams& loop, ValueId id) {
  const auto param = index_of(loop.cond->params, id);
  if (!param) return constant_of(*loop.cond, id);
  if (*param >= loop.cond_consts) {
    const std::size_t carry = *param - loop.cond_consts;
    if (loop.body->results[carry] != loop.body->params[loop.body_consts + carry]) return {};
  }
  return operand_of(t, operand_index(loop, *param));
}

// By how much the body raises the carry.
MaybeInt increment_of(const WhileParams& loop, std::size_t carry) {
  const Function& body = *loop.body;
  const ValueId next = body.results[carry], now = body.params[loop.body_consts + carry];
  for (const Eqn& eqn : body.eqns) {
    if (eqn.primitive != "add" || eqn.out != std::vector{next} || eqn.in.size() != 2) continue;
    if (eqn.in[0] == now) return constant_of(body, eqn.in[1]);
    if (eqn.in[1] == now) return constant_of(body, eqn.in[0]);
  }
  return std::nullopt;
}

// How often the body runs.
MaybeInt trips_of(const Translation& t, const WhileParams& loop) {
  const Function& cond = *loop.cond;
  if (cond.eqns.size() != 1 || cond.eqns[0].out != cond.results || cond.eqns[0].in.size() != 2) {
    return std::nullopt;
  }
  const Eqn& compare = cond.eqns[0];
  const bool counts_to = compare.primitive == "le";  // the last count is the bound
  if (!counts_to && compare.primitive != "lt") return std::nullopt;
  const auto param = index_of(cond.params, compare.in[0]);
  if (!param || *param < loop.cond_consts) return std::nullopt;
  const MaybeInt start = operand_of(t, operand_index(loop, *param));
  const MaybeInt bound = bound_of(t, loop, compare.in[1]);
  const MaybeInt step = increment_of(loop, *param - loop.cond_consts);
  if (!start || !bound || !step || *step <= 0) return std::nullopt;
  const std::int64_t range = *bound - *start + (counts_to ? 1 : 0);
  return range <= 0 ? 0 : (range + *step - 1) / *step;
}

}  // namespace

Views as_scan(Translation& t, const WhileParams& loop) {
  const MaybeInt trips = trips_of(t, loop);
  if (!trips || *trips > kMostTrips) return std::nullopt;
  const auto first = static_cast<std::ptrdiff_t>(loop.cond_consts);
  Function function;
  Eqn scan;
  scan.primitive = "scan";
  scan.location = t.eqn.location;
  for (std::size_t i = loop.cond_consts; i < t.in.size(); ++i) {
    scan.in.push_back(function.add_value(t.in_type(i)));
  }
  for (std::size_t i = 0; i < t.eqn.out.size(); ++i) {
    scan.out.push_back(function.add_value(t.out_type(i)));
  }
  scan.attrs = {{"jaxpr", loop.body},
                {"length", Dim(*trips)},
                {"num_carry", static_cast<std::int64_t>(scan.out.size())},
                {"num_consts", static_cast<std::int64_t>(loop.body_consts)},
                {"reverse", false}};
  function.params = scan.in;
  function.results = scan.out;
  function.eqns.push_back(std::move(scan));
  return t.inliner.run(function, {t.in.begin() + first, t.in.end()});
}

}  // namespace jaxport::axis
