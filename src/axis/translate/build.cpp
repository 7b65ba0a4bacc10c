// SPDX-License-Identifier: Apache-2.0
// front -> axis: walks the equations once, inlines calls, and leaves what it does not know as
// positional primitives.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "axis/graph/pointwise.h"
#include "axis/graph/view.h"
#include "axis/translate/inliner.h"
#include "axis/translate/translate.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "support/watch.h"

namespace jaxport::axis {

void Translation::require(bool fact, std::string_view why) const {
  if (!fact) throw Error("E032", fmt::format("primitive '{}': {}", eqn.primitive, why));
}

void Translation::require_operands(std::size_t operands) const {
  require(eqn.in.size() >= operands && eqn.out.size() == 1,
          "the numbers of operands and results do not fit");
}

std::vector<std::size_t> Translation::axes(const Ints& values, std::size_t rank) const {
  std::vector<std::size_t> found;
  std::vector<bool> seen(rank, false);
  for (std::int64_t value : values) {
    const auto axis = static_cast<std::size_t>(value);
    require(value >= 0 && axis < rank, fmt::format("axis {} is out of range", value));
    require(!seen[axis], fmt::format("axis {} appears twice", value));
    seen[axis] = true;
    found.push_back(axis);
  }
  return found;
}

std::vector<std::size_t> Translation::axes(std::string_view name, std::size_t rank) const {
  return axes(front::get_ints(eqn, name), rank);
}

std::size_t Translation::axis(std::string_view name, std::size_t rank) const {
  return axes(Ints{front::get_int(eqn, name)}, rank)[0];
}

namespace {

template <class Row>
const Row* find_row(std::span<const Row> rows, std::string_view primitive) {
  auto row = std::ranges::lower_bound(rows, primitive, {}, &Row::primitive);
  return row != rows.end() && row->primitive == primitive ? &*row : nullptr;
}

auto families() {
  return std::array{shape_translations(),   index_translations(),      math_translations(),
                    control_translations(), collective_translations(), window_translations(),
                    update_translations()};
}

}  // namespace

bool is_translated(std::string_view primitive) {
  return front::find_call(primitive) != nullptr ||
         std::ranges::any_of(families(), [&](std::span<const TranslationRow> rows) {
           return find_row(rows, primitive) != nullptr;
         });
}

Views translate_prim(Translation& t, std::vector<Program*> regions) {
  auto info = std::make_shared<PrimInfo>();
  info->eqn.primitive = t.eqn.primitive;
  info->eqn.attrs = t.eqn.attrs;
  info->eqn.location = t.eqn.location;
  std::vector<Use> operands;
  for (std::size_t i = 0; i < t.in.size(); ++i) {
    info->in.push_back({t.in[i].use.node->dtype, t.in_shape(i)});
    operands.push_back(positional(t.graph, t.in[i]));
  }
  for (std::size_t i = 0; i < t.eqn.out.size(); ++i) info->out.push_back(t.out_type(i));
  info->regions = std::move(regions);
  std::vector<View> results;
  for (Use& use : t.graph.prim(info, std::move(operands))) {
    View view{std::move(use), {}};
    std::size_t axis = 0;
    for (const Dim& size : info->out[results.size()].shape) {
      view.dims.push_back(size.is_one() ? Labels{} : view.use.labels[axis++]);
    }
    results.push_back(std::move(view));
  }
  return results;
}

namespace {

std::vector<View> translate(Translation& t) {
  if (find_pointwise(t.eqn.primitive)) {
    const auto* special = find_row(math_translations(), t.eqn.primitive);
    Views results = special ? special->translate(t) : translate_pointwise(t);
    return results ? *std::move(results) : *translate_prim(t);
  }
  for (const auto& rows : families()) {
    if (const auto* row = find_row(rows, t.eqn.primitive)) {
      if (Views results = row->translate(t)) return *std::move(results);
    }
  }
  return *translate_prim(t);
}

bool is_empty(const front::Type& type) { return std::ranges::any_of(type.shape, &Dim::is_zero); }

// An array without elements is the same whatever it comes from: a constant that has the static dims
// and is repeated along the symbolic ones. What it was computed from ends there.
View empty_view(Graph& graph, const front::Type& type) {
  Shape shape;
  for (const Dim& size : type.shape) {
    if (size.is_static()) shape.push_back(size.value());
  }
  View view = graph.constant_view(allocate(type.dtype, std::move(shape)).tensor);
  for (std::size_t dim = 0; dim < type.shape.size(); ++dim) {
    if (type.shape[dim].is_static()) continue;
    view.dims.insert(view.dims.begin() + static_cast<std::ptrdiff_t>(dim),
                     Labels{graph.label(type.shape[dim])});
  }
  return view;
}

// No translation or lowering has to know of results without elements.
std::optional<std::vector<View>> empty_results(const Translation& t) {
  const auto is_empty_result = [&](front::ValueId id) { return is_empty(t.function.type(id)); };
  if (t.eqn.out.empty() || !std::ranges::all_of(t.eqn.out, is_empty_result)) return std::nullopt;
  std::vector<View> results;
  for (front::ValueId id : t.eqn.out) {
    results.push_back(empty_view(t.graph, t.function.type(id)));
  }
  return results;
}

}  // namespace

std::vector<View> Inliner::run(const front::Function& function, std::vector<View> arguments) {
  if (arguments.size() != function.params.size()) {
    throw Error("E032", fmt::format("function '{}' is called with {} arguments for {} parameters",
                                    function.name, arguments.size(), function.params.size()));
  }
  const Nested level;
  std::vector<View> values(function.values.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!fits(arguments[i], function.type(function.params[i]))) {
      throw Error("E032", fmt::format("argument {} of function '{}' does not fit its type", i,
                                      function.name));
    }
    const front::Type& type = function.type(function.params[i]);
    values[function.params[i]] =
        is_empty(type) ? empty_view(*program_.graph, type) : std::move(arguments[i]);
  }
  for (const front::Constant& constant : function.constants) {
    values[constant.value] = program_.graph->constant_view(constant.tensor, constant.path);
  }
  for (const front::Eqn& eqn : function.eqns) add(function, eqn, values);
  std::vector<View> results;
  for (front::ValueId id : function.results) results.push_back(values[id]);
  return results;
}

