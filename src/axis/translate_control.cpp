// SPDX-License-Identifier: Apache-2.0
// Control flow: regions become programs of their own, and what is decided at export is inlined.
#include <algorithm>
#include <utility>

#include "axis/pattern.h"
#include "axis/region.h"
#include "axis/translate.h"
#include "axis/view.h"

namespace jaxport::axis {
namespace {

using front::Function;
using Types = std::vector<front::Type>;

Types types_of(const Function& function, const std::vector<front::ValueId>& values) {
  Types types;
  for (front::ValueId id : values) types.push_back(function.type(id));
  return types;
}

// A count of operands that a parameter gives.
std::size_t count_of(const Translation& t, std::string_view name) {
  const std::int64_t count = front::get_int(t.eqn, name);
  t.require(count >= 0 && count <= std::ssize(t.in), "a count of operands is out of range");
  return static_cast<std::size_t>(count);
}

std::vector<View> joined(std::span<const View> first, std::span<const View> second) {
  std::vector<View> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

// --- cond

std::vector<const Function*> branches_of(const Translation& t) {
  const front::Attr* attr = front::find(t.eqn.attrs, "branches");
  const auto* list = attr ? attr->get_if<front::List>() : nullptr;
  t.require(list && !list->empty(), "'branches' is not a list of functions");
  std::vector<const Function*> branches;
  for (const front::Attr& item : *list) {
    const auto* region = item.get_if<front::Region>();
    t.require(region && *region, "'branches' is not a list of functions");
    branches.push_back(region->get());
  }
  return branches;
}

std::shared_ptr<Program> branch_region(const Translation& t, const Function& branch) {
  t.require(branch.params.size() + 1 == t.in.size() && branch.results.size() == t.eqn.out.size(),
            "a branch has other operands or results");
  RegionBuilder region(t.inliner);
  std::vector<View> arguments;
  for (std::size_t i = 1; i < t.in.size(); ++i) {
    arguments.push_back(region.invariant(t.in_type(i), t.in[i]));
  }
  std::vector<View> results = region.run(branch, std::move(arguments));
  return region.finish(std::move(results), types_of(branch, branch.results));
}

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
  const std::vector<const Function*> branches = branches_of(t);
  const auto last = static_cast<double>(branches.size() - 1);
  const auto index = branches.size() == 1 ? 0 : t.graph.scalar_value(t.in[0].use);
  if (index) {
    const auto taken = static_cast<std::size_t>(std::clamp(*index, 0.0, last));
    return t.inliner.run(*branches[taken], {t.in.begin() + 1, t.in.end()});
  }
  simplify_index(t, branches.size());
  std::vector<std::shared_ptr<Program>> regions;
  regions.reserve(branches.size());
  for (const Function* branch : branches) regions.push_back(branch_region(t, *branch));
  return translate_prim(t, std::move(regions));
}

// --- loops

// A carry that the body hands on as it is: nothing is carried.
bool is_constant_carry(const Function& body, std::size_t carry, std::size_t consts) {
  return body.results[carry] == body.params[consts + carry];
}

// The results of a loop, with those that are operands all along.
Views loop_results(Translation& t, std::shared_ptr<Program> first, std::shared_ptr<Program> second,
                   const std::vector<bool>& is_constant, std::size_t consts) {
  std::vector<View> operands = t.in;
  std::vector<std::shared_ptr<Program>> regions{std::move(first)};
  if (second) regions.push_back(std::move(second));
  Views results = translate_prim(t, std::move(regions));
  for (std::size_t i = 0; i < is_constant.size(); ++i) {
    if (is_constant[i]) (*results)[i] = std::move(operands[consts + i]);
  }
  return results;
}

// --- scan

struct ScanParts {
  explicit ScanParts(const Translation& t)
      : consts(count_of(t, "num_consts")),
        carries(count_of(t, "num_carry")),
        length(front::get_dim(t.eqn, "length")),
        body(front::get_region(t.eqn, "jaxpr")) {
    t.require(consts + carries <= t.in.size() && body.params.size() == t.in.size() &&
                  carries <= t.eqn.out.size() && body.results.size() == t.eqn.out.size(),
              "the operands do not fit the body");
    for (std::size_t i = consts + carries; i < t.in.size(); ++i) {
      t.require(!t.in_shape(i).empty(), "a scalar is scanned over");
    }
    for (std::size_t i = carries; i < t.eqn.out.size(); ++i) {
      t.require(!t.out_type(i).shape.empty(), "a scalar collects the steps");
    }
  }
  std::size_t first_x() const { return consts + carries; }

