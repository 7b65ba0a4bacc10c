// SPDX-License-Identifier: Apache-2.0
// Primitives that take values apart and join them.
#include <algorithm>
#include <utility>

#include "axis/pattern.h"
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

// x[:, :, 0] with symbolic dims arrives as a gather with a constant index.
Views gather(Translation& t) {
  if (t.eqn.in.size() != 2 || t.eqn.out.size() != 1) return std::nullopt;
  const auto index = t.graph.scalar_value(t.in[1].use);
  const front::Attr* numbers = front::find(t.eqn.attrs, "dimension_numbers");
  const auto* record = numbers ? numbers->get_if<front::Record>() : nullptr;
  if (!index || !record || !std::ranges::all_of(t.in[1].dims, &Labels::empty)) return std::nullopt;
  const Ints start_index_map = field_ints(t, *record, "start_index_map");
  if (start_index_map.size() != 1 ||
      field_ints(t, *record, "collapsed_slice_dims") != start_index_map ||
      !field_ints(t, *record, "operand_batching_dims").empty()) {
    return std::nullopt;
  }
  const Dims& shape = t.in_shape();
  const std::size_t axis = t.axes(start_index_map, shape.size())[0];
  const Dims slice_sizes = front::get_dims(t.eqn, "slice_sizes");
  const Ints offset_dims = field_ints(t, *record, "offset_dims");
  if (slice_sizes.size() != shape.size() || offset_dims.size() + 1 != shape.size()) {
    return std::nullopt;
  }
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (dim != axis && !(slice_sizes[dim] == shape[dim])) return std::nullopt;
    if (dim > 0 && offset_dims[dim - 1] != static_cast<std::int64_t>(dim - 1)) return std::nullopt;
  }
  // Out of range, the result depends on the mode.
  const auto at = static_cast<std::int64_t>(*index);
  if (at < 0 || less_equal(at + 1, shape[axis]) != Truth::kYes) return std::nullopt;
  View result = index_dim(t.graph, t.in[0], axis, at);
  return result.dims.size() == t.out_shape().size() ? one(std::move(result)) : Views{};
}

// Starts are clamped so that the slice lies inside.
std::optional<Dim> clamped_start(double start, const Dim& size, const Dim& count) {
  const Dim last = size - count;
  const Dim wanted(std::max<std::int64_t>(0, static_cast<std::int64_t>(start)));
  if (less_equal(wanted, last) == Truth::kYes) return wanted;
  return less_equal(last, wanted) == Truth::kYes ? std::optional(last) : std::nullopt;
}

Views dynamic_slice(Translation& t) {
  const Dims sizes = front::get_dims(t.eqn, "slice_sizes");
  const std::size_t rank = sizes.size();
  t.require(t.eqn.in.size() > rank && t.in[0].dims.size() == rank && t.eqn.out.size() == 1,
            "one start is needed for each dim");
  View view = t.in[0];
  for (std::size_t dim = 0; dim < rank; ++dim) {
    require_range(t, t.in_shape()[dim], 0, sizes[dim]);
    const auto value = t.graph.scalar_value(t.in[dim + 1].use);
    const auto start = value ? clamped_start(*value, t.in_shape()[dim], sizes[dim]) : std::nullopt;
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
