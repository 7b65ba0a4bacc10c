// SPDX-License-Identifier: Apache-2.0
// gather and scatter with indices that ONNX takes as they are: inside of the operand, or negative
// and counted from its end.
//
// JAX repairs negative indices (select(i < 0, i, i + n)) and then clips what is out of bounds, or
// fills or drops it. ONNX knows negative indices, so the repair goes: clipping the repaired index
// to [0, n - 1] is clipping i to [-n, n - 1]. An index that is known to lie inside is not clipped.
#include <algorithm>
#include <cmath>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "axis/translate/size_value.h"
#include "lower/layout/facts.h"
#include "lower/rewrite/range.h"
#include "lower/rewrite/rewrite.h"
#include "lower/rows/positions.h"
#include "raise/algebra/views.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Labels;
using axis::Pattern;
using axis::Use;

bool is_size(Graph& graph, const Use& use, const Dim& size) {
  const auto range = range_of(graph, use);
  return range && range->least == size && range->most == size;
}

// i when `use` is select(i < 0, i, i + size); empty otherwise.
Use unrepaired(Graph& graph, const Use& use, const Dim& size) {
  if (!use.node->is(Kind::kPointwise, "select_n") || use.node->edges.size() != 3) return {};
  const Use test = graph.child(use, 0), moved = graph.child(use, 2);
  Use i = graph.child(use, 1);
  if (!test.node->is(Kind::kPointwise, "lt") || !moved.node->is(Kind::kPointwise, "add")) return {};
  if (graph.child(test, 0) != i || graph.scalar_value(graph.child(test, 1)) != 0) return {};
  for (std::size_t k : {0u, 1u}) {
    if (graph.child(moved, k) == i && is_size(graph, graph.child(moved, 1 - k), size)) return i;
  }
  return {};
}

// An index of one dim: as it was given, and moved to where the dim has elements.
struct Index {
  Use given, inside;
  bool is_inside() const { return given == inside; }
};
Index index_inside(Graph& graph, Use index, const Dim& size) {
  Use raw = unrepaired(graph, index, size);
  const Dim least = raw ? Dim(0) - size : Dim(0), most = size - 1;
  if (raw) index = std::move(raw);
  const auto range = range_of(graph, index);
  // The bounds are no values of narrower types.
  DType dtype = index.node->dtype;
  if (dtype != DType::kI64)
    dtype = bit_width(dtype) < 32 || is_signed(dtype) ? DType::kI32 : DType::kI64;
  index = convert(index, dtype);
  if (range && less_equal(least, range->least) == Truth::kYes &&
      less_equal(range->most, most) == Truth::kYes) {
    return {index, index};
  }
  const Use lo = axis::size_as_value(graph, least, dtype);
  const Use hi = axis::size_as_value(graph, most, dtype);
  return {index, clamp(lo, index, hi)};
}

// The index vectors of a gather or scatter, entry by entry.
struct Vectors {
  Ints axes;  // dims of the operand that the entries index
  std::vector<Index> entries;
  Pattern dims;  // of the indices, without the last

  bool are_inside() const { return std::ranges::all_of(entries, &Index::is_inside); }
};

std::optional<Vectors> vectors_of(Graph& graph, const Use& index, const front::Type& type,
                                  const Windows& windows, const Dims& operand, bool must_check) {
  const bool indexes_all_parts = std::ranges::all_of(windows.partial, [&](std::int64_t dim) {
    return contains(windows.map, dim) || contains(windows.operand_batching, dim);
  });
  if (!indexes_all_parts || type.dtype == DType::kU64) return std::nullopt;
  Vectors vectors;
  vectors.dims = axis::dims_of(index.labels, type.shape);
  const Labels last = vectors.dims.back();
  vectors.dims.pop_back();
  for (std::size_t k = 0; k < windows.map.size(); ++k) {
    const auto dim = static_cast<std::size_t>(windows.map[k]);
    Use entry = last.empty() ? index : graph.pick(index, last[0], static_cast<std::int64_t>(k));
    if (windows.size[dim] == operand[dim]) {  // there is one place for the window
      if (must_check && graph.scalar_value(entry) != 0) return std::nullopt;
      continue;
    }
    if (!windows.size[dim].is_one()) return std::nullopt;
    vectors.axes.push_back(windows.map[k]);
    vectors.entries.push_back(index_inside(graph, std::move(entry), operand[dim]));
  }
  if (vectors.axes.empty()) return std::nullopt;
  return vectors;
}