  std::size_t consts, carries;
  Dim length;
  const Function& body;
};

// One value for each step, along a new first dim.
View stacked(Graph& graph, std::vector<View> steps) {
  if (steps.size() == 1) {
    steps[0].dims.emplace(steps[0].dims.begin());
    return std::move(steps[0]);
  }
  const Label step = graph.label(std::ssize(steps));
  Unified unified = unify(graph, std::move(steps));
  View result{graph.stack(std::move(unified.uses), step), std::move(unified.dims)};
  result.dims.emplace(result.dims.begin(), Labels{step});
  return result;
}

// The carry as it came, and results without elements.
std::vector<View> no_step(Translation& t, const ScanParts& scan) {
  std::vector<View> results;
  for (std::size_t i = 0; i < t.eqn.out.size(); ++i) {
    const front::Type& type = t.out_type(i);
    results.push_back(i < scan.carries ? t.in[scan.consts + i]
                                       : View{t.graph.scalar(0, type.dtype),
                                              broadcast_dims(t.graph, type.shape)});
  }
  return results;
}

// The body once for each step.
std::vector<View> unrolled(Translation& t, const ScanParts& scan) {
  const std::int64_t length = scan.length.value();
  const bool reverse = front::get_bool(t.eqn, "reverse");
  std::vector<View> arguments = t.in;
  std::vector<std::vector<View>> steps(static_cast<std::size_t>(length));
  for (std::int64_t n = 0; n < length; ++n) {
    const std::int64_t step = reverse ? length - 1 - n : n;
    for (std::size_t i = scan.first_x(); i < arguments.size(); ++i) {
      arguments[i] = slice_dim(t.graph, t.in[i], 0, step, 1, 1);
      arguments[i].dims.erase(arguments[i].dims.begin());
    }
    std::vector<View>& results = steps[static_cast<std::size_t>(step)];
    results = t.inliner.run(scan.body, arguments);
    std::copy_n(results.begin(), scan.carries,
                arguments.begin() + static_cast<std::ptrdiff_t>(scan.consts));
  }
  std::vector<View> results = steps[reverse ? 0 : steps.size() - 1];
  for (std::size_t i = scan.carries; i < results.size(); ++i) {
    std::vector<View> ys;
    ys.reserve(steps.size());
    for (std::vector<View>& step : steps) ys.push_back(std::move(step[i]));
    results[i] = stacked(t.graph, std::move(ys));
  }
  return results;
}

// ONNX Runtime takes 0.84 to 0.96 of the time of a Scan when two to four steps of a small body are
// unrolled; longer loops and larger bodies gain nothing.
bool is_unrolled(const ScanParts& scan) {
  constexpr std::int64_t kMostSteps = 4;
  constexpr std::size_t kLargestBody = 8;
  if (scan.length.is_one()) return true;
  const auto has_region = [](const front::Eqn& eqn) {
    return std::ranges::any_of(eqn.attrs, [](const auto& attr) {
      return attr.second.template get_if<front::Region>() || attr.first == "branches";
    });
  };
  return scan.length.is_static() && scan.length.value() <= kMostSteps &&
         scan.body.eqns.size() <= kLargestBody && std::ranges::none_of(scan.body.eqns, has_region);
}

Views scan(Translation& t) {
  const ScanParts scan(t);
  if (scan.length == Dim(0)) return no_step(t, scan);
  if (is_unrolled(scan)) return unrolled(t, scan);
  std::vector<bool> is_constant;
  for (std::size_t i = 0; i < scan.carries; ++i) {
    is_constant.push_back(is_constant_carry(scan.body, i, scan.consts));
  }
  RegionBuilder region(t.inliner);
  std::vector<View> arguments;
  for (std::size_t i = 0; i < t.in.size(); ++i) {
    const front::Type& type = scan.body.type(scan.body.params[i]);
    const bool varies = i >= scan.first_x() || (i >= scan.consts && !is_constant[i - scan.consts]);
    arguments.push_back(varies ? region.variable(type) : region.invariant(type, t.in[i]));
  }
  std::vector<View> results = region.run(scan.body, std::move(arguments));
  auto body = region.finish(std::move(results), types_of(scan.body, scan.body.results));
  return loop_results(t, std::move(body), nullptr, is_constant, scan.consts);
}

// --- while

struct WhileParts {
  explicit WhileParts(const Translation& t)
      : cond_consts(count_of(t, "cond_nconsts")),
        body_consts(count_of(t, "body_nconsts")),
        cond(front::get_region(t.eqn, "cond_jaxpr")),
        body(front::get_region(t.eqn, "body_jaxpr")) {
    t.require(consts() + t.eqn.out.size() == t.in.size() &&
                  cond.params.size() == cond_consts + t.eqn.out.size() &&
                  body.params.size() == body_consts + t.eqn.out.size() &&
                  body.results.size() == t.eqn.out.size() && cond.results.size() == 1,
              "the operands do not fit the condition and the body");
  }
  std::size_t consts() const { return cond_consts + body_consts; }

