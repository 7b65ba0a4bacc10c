// SPDX-License-Identifier: Apache-2.0
// Primitives that take values apart and join them.
#include <algorithm>
#include <numeric>
#include <utility>

#include "axis/pattern.h"
#include "axis/size_value.h"
#include "axis/translate.h"
#include "axis/view.h"

namespace jaxport::axis {
namespace {

Views one(View view) { return std::vector<View>{std::move(view)}; }

void require_range(const Translation& t, const Dim& size, const Dim& start, const Dim& limit) {
  const bool fits = less_equal(0, start) != Truth::kNo && less_equal(start, limit) != Truth::kNo &&
                    less_equal(limit, size) != Truth::kNo;
  t.require(fits, "a range leaves its dim");
}

Dim element_count(const Dim& start, const Dim& limit, std::int64_t stride) {
  return stride == 1 ? limit - start : floordiv(limit - start + (stride - 1), stride);
}

Views slice(Translation& t) {
  t.require_operands(1);
  const std::size_t rank = t.in[0].dims.size();
  const Dims starts = front::get_dims(t.eqn, "start_indices");
  const Dims limits = front::get_dims(t.eqn, "limit_indices");
  const front::Attr* given = front::find(t.eqn.attrs, "strides");
  const Ints strides =
      given && !given->is_none() ? front::get_ints(t.eqn, "strides") : Ints(rank, 1);
  t.require(starts.size() == rank && limits.size() == rank && strides.size() == rank,
            "one range is needed for each dim");
  View view = t.in[0];
  for (std::size_t dim = 0; dim < rank; ++dim) {
    t.require(strides[dim] > 0, "a stride is not positive");
    require_range(t, t.in_shape()[dim], starts[dim], limits[dim]);
    const Dim count = element_count(starts[dim], limits[dim], strides[dim]);
    view = slice_dim(t.graph, view, dim, starts[dim], count, strides[dim]);
  }
  return one(std::move(view));
}

Views split(Translation& t) {
  t.require(t.eqn.in.size() == 1, "needs one operand");
  const std::size_t axis = t.axis("axis", t.in[0].dims.size());
  const Dims sizes = front::get_dims(t.eqn, "sizes");
  t.require(sizes.size() == t.eqn.out.size(), "'sizes' needs one entry for each result");
  std::vector<View> results;
  Dim start = 0;
  for (const Dim& size : sizes) {
    require_range(t, t.in_shape()[axis], start, start + size);
    results.push_back(slice_dim(t.graph, t.in[0], axis, start, size, 1));
    start = start + size;
  }
  return results;
}

View without_dim(View view, std::size_t dim) {
  view.dims.erase(view.dims.begin() + static_cast<std::ptrdiff_t>(dim));
  return view;
}

View index_dim(Graph& graph, const View& view, std::size_t dim, std::int64_t index) {
  return without_dim(slice_dim(graph, view, dim, index, 1, 1), dim);
}

Views unstack(Translation& t) {
  t.require(t.eqn.in.size() == 1, "needs one operand");
  const std::size_t axis = t.axis("axis", t.in[0].dims.size());
  t.require(t.in_shape()[axis] == Dim(std::ssize(t.eqn.out)), "needs one result for each index");
  std::vector<View> results;
  for (std::int64_t i = 0; i < std::ssize(t.eqn.out); ++i) {
    results.push_back(index_dim(t.graph, t.in[0], axis, i));
  }
  return results;
}

void require_equal_ranks(const Translation& t) {
  t.require(!t.in.empty() && t.eqn.out.size() == 1, "needs operands and one result");
  for (const View& view : t.in) {
    t.require(view.dims.size() == t.in[0].dims.size(), "the ranks differ");
  }
}

Views stack(Translation& t) {
  require_equal_ranks(t);
  const std::size_t axis = t.axis("axis", t.out_shape().size());
  Unified pieces = unify(t.graph, t.in);
  View result{{}, std::move(pieces.dims)};
  result.dims.insert(result.dims.begin() + static_cast<std::ptrdiff_t>(axis), Labels{});
  if (t.in.size() == 1) {
    result.use = std::move(pieces.uses[0]);
  } else {
    const Label along = t.graph.label(std::ssize(t.in));
    result.dims[axis] = {along};
    result.use = t.graph.stack(std::move(pieces.uses), along);
  }
  return one(std::move(result));
}

// Equal pieces: index i of a new leading label of the dim.
View concatenate_equal(Graph& graph, std::vector<View> pieces, std::size_t axis) {
  const Label along = graph.label(std::ssize(pieces));
  Unified unified = unify(graph, std::move(pieces));
  View result{graph.stack(std::move(unified.uses), along), std::move(unified.dims)};
  result.dims[axis].insert(result.dims[axis].begin(), along);
  return result;
}

View concatenate_unequal(Graph& graph, std::vector<View> pieces, std::size_t axis,
                         const Dim& size) {
  std::vector<std::optional<Label>> joined;
  for (View& piece : pieces) {
    piece = merge_dim(graph, piece, axis);
    const Labels& dim = piece.dims[axis];
    joined.push_back(dim.empty() ? std::nullopt : std::optional(dim[0]));
    piece = without_dim(std::move(piece), axis);
  }
  Unified unified = unify(graph, std::move(pieces));
  const Label to = graph.label(size);
  View result{graph.concat(std::move(unified.uses), joined, to), std::move(unified.dims)};
  result.dims.insert(result.dims.begin() + static_cast<std::ptrdiff_t>(axis), Labels{to});
  return result;
}

Views concatenate(Translation& t) {
  require_equal_ranks(t);
  const std::size_t axis = t.axis("dimension", t.in[0].dims.size());
  std::vector<View> pieces;
  Dims sizes;
  for (std::size_t i = 0; i < t.in.size(); ++i) {
    if (t.in_shape(i)[axis] == Dim(0)) continue;
    pieces.push_back(t.in[i]);
    sizes.push_back(t.in_shape(i)[axis]);
  }
  if (pieces.empty()) return one(t.in[0]);
  if (pieces.size() == 1) return one(std::move(pieces[0]));
  const bool equal_sizes =
      std::ranges::all_of(sizes, [&](const Dim& size) { return size == sizes[0]; });
  if (equal_sizes) return one(concatenate_equal(t.graph, std::move(pieces), axis));
  return one(concatenate_unequal(t.graph, std::move(pieces), axis, t.out_shape()[axis]));
}

// --- indexing by constants

const front::Attr& field(const Translation& t, const front::Record& record, std::string_view name) {
  auto found = std::ranges::find(record.fields, name, &std::pair<std::string, front::Attr>::first);
  t.require(found != record.fields.end(), "a field of 'dimension_numbers' is missing");
  return found->second;
}

Ints field_ints(const Translation& t, const front::Record& record, std::string_view name) {
  const auto* list = field(t, record, name).get_if<front::List>();
  t.require(list != nullptr, "a field of 'dimension_numbers' is no list");
  Ints values;
  for (const front::Attr& item : *list) {
    const auto* value = item.get_if<std::int64_t>();
    t.require(value != nullptr, "a field of 'dimension_numbers' has an entry that is no integer");
    values.push_back(*value);
  }
  return values;
}

// A gather of one window: `count` elements of one dim from one index on, all of the other dims.
struct WindowGather {
  std::size_t axis;
  Dim count;
  bool collapsed;  // the dim is gone from the result
};

Ints first_integers(std::size_t count) {
  Ints values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

std::optional<WindowGather> window_gather(const Translation& t) {
  const front::Attr* numbers = front::find(t.eqn.attrs, "dimension_numbers");
  const auto* record = numbers ? numbers->get_if<front::Record>() : nullptr;
  if (!record || t.in[1].dims.size() != 1 || !t.in[1].dims[0].empty()) return std::nullopt;
  const Dims& shape = t.in_shape();
  const Ints map = field_ints(t, *record, "start_index_map");
  const Ints collapsed = field_ints(t, *record, "collapsed_slice_dims");
  const Dims sizes = front::get_dims(t.eqn, "slice_sizes");
  if (map.size() != 1 || sizes.size() != shape.size() || !(collapsed.empty() || collapsed == map) ||
      !field_ints(t, *record, "operand_batching_dims").empty() ||
      field_ints(t, *record, "offset_dims") != first_integers(shape.size() - collapsed.size())) {
    return std::nullopt;
  }
  const std::size_t axis = t.axes(map, shape.size())[0];
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (dim != axis && !(sizes[dim] == shape[dim])) return std::nullopt;
  }
  if (!collapsed.empty() && !sizes[axis].is_one()) return std::nullopt;
  return WindowGather{axis, sizes[axis], !collapsed.empty()};
}

// With symbolic dims, x[:, 0] and x[:, 1:] arrive as a gather with a known index.
Views gather(Translation& t) {
  if (t.eqn.in.size() != 2 || t.eqn.out.size() != 1) return std::nullopt;
  const auto start = size_value(t.graph, t.in[1].use);
  const auto window = start ? window_gather(t) : std::nullopt;
  if (!window) return std::nullopt;
  // Outside, the result depends on the mode.
  const Truth begins = less_equal(0, *start);
  const Truth ends = less_equal(*start + window->count, t.in_shape()[window->axis]);
  const front::Attr* mode = front::find(t.eqn.attrs, "mode");
  const auto* name = mode ? mode->get_if<front::Enum>() : nullptr;
  const bool promised =
      name && name->name == "promise_in_bounds" && begins != Truth::kNo && ends != Truth::kNo;
  if (!promised && (begins != Truth::kYes || ends != Truth::kYes)) return std::nullopt;
  View view = slice_dim(t.graph, t.in[0], window->axis, *start, window->count, 1);
  return one(window->collapsed ? without_dim(std::move(view), window->axis) : std::move(view));
}

// Starts are clamped so that the slice lies inside.
std::optional<Dim> clamped_start(const Dim& start, const Dim& size, const Dim& count) {
  const Dim last = size - count;
  if (less_equal(start, 0) == Truth::kYes) return Dim(0);
  if (less_equal(last, start) == Truth::kYes) return last;
  const bool inside = less_equal(0, start) == Truth::kYes && less_equal(start, last) == Truth::kYes;
  return inside ? std::optional(start) : std::nullopt;
}

Views dynamic_slice(Translation& t) {
  const Dims sizes = front::get_dims(t.eqn, "slice_sizes");
  const std::size_t rank = sizes.size();
  t.require(t.eqn.in.size() > rank && t.in[0].dims.size() == rank && t.eqn.out.size() == 1,
            "one start is needed for each dim");
  View view = t.in[0];
  for (std::size_t dim = 0; dim < rank; ++dim) {
    require_range(t, t.in_shape()[dim], 0, sizes[dim]);
    const auto index = size_value(t.graph, t.in[dim + 1].use);
    const auto start = index ? clamped_start(*index, t.in_shape()[dim], sizes[dim]) : std::nullopt;
    if (!start) return std::nullopt;
    view = slice_dim(t.graph, view, dim, *start, sizes[dim], 1);
  }
  return one(std::move(view));
}

constexpr TranslationRow kRows[] = {
    // sorted by primitive
    {"concatenate", concatenate},
    {"dynamic_slice", dynamic_slice},
    {"gather", gather},
    {"slice", slice},
    {"split", split},
    {"stack", stack},
    {"unstack", unstack},
};
static_assert(std::ranges::is_sorted(kRows, {}, &TranslationRow::primitive));

}  // namespace

std::span<const TranslationRow> index_translations() { return kRows; }

}  // namespace jaxport::axis
