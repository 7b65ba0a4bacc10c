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

Ints first_integers(std::size_t count) {
  Ints values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// A gather along one dim that takes all of the others: what it needs to know of its operand.
struct DimGather {
  std::size_t axis;
  Dim count;  // of elements from each index on
  Ints offset_dims;
  bool collapsed;  // the dim is gone from the windows
};

std::optional<DimGather> dim_gather(const Translation& t) {
  const DimensionNumbers numbers(t);
  const Dims& shape = t.in_shape();
  const Ints map = numbers.ints("start_index_map");
  const Ints collapsed = numbers.ints("collapsed_slice_dims");
  const Dims sizes = front::get_dims(t.eqn, "slice_sizes");
  if (map.size() != 1 || sizes.size() != shape.size() || !(collapsed.empty() || collapsed == map) ||
      !numbers.ints("operand_batching_dims").empty()) {
    return std::nullopt;
  }
  const std::size_t axis = t.axes(map, shape.size())[0];
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (dim != axis && !(sizes[dim] == shape[dim])) return std::nullopt;
  }
  if (!collapsed.empty() && !sizes[axis].is_one()) return std::nullopt;
  return DimGather{axis, sizes[axis], numbers.ints("offset_dims"), !collapsed.empty()};
}

// Whether the elements from `first` up to `limit` exist; outside, the result depends on the mode.
bool lies_inside(const Translation& t, const Dim& first, const Dim& limit, const Dim& size) {
  const Truth begins = less_equal(0, first), ends = less_equal(limit, size);
  const front::Attr* mode = front::find(t.eqn.attrs, "mode");
  const auto* name = mode ? mode->get_if<front::Enum>() : nullptr;
  if (name && name->name == "promise_in_bounds") return begins != Truth::kNo && ends != Truth::kNo;
  return begins == Truth::kYes && ends == Truth::kYes;
}

// One window: with symbolic dims, x[:, 0] and x[:, 1:] arrive as a gather with a known index.
Views window_gather(Translation& t, const DimGather& gather) {
  const std::size_t rank = t.in_shape().size() - (gather.collapsed ? 1 : 0);
  const auto start = size_value(t.graph, t.in[1].use);
  if (!start || gather.offset_dims != first_integers(rank)) return std::nullopt;
  const Dim limit = *start + gather.count;
  if (!lies_inside(t, *start, limit, t.in_shape()[gather.axis])) return std::nullopt;
  View view = slice_dim(t.graph, t.in[0], gather.axis, *start, gather.count, 1);
  return one(gather.collapsed ? without_dim(std::move(view), gather.axis) : std::move(view));
}

// Elements at equal distances: x[::2] arrives as a gather in older JAX and with symbolic dims.
Views strided_gather(Translation& t, const DimGather& gather) {
  const auto steps = known_steps(t.graph, t.in[1].use);
  if (!steps || !gather.collapsed || t.in[1].dims[0] != Labels{steps->along} || steps->step <= 0) {
    return std::nullopt;
  }
  const Dim count = t.graph.size(steps->along);
  const Dim limit = steps->start + (count - 1) * steps->step + 1, size = t.in_shape()[gather.axis];
  // Where JAX clamps indices that break their promise, a slice is shorter than it should be.
  const bool may_be_short = count.is_static() && !size.is_static();
  if (!lies_inside(t, steps->start, limit, size) ||
      (may_be_short && less_equal(limit, size) != Truth::kYes)) {
    return std::nullopt;
  }
  View view = slice_dim(t.graph, t.in[0], gather.axis, steps->start, count, steps->step);
  // The indexed dim stands where the windows leave a gap.
  const Labels indexed = view.dims[gather.axis];
  view = without_dim(std::move(view), gather.axis);
  std::size_t gap = 0;
  while (gap < gather.offset_dims.size() &&
         gather.offset_dims[gap] == static_cast<std::int64_t>(gap)) {
    ++gap;
  }
  view.dims.insert(view.dims.begin() + static_cast<std::ptrdiff_t>(gap), indexed);
  return one(std::move(view));
}

Views gather(Translation& t) {
  if (t.eqn.in.size() != 2 || t.eqn.out.size() != 1) return std::nullopt;
  const Pattern& index = t.in[1].dims;
  if (index.empty() || index.size() > 2 || !index.back().empty()) return std::nullopt;
  const auto along_dim = dim_gather(t);
  if (!along_dim) return std::nullopt;
  return index.size() == 1 ? window_gather(t, *along_dim) : strided_gather(t, *along_dim);
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
