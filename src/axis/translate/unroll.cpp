// SPDX-License-Identifier: Apache-2.0
#include "axis/translate/unroll.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "axis/graph/view.h"

namespace jaxport::axis {
namespace {

using front::ScanParams;

// --- what is unrolled

bool has_region(const front::Eqn& eqn) {
  return std::ranges::any_of(eqn.attrs, [](const auto& attr) {
    return attr.second.template get_if<front::Region>() || attr.first == "branches";
  });
}

// Computed from constants alone, in a few steps: a weight, perhaps converted.
bool is_weight(const Node& node, int depth = 3) {
  if (node.kind == Kind::kConstant) return true;
  if (depth == 0 || (node.kind != Kind::kPointwise && node.kind != Kind::kRelayout)) return false;
  return std::ranges::all_of(node.edges,
                             [&](const Edge& edge) { return is_weight(*edge.node, depth - 1); });
}

// How many elements one step has; nullopt when that is not known.
std::optional<std::int64_t> step_elements(const Dims& shape) {
  std::int64_t elements = 1;
  for (const Dim& size : std::span(shape).subspan(1)) {
    if (!size.is_static()) return std::nullopt;
    elements *= size.value();
  }
  return elements;
}

// --- steps

// Step `n` of a constant that lies in memory step by step: it shares the bytes. nullopt when the
// view is something else.
std::optional<View> part_of_constant(Graph& graph, const View& view, std::int64_t n) {
  const Node& node = *view.use.node;
  if (node.kind != Kind::kConstant || node.data.shape.size() != view.use.labels.size() ||
      view.use.labels.empty() || view.use.labels[0] != view.dims[0]) {
    return std::nullopt;
  }
  Tensor part{node.data.dtype, {node.data.shape.begin() + 1, node.data.shape.end()}, nullptr};
  const auto bytes = static_cast<std::ptrdiff_t>(part.nbytes());
  part.data = {node.data.data, node.data.data.get() + n * bytes};
  const std::string path = node.path.empty() ? "" : fmt::format("{}.{}", node.path, n);
  const Use use = graph.constant(std::move(part), path);
  if (use.labels.size() + 1 != view.use.labels.size()) return std::nullopt;
  return View{{use.node, {view.use.labels.begin() + 1, view.use.labels.end()}},
              {view.dims.begin() + 1, view.dims.end()}};
}

View step_of(Graph& graph, const View& view, std::int64_t n) {
  if (auto part = part_of_constant(graph, view, n)) return *std::move(part);
  View step = slice_dim(graph, view, 0, n, 1, 1);
  step.dims.erase(step.dims.begin());
  return step;
}

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

// A function that does nothing but to call `body`, marked to be shared by all steps.
front::Function call_of(const front::Region& body) {
  front::Function function;
  front::Eqn call;
  call.primitive = "jit";
  for (front::ValueId id : body->params) call.in.push_back(function.add_value(body->type(id)));
  for (front::ValueId id : body->results) call.out.push_back(function.add_value(body->type(id)));
  function.params = call.in;
  function.results = call.out;
  call.attrs = {{"jaxpr", body}, {"name", std::string("onnx_function:custom:layer:shares")}};
  function.eqns.push_back(std::move(call));
  return function;
}

}  // namespace

bool is_short(const Translation& t, const ScanParams& scan) {
  if (scan.length.is_one()) return true;
  const Preferences& preferences = t.preferences();
  return scan.length.is_static() && scan.length.value() <= preferences.most_unrolled_steps &&
         scan.body->eqns.size() <= preferences.largest_unrolled_body &&
         std::ranges::none_of(scan.body->eqns, has_region);
}

bool is_layers(const Translation& t, const ScanParams& scan) {
  const Unrolling& unrolling = t.inliner.program().unrolling;
  const std::int64_t most = unrolling.most_layers.value_or(t.preferences().most_unrolled_layers);
  if (!scan.length.is_static() || scan.length.value() > most) return false;
  std::int64_t weights = 0, others = 0, largest = 0;
  const auto count = [&](const Dims& shape, bool is_constant) {
    const auto elements = step_elements(shape);
    if (!elements) return false;
    (is_constant ? weights : others) += *elements;
    if (is_constant && shape.size() > 2) largest = std::max(largest, *elements);
    return true;
  };
  for (std::size_t i = scan.first_x(); i < t.in.size(); ++i) {
    if (!count(t.in_shape(i), is_weight(*t.in[i].use.node))) return false;
  }
  for (std::size_t i = scan.carries; i < t.eqn.out.size(); ++i) {
    if (!count(t.out_type(i).shape, false)) return false;
  }
  return largest >= Preferences::kLargeWeight && others < weights;
}

std::vector<View> unrolled(Translation& t, const ScanParams& scan) {
  const std::int64_t length = scan.length.value();
  std::optional<front::Function> call;
  if (t.inliner.program().unrolling.as_functions && is_layers(t, scan)) call = call_of(scan.body);
  std::vector<View> arguments = t.in;
  std::vector<std::vector<View>> steps(static_cast<std::size_t>(length));
  for (std::int64_t n = 0; n < length; ++n) {
    const std::int64_t step = scan.reverse ? length - 1 - n : n;
    for (std::size_t i = scan.first_x(); i < arguments.size(); ++i) {
      arguments[i] = step_of(t.graph, t.in[i], step);
    }
    std::vector<View>& results = steps[step];
    results = t.inliner.run(call ? *call : *scan.body, arguments);
    std::copy_n(results.begin(), scan.carries,
                arguments.begin() + static_cast<std::ptrdiff_t>(scan.consts));
  }
  std::vector<View> results = steps[scan.reverse ? 0 : steps.size() - 1];
  for (std::size_t i = scan.carries; i < results.size(); ++i) {
    std::vector<View> ys;
    ys.reserve(steps.size());
    for (std::vector<View>& step : steps) ys.push_back(std::move(step[i]));
    results[i] = stacked(t.graph, std::move(ys));
  }
  return results;
}

}  // namespace jaxport::axis
