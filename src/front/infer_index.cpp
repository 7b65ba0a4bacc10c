// SPDX-License-Identifier: Apache-2.0
// gather and scatter: an index vector names a window of the operand.
#include <algorithm>

#include "front/infer.h"
#include "front/params.h"

namespace jaxport::front {
namespace {

// Lists of dims that are in order and exist.
void require_sorted_axes(const Inference& c, const Ints& axes, std::size_t rank) {
  c.require_axes(axes, rank);
  c.require(std::ranges::is_sorted(axes), "dimension numbers are not in order");
}

// What gather and scatter share. The last dim of the indices holds the entries of one index.
void require_dimension_numbers(const Inference& c, const IndexParams& params) {
  const Dims &operand = c.shape(0), &indices = c.shape(1);
  c.require(is_integer(c.in(1).dtype), "the indices are no integers");
  c.require(!indices.empty(), "the indices have no dim");
  c.require_equal(indices.back(), static_cast<std::int64_t>(params.map.size()));
  c.require_axes(params.map, operand.size());
  require_sorted_axes(c, params.dropped, operand.size());
  require_sorted_axes(c, params.operand_batching, operand.size());
  c.require_axes(params.index_batching, indices.size() - 1);
  c.require(
      params.operand_batching.size() == params.index_batching.size() &&
          params.window_dims.size() + params.dropped.size() + params.operand_batching.size() ==
              operand.size(),
      "the dimension numbers do not cover the operand");
  for (std::size_t i = 0; i < params.operand_batching.size(); ++i) {
    c.require_equal(operand[params.operand_batching[i]], indices[params.index_batching[i]]);
  }
}

// Dims of the operand that windows have.
Ints dims_of_windows(const IndexParams& params, std::size_t rank) {
  Ints dims;
  for (std::int64_t dim = 0; dim < static_cast<std::int64_t>(rank); ++dim) {
    if (!contains(params.dropped, dim) && !contains(params.operand_batching, dim)) {
      dims.push_back(dim);
    }
  }
  return dims;
}

void infer_gather(const Inference& c) {
  c.require_counts(2);
  const GatherParams params = GatherParams::read(c.eqn);
  require_dimension_numbers(c, params);
  const Dims &operand = c.shape(0), &indices = c.shape(1);
  c.require(params.slice_sizes.size() == operand.size(), "'slice_sizes' has another rank");
  for (std::size_t dim = 0; dim < operand.size(); ++dim) {
    const Dim& size = params.slice_sizes[dim];
    c.require(less_equal(0, size) != Truth::kNo && less_equal(size, operand[dim]) != Truth::kNo,
              "a window is larger than the operand");
    const auto axis = static_cast<std::int64_t>(dim);
    const bool is_window =
        !contains(params.dropped, axis) && !contains(params.operand_batching, axis);
    c.require(is_window || less_equal(size, 1) != Truth::kNo, "a dropped dim has not size 1");
  }
  const std::size_t rank = indices.size() - 1 + params.window_dims.size();
  require_sorted_axes(c, params.window_dims, rank);
  const Ints windows = dims_of_windows(params, operand.size());
  Dims shape;
  std::size_t window = 0, batch = 0;
  for (std::int64_t dim = 0; dim < static_cast<std::int64_t>(rank); ++dim) {
    const bool is_window = contains(params.window_dims, dim);
    shape.push_back(is_window ? params.slice_sizes[windows[window++]] : indices[batch++]);
  }
  c.gives(c.in(0).dtype, shape);
}

void infer_scatter(const Inference& c) {
  c.require_counts(3);
  const ScatterParams params = ScatterParams::read(c.eqn);
  require_dimension_numbers(c, params);
  const Dims &operand = c.shape(0), &indices = c.shape(1), &updates = c.shape(2);
  c.require(c.in(2).dtype == c.in(0).dtype, "the updates have another dtype");
  c.require(updates.size() == indices.size() - 1 + params.window_dims.size(),
            "the updates have another rank");
  require_sorted_axes(c, params.window_dims, updates.size());
  const Ints windows = dims_of_windows(params, operand.size());
  std::size_t window = 0, batch = 0;
  for (std::size_t dim = 0; dim < updates.size(); ++dim) {
    if (contains(params.window_dims, static_cast<std::int64_t>(dim))) {
      c.require(less_equal(updates[dim], operand[windows[window++]]) != Truth::kNo,
                "a window is larger than the operand");
    } else {
      c.require_equal(updates[dim], indices[batch++]);
    }
  }
  c.gives(c.in(0));
}

constexpr InferenceRow kIndexTypes[] = {
    // sorted by primitive
    {"gather", infer_gather},       {"scatter", infer_scatter},     {"scatter-add", infer_scatter},
    {"scatter-max", infer_scatter}, {"scatter-min", infer_scatter}, {"scatter-mul", infer_scatter},
    {"scatter-sub", infer_scatter},
};
static_assert(std::ranges::is_sorted(kIndexTypes, {}, &InferenceRow::primitive));

}  // namespace

std::span<const InferenceRow> index_types() { return kIndexTypes; }

}  // namespace jaxport::front
