// SPDX-License-Identifier: Apache-2.0
// Primitives that only move data: they edit the einops pattern, no node is made.
#include <algorithm>
#include <utility>

#include "axis/graph/pattern.h"
#include "axis/graph/view.h"
#include "axis/translate/translate.h"

namespace jaxport::axis {
namespace {

View permuted(const View& view, const std::vector<std::size_t>& permutation) {
  View result{view.use, {}};
  for (std::size_t dim : permutation) result.dims.push_back(view.dims[dim]);
  return result;
}

Views transpose(Translation& t) {
  t.require_operands(1);
  const auto permutation = t.axes("permutation", t.in[0].dims.size());
  t.require(permutation.size() == t.in[0].dims.size(), "'permutation' is no permutation");
  return one(permuted(t.in[0], permutation));
}

Views squeeze(Translation& t) {
  t.require_operands(1);
  const auto removed = t.axes("dimensions", t.in[0].dims.size());
  View result{t.in[0].use, {}};
  for (std::size_t dim = 0; dim < t.in[0].dims.size(); ++dim) {
    if (std::ranges::find(removed, dim) == removed.end()) {
      result.dims.push_back(t.in[0].dims[dim]);
    } else {
      t.require(t.in[0].dims[dim].empty(), "a squeezed dim has not size 1");
    }
  }
  return one(std::move(result));
}

Views expand_dims(Translation& t) {
  t.require_operands(1);
  const auto added = t.axes("dimensions", t.out_shape().size());
  t.require(t.in[0].dims.size() + added.size() == t.out_shape().size(), "the ranks do not fit");
  View result{t.in[0].use, Pattern(t.out_shape().size())};
  std::size_t next = 0;
  for (std::size_t dim = 0; dim < result.dims.size(); ++dim) {
    const bool is_new = std::ranges::find(added, dim) != added.end();
    if (!is_new) result.dims[dim] = t.in[0].dims[next++];
  }
  return one(std::move(result));
}

Views reshape_view(Translation& t) {
  t.require_operands(1);
  View view = t.in[0];
  if (front::has(t.eqn, "dimensions")) {
    const auto permutation = t.axes("dimensions", view.dims.size());
    t.require(permutation.size() == view.dims.size(), "'dimensions' is no permutation");
    view = permuted(view, permutation);
  }
  const Truth fits = equal(product(t.in_shape()), product(t.out_shape()));
  t.require(fits != Truth::kNo, "the numbers of elements differ");
  // JAX lets through what only some sizes fit, such as [B,B,6] to [B,6]: the model checks it.
  if (fits == Truth::kUnknown) return std::nullopt;
  return one(reshape(t.graph, view, t.out_shape()));
}

Views broadcast_in_dim(Translation& t) {
  t.require_operands(1);
  const Dims& shape = t.out_shape();
  const auto dims = t.axes("broadcast_dimensions", shape.size());
  t.require(dims.size() == t.in[0].dims.size(), "one entry is needed for each dim");
  View result{t.in[0].use, Pattern(shape.size())};
  for (std::size_t i = 0; i < dims.size(); ++i) result.dims[dims[i]] = t.in[0].dims[i];
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (result.dims[dim].empty() && !shape[dim].is_one()) {
      result.dims[dim] = {t.graph.label(shape[dim])};
    }
  }
  return one(std::move(result));
}

// A leading broadcast label in each repeated dim.
Views tile(Translation& t) {
  t.require_operands(1);
  const Dims reps = front::get_dims(t.eqn, "reps");
  t.require(reps.size() == t.in[0].dims.size(), "'reps' needs one entry for each dim");
  View result = t.in[0];
  for (std::size_t dim = 0; dim < reps.size(); ++dim) {
    if (!reps[dim].is_one()) {
      result.dims[dim].insert(result.dims[dim].begin(), t.graph.label(reps[dim]));
    }
  }
  return one(std::move(result));
}

Views iota(Translation& t) {
  t.require(t.eqn.out.size() == 1, "needs one result");
  const std::size_t along = t.axis("dimension", t.out_shape().size());
  View result{{}, broadcast_dims(t.graph, t.out_shape())};
  const Labels& dim = result.dims[along];
  result.use = dim.empty() ? t.graph.scalar(0, t.dtype()) : t.graph.iota(dim[0], t.dtype());
  return one(std::move(result));
}

Views identity(Translation& t) {
  t.require(t.eqn.in.size() == t.eqn.out.size(), "needs as many results as operands");
  return t.in;
}

constexpr TranslationRow kShapeRows[] = {
    // sorted by primitive
    {"broadcast_in_dim", broadcast_in_dim},
    {"copy", identity},
    {"copy_p", identity},
    {"device_put", identity},
    {"expand_dims", expand_dims},
    {"iota", iota},
    {"layout_constraint", identity},
    {"mesh_cast", identity},
    {"name", identity},
    {"nonbatchable", identity},
    {"optimization_barrier", identity},
    {"pcast", identity},
    {"pvary", identity},
    {"reshape", reshape_view},
    {"sharding_constraint", identity},
    {"squeeze", squeeze},
    {"stop_gradient", identity},
    {"tile", tile},
    {"transpose", transpose},
};
static_assert(std::ranges::is_sorted(kShapeRows, {}, &TranslationRow::primitive));

}  // namespace

std::span<const TranslationRow> shape_translations() { return kShapeRows; }

}  // namespace jaxport::axis