// The index vectors as one operand of a primitive, and its type. GatherND and ScatterND take i64.
std::pair<Use, front::Type> joined(Graph& graph, const Vectors& vectors, const Dims& shape,
                                   bool is_wide) {
  DType dtype = is_wide || vectors.entries.size() > 1 ? DType::kI64 : DType::kI32;
  if (vectors.entries[0].inside.node->dtype == DType::kI64) dtype = DType::kI64;
  std::vector<Use> entries;
  for (const Index& entry : vectors.entries) {
    entries.push_back(convert(entry.inside, dtype));
  }
  Pattern axes;
  for (const Labels& dim : vectors.dims) {
    if (!dim.empty()) axes.push_back(dim);
  }
  front::Type type{dtype, shape};
  type.shape.back() = std::ssize(entries);
  Use index = entries[0];
  if (entries.size() > 1) {
    axes.push_back({graph.label(std::ssize(entries))});
    index = graph.stack(std::move(entries), axes.back()[0]);
  }
  return {graph.relayout(std::move(index), axes), std::move(type)};
}

// Whether each index vector was inside, where `outer` dims run along the index dims.
Use all_inside(const Vectors& vectors, const Pattern& outer) {
  Use valid;
  for (const Index& entry : vectors.entries) {
    if (entry.is_inside()) continue;
    const Use fits = eq(entry.given, entry.inside);
    valid = valid ? logical_and(valid, fits) : fits;
  }
  axis::Substitution seen;
  for (std::size_t i = 0; i < vectors.dims.size(); ++i) {
    if (!vectors.dims[i].empty()) seen.set(vectors.dims[i][0], outer[i]);
  }
  return seen(valid);
}

// The dims of a result or of updates that run along the index dims.
Pattern outer_dims(const Use& use, const Dims& shape, const Ints& window_dims) {
  const Pattern dims = axis::dims_of(use.labels, shape);
  Pattern outer;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!contains(window_dims, static_cast<std::int64_t>(i))) outer.push_back(dims[i]);
  }
  return outer;
}

// --- gather

// A table at known places is a constant, such as a relative position bias.
bool is_constant_look_up(const axis::Node& gather) {
  Dim size = 1;
  for (std::size_t axis = 0; axis < gather.out.size(); ++axis) size = size * gather.axis_size(axis);
  const auto is_closed = [](const axis::Edge& edge) { return raise::is_closed(*edge.node); };
  return size.is_static() && size.value() <= kLargestComputed &&
         std::ranges::all_of(gather.edges, is_closed);
}

// The windows of x at the vectors, over the axes of a result that looks like `like`.
Use windows_at(Graph& graph, const Use& x, const front::Type& x_type, const Vectors& vectors,
               const Dims& index_shape, front::GatherParams params, const front::Type& out,
               const Pattern& like) {
  auto [index, index_type] = joined(graph, vectors, index_shape, false);
  if (vectors.entries.size() == 1) index_type.shape.pop_back();  // one axis needs no vectors
  auto info = std::make_shared<axis::PrimInfo>();
  info->eqn.primitive = "gather_inside";
  params.map = vectors.axes;
  params.mode = "inside";
  info->eqn.attrs = params.attrs();
  info->in = {x_type, index_type};
  info->out = {out};
  return {graph.prim(info, {x, std::move(index)})[0].node, like};
}

// --- scatter

// What an update that is dropped writes; nullopt for a scatter that replaces.
std::optional<Tensor> neutral_update(std::string_view primitive, DType dtype) {
  if (primitive == "scatter-add" || primitive == "scatter-sub") return scalar(dtype, 0);
  if (primitive == "scatter-mul") return scalar(dtype, 1);
  const bool is_max = primitive == "scatter-max";
  if (!is_float(dtype) || (!is_max && primitive != "scatter-min")) return std::nullopt;
  return scalar(dtype, is_max ? -kInfinity : kInfinity);
}

