// SPDX-License-Identifier: Apache-2.0
// Control flow: regions become programs of their own, and what is decided at export is inlined.
#include <algorithm>
#include <utility>

#include "axis/graph/pattern.h"
#include "axis/graph/view.h"
#include "axis/translate/counted_while.h"
#include "axis/translate/region.h"
#include "axis/translate/steps_at_once.h"
#include "axis/translate/translate.h"
#include "axis/translate/unroll.h"

namespace jaxport::axis {
namespace {

using front::Function;
using Types = std::vector<front::Type>;

Types types_of(const Function& function, const std::vector<front::ValueId>& values) {
  Types types;
  for (front::ValueId id : values) types.push_back(function.type(id));
  return types;
}

std::vector<View> joined(std::span<const View> first, std::span<const View> second) {
  std::vector<View> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

// The region of a body that runs once, on the operands from `first` on.
Program* straight_region(const Translation& t, const Function& body, std::size_t first) {
  t.require(body.params.size() + first == t.in.size() && body.results.size() == t.eqn.out.size(),
            "a body has other operands or results");
  RegionBuilder region(t.inliner);
  std::vector<View> arguments;
  for (std::size_t i = first; i < t.in.size(); ++i) {
    arguments.push_back(region.invariant(t.in_type(i), t.in[i]));
  }
  std::vector<View> results = region.run(body, std::move(arguments));
  return t.graph.own(region.finish(std::move(results), types_of(body, body.results)));
}

// --- cond

// Takes back what lax.cond and lax.switch do to their operand: a bool becomes an index, and an
// index is clamped, as the choice of a branch does anyway.
void simplify_index(Translation& t, std::size_t branches) {
  Use& index = t.in[0].use;
  if (index.node->is(Kind::kPointwise, "clamp") &&
      t.graph.scalar_value(t.graph.child(index, 0)) == 0.0 &&
      t.graph.scalar_value(t.graph.child(index, 2)) == static_cast<double>(branches - 1)) {
    index = t.graph.child(index, 1);
  }
  if (branches == 2 && index.node->is(Kind::kPointwise, "convert_element_type")) {
    Use operand = t.graph.child(index, 0);
    if (operand.node->dtype == DType::kBool) index = std::move(operand);
  }
}

Views cond(Translation& t) {
  t.require(!t.in.empty() && t.in[0].dims.empty(), "needs a scalar index");
  const std::vector<front::Region> branches = front::CondParams::read(t.eqn).branches;
  const auto last = static_cast<double>(branches.size() - 1);
  const auto index = branches.size() == 1 ? 0 : t.graph.scalar_value(t.in[0].use);
  if (index) {
    const auto taken = static_cast<std::size_t>(std::clamp(*index, 0.0, last));
    return t.inliner.run(*branches[taken], {t.in.begin() + 1, t.in.end()});
  }
  simplify_index(t, branches.size());
  std::vector<Program*> regions;
  regions.reserve(branches.size());
  for (const front::Region& branch : branches) regions.push_back(straight_region(t, *branch, 1));
  return translate_prim(t, std::move(regions));
}

// --- loops

// A carry that the body hands on as it is: nothing is carried.
bool is_constant_carry(const Function& body, std::size_t carry, std::size_t consts) {
  return body.results[carry] == body.params[consts + carry];
}

// The results of a loop, with those that are operands all along.
Views loop_results(Translation& t, std::vector<Program*> regions,
                   const std::vector<bool>& is_constant, std::size_t consts) {
  std::vector<View> operands = t.in;
  Views results = translate_prim(t, std::move(regions));
  for (std::size_t i = 0; i < is_constant.size(); ++i) {
    if (is_constant[i]) (*results)[i] = std::move(operands[consts + i]);
  }
  return results;
}

// --- scan

front::ScanParams scan_params(const Translation& t) {
  front::ScanParams scan = front::ScanParams::read(t.eqn);
  const front::Function& body = *scan.body;
  t.require(scan.first_x() <= t.in.size() && body.params.size() == t.in.size() &&
                scan.carries <= t.eqn.out.size() && body.results.size() == t.eqn.out.size(),
            "the operands do not fit the body");
  for (std::size_t i = scan.first_x(); i < t.in.size(); ++i) {
    t.require(!t.in_shape(i).empty(), "a scalar is scanned over");
  }
  for (std::size_t i = scan.carries; i < t.eqn.out.size(); ++i) {
    t.require(!t.out_type(i).shape.empty(), "a scalar collects the steps");
  }
  return scan;
}

// The carry as it came, and results without elements.
std::vector<View> no_step(Translation& t, const front::ScanParams& scan) {
  std::vector<View> results;
  for (std::size_t i = 0; i < t.eqn.out.size(); ++i) {
    const front::Type& type = t.out_type(i);
    results.push_back(i < scan.carries ? t.in[scan.consts + i]
                                       : View{t.graph.scalar(0, type.dtype),
                                              broadcast_dims(t.graph, type.shape)});
  }
  return results;
}

Views scan(Translation& t) {
  const front::ScanParams scan = scan_params(t);
  const Function& body = *scan.body;
  if (scan.length == Dim(0)) return no_step(t, scan);
  if (is_short(t, scan) || is_layers(t, scan)) return unrolled(t, scan);
  if (Views results = without_carry(t, scan)) return results;
  if (Views results = behind_carry(t, scan)) return results;
  std::vector<bool> is_constant;
  for (std::size_t i = 0; i < scan.carries; ++i) {
    is_constant.push_back(is_constant_carry(body, i, scan.consts));
  }
  RegionBuilder region(t.inliner);
  std::vector<View> arguments;
  for (std::size_t i = 0; i < t.in.size(); ++i) {
    const front::Type& type = body.type(body.params[i]);
    const bool varies = i >= scan.first_x() || (i >= scan.consts && !is_constant[i - scan.consts]);
    arguments.push_back(varies ? region.variable(type) : region.invariant(type, t.in[i]));
  }
  std::vector<View> results = region.run(body, std::move(arguments));
  Program* step = t.graph.own(region.finish(std::move(results), types_of(body, body.results)));
  return loop_results(t, {step}, is_constant, scan.consts);
}

// --- while

front::WhileParams while_params(const Translation& t) {
  front::WhileParams loop = front::WhileParams::read(t.eqn);
  const std::size_t carries = t.eqn.out.size();
  t.require(loop.consts() + carries == t.in.size() &&
                loop.cond->params.size() == loop.cond_consts + carries &&
                loop.body->params.size() == loop.body_consts + carries &&
                loop.body->results.size() == carries && loop.cond->results.size() == 1,
            "the operands do not fit the condition and the body");
  return loop;
}

// One region of a while loop under construction.
struct WhileRegion {
  WhileRegion(const Translation& t, const front::WhileParams& params,
              const std::vector<bool>& is_constant)
      : loop(params), region(t.inliner) {
    for (std::size_t i = 0; i < t.in.size(); ++i) {
      const bool varies = i >= loop.consts() && !is_constant[i - loop.consts()];
      inputs.push_back(varies ? region.variable(t.in_type(i))
                              : region.invariant(t.in_type(i), t.in[i]));
    }
  }
  std::span<const View> carry() const { return std::span(inputs).subspan(loop.consts()); }

  View condition(std::span<const View> carry) {
    return region.run(*loop.cond, joined(std::span(inputs).first(loop.cond_consts), carry))[0];
  }
  std::vector<View> next() {
    const auto consts = std::span(inputs).subspan(loop.cond_consts, loop.body_consts);
    return region.run(*loop.body, joined(consts, carry()));
  }

  const front::WhileParams& loop;
  RegionBuilder region;
  std::vector<View> inputs;
};

// vmap leaves a bool for each element of the batch: the loop goes on while any of them is true.
View any(Graph& graph, const View& condition) {
  if (condition.dims.empty()) return condition;
  return {graph.reduce("reduce_or", condition.use, flatten(condition.dims), DType::kBool), {}};
}

// Elements of the batch that are done keep their value. The batch dims of a carry come first.
View where(Graph& graph, View active, View next, View old) {
  active.dims.resize(next.dims.size());
  const DType dtype = next.use.node->dtype;
  Unified unified = unify(graph, {std::move(active), std::move(old), std::move(next)});
  return {graph.pointwise("select_n", std::move(unified.uses), dtype), std::move(unified.dims)};
}

std::unique_ptr<Program> condition_region(WhileRegion r) {
  const View condition = any(r.region.graph(), r.condition(r.carry()));
  return r.region.finish({condition}, {{DType::kBool, {}}});
}

std::unique_ptr<Program> step_region(const Translation& t, WhileRegion r) {
  Graph& graph = r.region.graph();
  std::vector<View> next = r.next();
  const Dims& batch = r.loop.cond->type(r.loop.cond->results[0]).shape;
  if (!batch.empty()) {
    const View active = r.condition(r.carry());
    for (std::size_t i = 0; i < next.size(); ++i) {
      t.require(batch.size() <= next[i].dims.size(), "the condition does not fit the carry");
      next[i] = where(graph, active, std::move(next[i]), r.carry()[i]);
    }
  }
  Types types{front::Type{DType::kBool, {}}};
  for (front::ValueId id : r.loop.body->results) types.push_back(r.loop.body->type(id));
  const View condition = any(graph, r.condition(next));
  return r.region.finish(joined(std::span(&condition, 1), next), std::move(types));
}

Views while_loop(Translation& t) {
  const front::WhileParams loop = while_params(t);
  if (Views results = as_scan(t, loop)) return results;
  std::vector<bool> is_constant;
  for (std::size_t i = 0; i < t.eqn.out.size(); ++i) {
    is_constant.push_back(is_constant_carry(*loop.body, i, loop.body_consts));
  }
  Program* condition = t.graph.own(condition_region(WhileRegion(t, loop, is_constant)));
  Program* step = t.graph.own(step_region(t, WhileRegion(t, loop, is_constant)));
  return loop_results(t, {condition, step}, is_constant, loop.consts());
}

// --- custom_linear_solve: the solution is what the user's solver gives

Views custom_linear_solve(Translation& t) {
  const auto params = front::LinearSolveParams::read(t.eqn);
  t.require(params.consts <= t.in.size(), "'const_lengths' does not fit the operands");
  const auto consts = std::span(t.in).subspan(params.first_const, params.solve_consts);
  return t.inliner.run(*params.solve, joined(consts, std::span(t.in).subspan(params.consts)));
}

constexpr TranslationRow kControlRows[] = {
    // sorted by primitive
    {"cond", cond},
    {"custom_linear_solve", custom_linear_solve},
    {"scan", scan},
    {"while", while_loop},
};
static_assert(std::ranges::is_sorted(kControlRows, {}, &TranslationRow::primitive));

}  // namespace

Views translate_call(Translation& t, const front::CallRow& call) {
  const Function& body = *front::get_region(t.eqn, call.region);
  if (!front::function_mark(t.eqn)) return t.inliner.run(body, std::move(t.in));
  return translate_prim(t, {straight_region(t, body, 0)});
}

std::span<const TranslationRow> control_translations() { return kControlRows; }

}  // namespace jaxport::axis
