// SPDX-License-Identifier: Apache-2.0
// Primitives that take values apart and join them.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "axis/graph/pattern.h"
#include "axis/graph/view.h"
#include "axis/translate/known.h"
#include "axis/translate/size_value.h"
#include "axis/translate/translate.h"

namespace jaxport::axis {
namespace {

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
  const auto [start, limit, stride] = front::SliceParams::read(t.eqn);
  t.require(start.size() == rank, "one range is needed for each dim");
  View view = t.in[0];
  for (std::size_t dim = 0; dim < rank; ++dim) {
    require_range(t, t.in_shape()[dim], start[dim], limit[dim]);
    const Dim count = element_count(start[dim], limit[dim], stride[dim]);
    view = slice_dim(t.graph, view, dim, start[dim], count, stride[dim]);
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

// A gather that takes a part of some dims and all of the others.
struct PartGather : front::GatherParams {
  std::vector<std::size_t> axes;  // one for each entry of an index
};

std::optional<PartGather> part_gather(const Translation& t) {
  const Dims& shape = t.in_shape();
  PartGather gather{front::GatherParams::read(t.eqn), {}};
  gather.axes = t.axes(gather.map, shape.size());
  if (gather.slice_sizes.size() != shape.size() || !gather.operand_batching.empty()) {
    return std::nullopt;
  }
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const bool is_indexed = std::ranges::find(gather.axes, dim) != gather.axes.end();
    if (!is_indexed && !(gather.slice_sizes[dim] == shape[dim])) return std::nullopt;
  }
  for (std::size_t dim : t.axes(gather.dropped, shape.size())) {
    if (!gather.slice_sizes[dim].is_one()) return std::nullopt;
  }
  return gather;
}

// Whether the elements from `first` up to `limit` exist; outside, the result depends on the mode.
bool lies_inside(const PartGather& gather, const Dim& first, const Dim& limit, const Dim& size) {
  const Truth begins = less_equal(0, first), ends = less_equal(limit, size);
  if (gather.mode == "promise_in_bounds") return begins != Truth::kNo && ends != Truth::kNo;
  return begins == Truth::kYes && ends == Truth::kYes;
}

// Elements start, start + step, … of one dim: `count` of them, along a label of the indices or, in
// each window, along none.
struct Elements {
  Dim start, count;
  std::int64_t step;
  Labels along;
};

bool lie_inside(const PartGather& gather, const Elements& elements, const Dim& size) {
  const Dim limit = elements.start + (elements.count - 1) * elements.step + 1;
  // Where JAX clamps indices that break their promise, a slice is shorter than it should be.
  const bool may_be_short = elements.count.is_static() && !size.is_static();
  return lies_inside(gather, elements.start, limit, size) &&
         (elements.along.empty() || !may_be_short || less_equal(limit, size) == Truth::kYes);
}

// The elements that entry `i` of the indices takes, when they are known.
std::optional<Elements> known_elements(Translation& t, const PartGather& gather, std::size_t i) {
  const View& index = t.in[1];
  const Labels& last = index.dims.back();
  const Use entry =
      last.empty() ? index.use : t.graph.pick(index.use, last[0], static_cast<std::int64_t>(i));
  const Dim& count = gather.slice_sizes[gather.axes[i]];
  // Nothing else fits where JAX moves indices inside.
  const bool moves = gather.mode == "clip" || gather.mode == "promise_in_bounds";
  if (moves && count == t.in_shape()[gather.axes[i]]) return Elements{0, count, 1, {}};
  if (const auto start = size_value(t.graph, entry)) return Elements{*start, count, 1, {}};
  const auto steps = known_steps(t.graph, entry);
  if (!steps || steps->step <= 0 || !count.is_one()) return std::nullopt;
  return Elements{steps->start, t.graph.size(steps->along), steps->step, {steps->along}};
}

// The dims of the result: those that indices run along, in the gaps that the windows leave.
Pattern result_dims(const PartGather& gather, const Pattern& windows, const Pattern& indices) {
  Pattern dims;
  auto window = windows.begin(), indexed = indices.begin();
  for (std::size_t i = 0; i < windows.size() + indices.size(); ++i) {
    const auto here = static_cast<std::int64_t>(i);
    const bool is_window = std::ranges::find(gather.window_dims, here) != gather.window_dims.end();
    dims.push_back(is_window ? *window++ : *indexed++);
  }
  return dims;
}

// Known indices may lie outside of a symbolic dim, unless they take all of it.
bool may_leave(const Translation& t, const PartGather& gather) {
  return std::ranges::any_of(gather.axes, [&](std::size_t axis) {
    const Dim& size = t.in_shape()[axis];
    return !size.is_static() && gather.slice_sizes[axis] != size;
  });
}

// x[:, 1:, 0] and x[::2, 1::2] arrive as gathers with known indices when some dim is symbolic, and
// x[::2] in older JAX.
Views gather(Translation& t) {
  if (t.eqn.in.size() != 2 || t.eqn.out.size() != 1 || t.in[1].dims.empty()) return std::nullopt;
  const auto part = part_gather(t);
  if (!part) return std::nullopt;
  View view = t.in[0];
  Pattern indices(t.in[1].dims.begin(), t.in[1].dims.end() - 1);
  std::vector<bool> is_repeated(indices.size(), true);  // no entry runs along this dim
  for (std::size_t i = 0; i < part->axes.size(); ++i) {
    const std::size_t axis = part->axes[i];
    const auto elements = known_elements(t, *part, i);
    if (!elements || !lie_inside(*part, *elements, t.in_shape()[axis])) return std::nullopt;
    view = slice_dim(t.graph, view, axis, elements->start, elements->count, elements->step);
    if (elements->along.empty()) continue;
    const auto at = std::ranges::find(indices, elements->along);
    if (at == indices.end()) return std::nullopt;  // another entry runs there, too
    *at = std::exchange(view.dims[axis], Labels{});
    is_repeated[at - indices.begin()] = false;
  }
  for (std::size_t dim = 0; dim < indices.size(); ++dim) {
    if (!is_repeated[dim] || indices[dim].empty()) continue;
    if (may_leave(t, *part)) return std::nullopt;
    indices[dim] = {t.graph.label(t.graph.size_of(indices[dim]))};
  }
  Pattern windows;
  for (std::size_t dim = 0; dim < view.dims.size(); ++dim) {
    const auto here = static_cast<std::int64_t>(dim);
    if (std::ranges::find(part->dropped, here) == part->dropped.end()) {
      windows.push_back(view.dims[dim]);
    }
  }
  if (windows.size() != part->window_dims.size()) return std::nullopt;
  return one({view.use, result_dims(*part, windows, indices)});
}

// Element `index` of dim `dim`, clamped to its range: a gather that drops the dim.
View element_of_dim(Translation& t, View x, const Dims& shape, std::size_t dim, View index,
                    DType index_dtype) {
  front::Function function;
  const DType dtype = x.use.node->dtype;
  Dims taken = shape, sizes = shape;
  taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(dim));
  sizes[dim] = 1;
  const Ints axis{static_cast<std::int64_t>(dim)};
  const front::GatherParams params{
      {first_integers(taken.size()), axis, axis, {}, {}, "clip"}, sizes, {}};
  const front::ValueId operand = function.add_value({dtype, shape}),
                       vector = function.add_value({index_dtype, {1}}),
                       result = function.add_value({dtype, taken});
  function.params = {operand, vector};
  function.eqns.push_back({"gather", {operand, vector}, {result}, params.attrs()});
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
  for (auto element = elements.rbegin(); element != elements.rend(); ++element) {
    const std::size_t dim = *element;
    view = element_of_dim(t, std::move(view), shape, dim, t.in[dim + 1], t.in_type(dim + 1).dtype);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  }
  for (std::size_t dim : elements) {
    view.dims.insert(view.dims.begin() + static_cast<std::ptrdiff_t>(dim), Labels{});
  }
  return one(std::move(view));
}

constexpr TranslationRow kIndexRows[] = {
    // sorted by primitive
    {"concatenate", concatenate},
    {"dynamic_slice", dynamic_slice},
    {"gather", gather},
    {"slice", slice},
    {"split", split},
    {"stack", stack},
    {"unstack", unstack},
};
static_assert(std::ranges::is_sorted(kIndexRows, {}, &TranslationRow::primitive));

}  // namespace

std::span<const TranslationRow> index_translations() { return kIndexRows; }

}  // namespace jaxport::axis