// What the windows of a scatter hold already: the gather that mirrors it.
Use old_windows(Graph& graph, const Use& use, const Vectors& vectors, const Windows& windows) {
  const axis::PrimInfo& info = *use.node->prim;
  return windows_at(graph, graph.child(use, 0), info.in[0], vectors, info.in[1].shape,
                    {windows, windows.size, {}}, info.in[2], graph.child(use, 2).labels);
}

// The updates with those of dropped windows made harmless; empty when that takes more.
Use kept_updates(Graph& graph, const Use& use, const Vectors& vectors, const Windows& windows) {
  const axis::PrimInfo& info = *use.node->prim;
  Use updates = graph.child(use, 2);
  if (vectors.are_inside() || windows.mode == "clip") return updates;
  const DType dtype = info.in[2].dtype;
  Use harmless;
  if (const auto neutral = neutral_update(info.eqn.primitive, dtype)) {
    harmless = graph.constant(*neutral);
  } else if (info.eqn.primitive == "scatter" && axis::flatten(vectors.dims).empty()) {
    harmless = old_windows(graph, use, vectors, windows);
  } else {
    return {};
  }
  const Use valid = all_inside(vectors, outer_dims(updates, info.in[2].shape, windows.window_dims));
  return select(valid, updates, harmless);
}

}  // namespace

namespace {

// Windows of this size and more are filled with NaN by a product.
constexpr std::int64_t kLongWindow = 128;

// What lies outside of the operand, filled. A product with 1 is exact and one with NaN is NaN, and
// ONNX Runtime takes 0.8 of the time of Where for a product of rows of 256, 0.6 for rows of 768.
Use filled(Graph& graph, const Use& valid, const Use& taken, const Tensor& fill,
           const Dims& window) {
  const DType dtype = fill.dtype;
  Dim size = 1;
  for (const Dim& dim : window) size = size * dim;
  const bool is_long = size.is_static() && size.value() >= kLongWindow;
  const bool has_product = dtype == DType::kF32 || dtype == DType::kF64;
  const Use value = graph.constant(fill);
  if (!is_long || !has_product || !std::isnan(fill.at(0))) return select(valid, taken, value);
  return taken * select(valid, 1.0, value);
}

}  // namespace

Use gather_inside(Graph& graph, const Use& use) {
  if (!use.node->is(Kind::kPrim, "gather") || is_constant_look_up(*use.node)) return {};
  const axis::PrimInfo& info = *use.node->prim;
  const auto params = front::GatherParams::read(info.eqn);
  const Windows windows = gather_windows(params, info.in[0].shape);
  const bool fills = params.mode == "fill_or_drop";
  const auto vectors =
      vectors_of(graph, graph.child(use, 1), info.in[1], windows, info.in[0].shape, fills);
  if (!vectors) return {};
  Use taken = windows_at(graph, graph.child(use, 0), info.in[0], *vectors, info.in[1].shape, params,
                         info.out[0], use.labels);
  if (!fills || vectors->are_inside()) return taken;
  const Use valid = all_inside(*vectors, outer_dims(use, info.out[0].shape, params.window_dims));
  return filled(graph, valid, taken, params.fill(info.out[0].dtype), windows.size);
}

Use scatter_inside(Graph& graph, const Use& use) {
  if (use.node->kind != Kind::kPrim || !use.node->name.starts_with("scatter")) return {};
  const axis::PrimInfo& info = *use.node->prim;
  auto params = front::ScatterParams::read(info.eqn);
  if (params.mode == "inside" || params.update) return {};
  const Windows windows = scatter_windows(params, info.in[0].shape, info.in[2].shape);
  const auto vectors = vectors_of(graph, graph.child(use, 1), info.in[1], windows, info.in[0].shape,
                                  params.mode != "clip");
  const Use updates = vectors ? kept_updates(graph, use, *vectors, windows) : Use{};
  if (!updates) return {};
  auto [index, index_type] = joined(graph, *vectors, info.in[1].shape, true);
  auto inside = std::make_shared<axis::PrimInfo>(info);
  inside->in[1] = index_type;
  params.map = vectors->axes;
  params.mode = "inside";
  inside->eqn.attrs = params.attrs();
  const Use positional = graph.relayout(updates, graph.child(use, 2).labels);
  return {graph.prim(inside, {graph.child(use, 0), index, positional})[0].node, use.labels};
}

}  // namespace jaxport::lower