void Inliner::add(const front::Function& function, const front::Eqn& eqn,
                  std::vector<View>& values) {
  const front::LocationId outer = location_;
  if (eqn.location != front::kNoLocation) location_ = eqn.location;
  program_.graph->set_location(location_);
  Translation t{*program_.graph, *this, function, eqn, {}};
  for (front::ValueId id : eqn.in) t.in.push_back(values[id]);
  try {
    watch().add_equation();
    const auto* call = front::find_call(eqn.primitive);
    auto empty = empty_results(t);
    std::vector<View> results = empty  ? *std::move(empty)
                                : call ? *translate_call(t, *call)
                                       : translate(t);
    t.require(results.size() == eqn.out.size(), "the number of results does not fit");
    for (std::size_t i = 0; i < results.size(); ++i) {
      // The types in the file are what later equations rely on.
      t.require(fits(results[i], t.out_type(i)), "a result does not fit its type");
      values[eqn.out[i]] = is_empty(t.out_type(i)) ? empty_view(*program_.graph, t.out_type(i))
                                                   : std::move(results[i]);
    }
  } catch (Error& error) {
    if (error.source().empty() && location_ < program_.locations->size()) {
      error = front::located(std::move(error), program_.location(location_));
    }
    if (error.equation().empty()) error.equation(front::print(function, eqn));
    throw;
  }
  location_ = outer;
}

bool Inliner::fits(const View& view, const front::Type& type) const {
  if (view.use.node->dtype != type.dtype || view.dims.size() != type.shape.size()) return false;
  for (std::size_t dim = 0; dim < type.shape.size(); ++dim) {
    const Dim size = program_.graph->size_of(view.dims[dim]);
    if (!(size == type.shape[dim]) && equal(size, type.shape[dim]) == Truth::kNo) return false;
  }
  return true;
}

View input_view(Graph& graph, std::size_t index, const front::Type& type, const std::string& name) {
  View view{graph.input(static_cast<std::int64_t>(index), type, name), {}};
  std::size_t axis = 0;
  for (const Dim& size : type.shape) {
    view.dims.push_back(size.is_one() ? Labels{} : view.use.labels[axis++]);
  }
  return view;
}

Program build(const front::Module& module, const front::Function& function,
              const Preferences& preferences, const Unrolling& unrolling) {
  watch().enter("axis");
  Program program;
  program.dims = module.dims;
  program.graph = std::make_shared<Graph>(module.dims);
  program.locations = std::make_shared<const Locations>(module.locations);
  program.preferences = &preferences;
  program.unrolling = unrolling;
  std::vector<View> arguments;
  for (front::ValueId id : function.params) {
    const front::Value& value = function.values[id];
    arguments.push_back(input_view(*program.graph, arguments.size(), value.type, value.name));
    program.inputs.push_back({value.type, value.name});
  }
  program.outputs = Inliner(program).run(function, std::move(arguments));
  for (front::ValueId id : function.results) program.output_types.push_back(function.type(id));
  program.output_names = function.result_names;
  return program;
}

}  // namespace jaxport::axis
