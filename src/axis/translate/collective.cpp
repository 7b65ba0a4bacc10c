// SPDX-License-Identifier: Apache-2.0
// Collectives. What vmap leaves of them is a reduction over axes; over the one device of a
// shard_map they change nothing but shapes.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "axis/graph/view.h"
#include "axis/translate/translate.h"
#include "jaxport/error.h"

namespace jaxport::axis {
namespace {

Views shard_map(Translation& t) {
  const std::int64_t devices = front::get_int(t.eqn, "mesh_size");
  if (devices != 1) {
    throw Error("E013", fmt::format("shard_map over {} devices: a model runs on one", devices))
        .help("convert the function that shard_map is applied to, or a mesh of one device");
  }
  return t.inliner.run(*front::get_region(t.eqn, "jaxpr"), std::move(t.in));
}

// Axes that are names are those of a mesh, which have size 1.
Views all_reduce(Translation& t, std::string_view reduction) {
  const Ints positions = front::CollectiveParams::read(t.eqn).axes;
  std::vector<View> results;
  for (const View& view : t.in) {
    const auto reduced = t.axes(positions, view.dims.size());
    View result{{}, {}};
    Labels over;
    for (std::size_t dim = 0; dim < view.dims.size(); ++dim) {
      const bool is_kept = std::ranges::find(reduced, dim) == reduced.end();
      if (is_kept)
        result.dims.push_back(view.dims[dim]);
      else
        over.insert(over.end(), view.dims[dim].begin(), view.dims[dim].end());
    }
    result.use =
        over.empty() ? view.use : t.graph.reduce(reduction, view.use, over, view.use.node->dtype);
    results.push_back(std::move(result));
  }
  return results;
}

Views psum(Translation& t) { return all_reduce(t, "reduce_sum"); }
Views pmax(Translation& t) { return all_reduce(t, "reduce_max"); }
Views pmin(Translation& t) { return all_reduce(t, "reduce_min"); }

Views axis_index(Translation& t) {
  t.require(t.eqn.out.size() == 1 && t.out_shape().empty(), "needs one scalar result");
  return std::vector<View>{{t.graph.scalar(0, t.dtype()), {}}};
}

// One device gathers, scatters and exchanges with itself: at most a dim of size 1 comes or goes.
Views with_itself(Translation& t) {
  t.require_operands(1);
  return std::vector<View>{reshape(t.graph, t.in[0], t.out_shape())};
}

constexpr TranslationRow kCollectiveRows[] = {
    // sorted by primitive
    {"all_gather", with_itself},
    {"all_gather_invariant", with_itself},
    {"all_to_all", with_itself},
    {"axis_index", axis_index},
    {"pmax", pmax},
    {"pmin", pmin},
    {"psum", psum},
    {"psum_invariant", psum},
    {"reduce_scatter", with_itself},
    {"shard_map", shard_map},
};
static_assert(std::ranges::is_sorted(kCollectiveRows, {}, &TranslationRow::primitive));

}  // namespace

std::span<const TranslationRow> collective_translations() { return kCollectiveRows; }

}  // namespace jaxport::axis