  std::size_t cond_consts, body_consts;
  const Function &cond, &body;
};

// One region of a while loop under construction.
struct WhileRegion {
  WhileRegion(const Translation& t, const WhileParts& parts, const std::vector<bool>& is_constant)
      : loop(parts), region(t.inliner) {
    for (std::size_t i = 0; i < t.in.size(); ++i) {
      const bool varies = i >= loop.consts() && !is_constant[i - loop.consts()];
      inputs.push_back(varies ? region.variable(t.in_type(i))
                              : region.invariant(t.in_type(i), t.in[i]));
    }
  }
  std::span<const View> carry() const { return std::span(inputs).subspan(loop.consts()); }

  View condition(std::span<const View> carry) {
    return region.run(loop.cond, joined(std::span(inputs).first(loop.cond_consts), carry))[0];
  }
  std::vector<View> next() {
    const auto consts = std::span(inputs).subspan(loop.cond_consts, loop.body_consts);
    return region.run(loop.body, joined(consts, carry()));
  }

  const WhileParts& loop;
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

std::shared_ptr<Program> condition_region(WhileRegion r) {
  const View condition = any(r.region.graph(), r.condition(r.carry()));
  return r.region.finish({condition}, {{DType::kBool, {}}});
}

std::shared_ptr<Program> step_region(const Translation& t, WhileRegion r) {
  Graph& graph = r.region.graph();
  std::vector<View> next = r.next();
  const Dims& batch = r.loop.cond.type(r.loop.cond.results[0]).shape;
  if (!batch.empty()) {
    const View active = r.condition(r.carry());
    for (std::size_t i = 0; i < next.size(); ++i) {
      t.require(batch.size() <= next[i].dims.size(), "the condition does not fit the carry");
      next[i] = where(graph, active, std::move(next[i]), r.carry()[i]);
    }
  }
  Types types{front::Type{DType::kBool, {}}};
  for (front::ValueId id : r.loop.body.results) types.push_back(r.loop.body.type(id));
  const View condition = any(graph, r.condition(next));
  return r.region.finish(joined(std::span(&condition, 1), next), std::move(types));
}

Views while_loop(Translation& t) {
  const WhileParts loop(t);
  std::vector<bool> is_constant;
  for (std::size_t i = 0; i < t.eqn.out.size(); ++i) {
    is_constant.push_back(is_constant_carry(loop.body, i, loop.body_consts));
  }
  auto condition = condition_region(WhileRegion(t, loop, is_constant));
  auto step = step_region(t, WhileRegion(t, loop, is_constant));
  return loop_results(t, std::move(condition), std::move(step), is_constant, loop.consts());
}

// --- custom_linear_solve: the solution is what the user's solver gives

Views custom_linear_solve(Translation& t) {
  const front::Attr* jaxprs = front::find(t.eqn.attrs, "jaxprs");
  const front::Attr* lengths = front::find(t.eqn.attrs, "const_lengths");
  const auto* functions = jaxprs ? jaxprs->get_if<front::Record>() : nullptr;
  const auto* counts = lengths ? lengths->get_if<front::Record>() : nullptr;
  t.require(functions && counts && functions->fields.size() == counts->fields.size(),
            "'jaxprs' and 'const_lengths' do not fit");
  std::size_t before = 0, all = 0;
  const Function* solve = nullptr;
  std::vector<View> arguments;
  for (std::size_t i = 0; i < counts->fields.size(); ++i) {
    const auto* count = counts->fields[i].second.get_if<std::int64_t>();
    t.require(count && *count >= 0 && *count <= std::ssize(t.in), "'const_lengths' is malformed");
    before = std::exchange(all, all + static_cast<std::size_t>(*count));
    t.require(all <= t.in.size(), "'const_lengths' is malformed");
    if (functions->fields[i].first != "solve") continue;
    const auto* region = functions->fields[i].second.get_if<front::Region>();
    t.require(region && *region, "there is no 'solve'");
    solve = region->get();
    arguments.assign(t.in.begin() + static_cast<std::ptrdiff_t>(before),
                     t.in.begin() + static_cast<std::ptrdiff_t>(all));
  }
  t.require(solve != nullptr, "there is no 'solve'");
  return t.inliner.run(*solve, joined(arguments, std::span(t.in).subspan(all)));
}

constexpr TranslationRow kRows[] = {
    // sorted by primitive
    {"cond", cond},
    {"custom_linear_solve", custom_linear_solve},
    {"scan", scan},
    {"while", while_loop},
};
static_assert(std::ranges::is_sorted(kRows, {}, &TranslationRow::primitive));

}  // namespace

std::span<const TranslationRow> control_translations() { return kRows; }

}  // namespace jaxport::axis
