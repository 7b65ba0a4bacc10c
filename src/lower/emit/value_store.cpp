// SPDX-License-Identifier: Apache-2.0
#include "lower/emit/value_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "lower/emit/repeat.h"
#include "lower/layout/label_set.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Label;
using axis::Labels;
using axis::Node;
using onnx::Value;

namespace {

bool is_static(const Arrangement& arrangement, const Dims& sizes) {
  return std::ranges::all_of(axis::flatten(arrangement),
                             [&](Label label) { return sizes[label].is_static(); });
}

Dims shape_of(const Arrangement& arrangement, const Dims& sizes) {
  Dims shape;
  for (const Labels& labels : arrangement) {
    Dim& size = shape.emplace_back(1);
    for (Label label : labels) size = size * sizes[label];
  }
  return shape;
}

std::size_t leading_units(const auto& dims) {
  std::size_t count = 0;
  while (count < dims.size() && dims[count].empty()) ++count;
  return count;
}

}  // namespace

NoConversion::NoConversion(const Node& value)
    : Error("BUG",
            fmt::format("'{}' has no conversion to the layout that its user needs", value.name)) {}

void ValueStore::define(const Node& node, Value value, const Arrangement& arrangement) {
  const Layout layout = to_layout(arrangement, label_pieces(node.out, node.sizes));
  define(node, {{{&op_, value.id()}, layout}});
}

void ValueStore::define(const Node& node, std::vector<Variant> variants) {
  variants_[facts_.index(&node)] = std::move(variants);
}

void ValueStore::prepare(const Node& node, const Layout& layout) {
  const Conversion way = cheapest(&node, layout);
  if (!way.steps.empty()) converted(&node, way);
}

std::vector<Arrangement> ValueStore::arrangements(const Edge& edge, const Dims& sizes) const {
  if (is_constant(edge)) return {edge.axes};  // any layout is free
  std::vector<Arrangement> result;
  for (const Variant& variant : variants(edge.node)) {
    Arrangement seen = to_arrangement(variant.layout, edge.axes, sizes);
    if (std::ranges::find(result, seen) == result.end()) result.push_back(std::move(seen));
  }
  return result;
}

ValueStore::Conversion ValueStore::cheapest(const Node* node, const Layout& to) const {
  const std::vector<Variant>& known = variants(node);
  const auto same = std::ranges::find(known, to, &Variant::layout);
  if (same != known.end()) return {0, {}, static_cast<std::size_t>(same - known.begin())};
  Conversion best;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const Conversions::Way& way = conversions_.find(known[i].layout, to);
    if (way.price < best.price) best = {way.price, way.steps, i};
  }
  return best;
}

ValueStore::Conversion ValueStore::cheapest(const Edge& edge, const Dims& sizes,
                                            const Arrangement& to) const {
  return cheapest(edge.node, to_layout(to, label_pieces(edge.axes, sizes)));
}

Value ValueStore::converted(const Node* node, const Conversion& way) {
  Value value = variants(node)[way.variant].value;
  for (const Step& step : way.steps) {
    value = step.perm.empty() ? shapes_.reshape(value, sizes_of(step.after))
                              : op_.Transpose(value, onnx::Args{{"perm", step.perm}});
    variants_[facts_.index(node)].push_back({value, step.after});
  }
  return value;
}

double ValueStore::price(const Edge& edge, const Dims& sizes, const Arrangement& to) const {
  return is_constant(edge) ? 0 : cheapest(edge, sizes, to).price;
}

ValueStore::Priced ValueStore::broadcastable(const Edge& edge, const Dims& sizes,
                                             const Arrangement& to) const {
  const std::size_t asked = leading_units(to);
  const Arrangement core(to.begin() + static_cast<std::ptrdiff_t>(asked), to.end());
  if (is_constant(edge)) return {0, core};
  std::vector<std::size_t> tries{asked};  // at equal price the units that the target has
  const auto add = [&](std::size_t units) {
    if (std::ranges::find(tries, units) == tries.end()) tries.push_back(units);
  };
  add(0);
  for (const Variant& variant : variants(edge.node)) add(leading_units(variant.layout));
  std::vector<Priced> ways;
  for (std::size_t units : tries) {
    Arrangement candidate(units);
    candidate.insert(candidate.end(), core.begin(), core.end());
    ways.push_back({price(edge, sizes, candidate), std::move(candidate)});
  }
  return cheapest_of(std::move(ways), &Priced::price);
}

Value ValueStore::bring(const Edge& edge, const Dims& sizes, const Arrangement& to) {
  if (is_constant(edge)) return weights_.stored(edge, sizes, to, false);
  const Conversion way = cheapest(edge, sizes, to);
  if (way.price == kNever) throw NoConversion(*edge.node);
  if (!way.steps.empty()) {
    paid_.push_back(
        {edge.node, consumer_, variants(edge.node)[way.variant].layout, way.steps.back().after});
  }
  return converted(edge.node, way);
}

double ValueStore::price_full(const Edge& edge, const Dims& sizes, const Arrangement& to) const {
  if (is_constant(edge)) return 0;
  const LabelSet mine(sizes.size(), edge.axes);
  const bool has_all = mine.has_all(axis::flatten(to));
  return price(edge, sizes, restricted(to, mine)) + (has_all ? 0 : kExpandPrice);
}

Value ValueStore::bring_full(const Edge& edge, const Dims& sizes, const Arrangement& to) {
  if (is_constant(edge) && is_static(to, sizes)) return weights_.stored(edge, sizes, to, true);
  const LabelSet mine(sizes.size(), edge.axes);
  const auto repeats = repeats_of(to, mine, sizes);
  if (repeats && !is_constant(edge) && has_repeat(op_, edge.node->dtype)) {
    return repeated(op_, bring(edge, sizes, restricted(to, mine)), *repeats);
  }
  const auto tiles = tiles_of(to, mine, sizes);
  if (tiles && !is_constant(edge) && has_tile(edge.node->dtype)) {
    return tiled(shapes_, bring(edge, sizes, restricted(to, mine)), *tiles);
  }
  Arrangement before, after;  // Expand turns the unit dims of `before` into the missing labels
  bool missing = false;
  for (const Labels& labels : to) {
    Labels run;
    auto flush = [&] {
      if (!run.empty()) before.push_back(run), after.push_back(run);
      run.clear();
    };
    for (Label label : labels) {
      if (mine.has(label)) {
        run.push_back(label);
      } else {
        flush();
        before.emplace_back();
        after.push_back({label});
        missing = true;
      }
    }
    flush();
    if (labels.empty()) before.emplace_back(), after.emplace_back();
  }
  if (!missing) return bring(edge, sizes, to);
  // Expand puts unit dims in front by itself.
  if (Priced way = broadcastable(edge, sizes, before); way.dims.size() <= before.size()) {
    before = std::move(way.dims);
  }
  Value value = shapes_.expand(bring(edge, sizes, before), shape_of(after, sizes));
  return shapes_.reshape(value, shape_of(to, sizes));
}

}  // namespace jaxport::lower
