// SPDX-License-Identifier: Apache-2.0
// Primitives that take values apart and join them.
#include <algorithm>
#include <numeric>
#include <ranges>
#include <utility>

#include "axis/known.h"
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

Views concatenate(Translation& t) {
  require_equal_ranks(t);
  const std::size_t axis = t.axis("dimension", t.in[0].dims.size());
  return one(join_dim(t.graph, t.in, axis, Units::kStacked));
}

// --- indexing by constants

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
  if (t.in[1].dims.size() != 1 || !t.in[1].dims[0].empty()) return std::nullopt;
  const DimensionNumbers numbers(t);
  const Dims& shape = t.in_shape();
  const Ints map = numbers.ints("start_index_map");
  const Ints collapsed = numbers.ints("collapsed_slice_dims");
  const Dims sizes = front::get_dims(t.eqn, "slice_sizes");
  if (map.size() != 1 || sizes.size() != shape.size() || !(collapsed.empty() || collapsed == map) ||
      !numbers.ints("operand_batching_dims").empty() ||
      numbers.ints("offset_dims") != first_integers(shape.size() - collapsed.size())) {
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

front::Attr int_list(const Ints& values) {
  front::List list;
  for (std::int64_t value : values) list.push_back(front::Attr{value});
  return front::Attr{std::move(list)};
}

// Element `index` of dim `dim`, clamped to its range: a gather that drops the dim.
View element_of_dim(Translation& t, View x, const Dims& shape, std::size_t dim, View index,
                    DType index_dtype) {
  front::Function function;
  const DType dtype = x.use.node->dtype;
  Dims taken = shape, sizes = shape;
  taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(dim));
  sizes[dim] = 1;
  front::List window;
  for (const Dim& size : sizes) window.push_back(front::Attr{size});
  const Ints axis{static_cast<std::int64_t>(dim)};
  const front::Record numbers{"GatherDimensionNumbers",
                              {{"offset_dims", int_list(first_integers(taken.size()))},
                               {"collapsed_slice_dims", int_list(axis)},
                               {"start_index_map", int_list(axis)},
                               {"operand_batching_dims", int_list({})},
                               {"start_indices_batching_dims", int_list({})}}};
  const front::ValueId operand = function.add_value({dtype, shape}),
                       vector = function.add_value({index_dtype, {1}}),
                       result = function.add_value({dtype, taken});
  function.params = {operand, vector};
  function.eqns.push_back({"gather",
                           {operand, vector},
                           {result},
                           {{"dimension_numbers", front::Attr{numbers}},
                            {"mode", front::Attr{front::Enum{"clip"}}},
                            {"slice_sizes", front::Attr{window}}}});
  function.results = {result};
  index.dims = {Labels{}};
  return t.inliner.run(function, {std::move(x), std::move(index)})[0];
}

// Slices where the start is known, elements where the slice has size 1.
Views dynamic_slice(Translation& t) {
  const Dims sizes = front::get_dims(t.eqn, "slice_sizes");
  const std::size_t rank = sizes.size();
  t.require(t.eqn.in.size() > rank && t.in[0].dims.size() == rank && t.eqn.out.size() == 1,
            "one start is needed for each dim");
  View view = t.in[0];
  Dims shape = t.in_shape();
  std::vector<std::size_t> elements;
  for (std::size_t dim = 0; dim < rank; ++dim) {
    require_range(t, shape[dim], 0, sizes[dim]);
    const auto start = known_start(t.graph, t.in[dim + 1].use, shape[dim], sizes[dim]);
    if (start) {
      view = slice_dim(t.graph, view, dim, *start, sizes[dim], 1);
      shape[dim] = sizes[dim];
    } else if (sizes[dim].is_one()) {
      elements.push_back(dim);
    } else {
      return std::nullopt;
    }
  }
  for (std::size_t dim : std::views::reverse(elements)) {
    view = element_of_dim(t, std::move(view), shape, dim, t.in[dim + 1], t.in_type(dim + 1).dtype);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  }
  for (std::size_t dim : elements) {
    view.dims.insert(view.dims.begin() + static_cast<std::ptrdiff_t>(dim), Labels{});
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
