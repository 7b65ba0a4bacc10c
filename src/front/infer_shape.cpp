// SPDX-License-Identifier: Apache-2.0
// Primitives that move elements: by position alone, or by a start that is computed.
#include <algorithm>

#include "front/infer.h"
#include "front/params.h"

namespace jaxport::front {
namespace {

bool may_be_at_most(const Dim& a, const Dim& b) { return less_equal(a, b) != Truth::kNo; }

// A parameter that repeats the declared shape of the result.
void require_declared(const Inference& c, std::string_view param) {
  if (has(c.eqn, param)) c.gives(c.out().dtype, get_dims(c.eqn, param));
}

void infer_broadcast(const Inference& c) {
  c.require(c.operands() >= 1 && c.results() == 1,
            "the numbers of operands and results do not fit");
  const Ints dims = get_ints(c.eqn, "broadcast_dimensions");
  c.require_axes(dims, c.out().shape.size());
  c.require(dims.size() == c.shape().size(), "one entry is needed for each dim");
  Dims shape = c.out().shape;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!c.shape()[i].is_one()) shape[dims[i]] = c.shape()[i];
  }
  c.gives(c.in(0).dtype, shape);
  require_declared(c, "shape");
}

void infer_concatenate(const Inference& c) {
  c.require(c.operands() >= 1 && c.results() == 1, "needs operands and one result");
  c.require_one_dtype();
  Dims shape = c.shape();
  const std::size_t axis = c.axis("dimension", shape.size());
  for (std::size_t i = 1; i < c.operands(); ++i) {
    c.require(c.shape(i).size() == shape.size(), "the ranks differ");
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      if (dim != axis) c.require_equal(shape[dim], c.shape(i)[dim]);
    }
    shape[axis] = shape[axis] + c.shape(i)[axis];
  }
  c.gives(c.in(0).dtype, shape);
}

// Scalars behind the first operands: where a window starts, one for each dim.
void require_starts(const Inference& c, std::size_t first) {
  c.require(c.operands() == first + c.shape().size() && c.results() == 1,
            "one start is needed for each dim");
  for (std::size_t i = first; i < c.operands(); ++i) {
    c.require(c.shape(i).empty() && is_integer(c.in(i).dtype), "a start is no integer");
  }
}

void require_window(const Inference& c, const Dims& window) {
  c.require(window.size() == c.shape().size(), "the window has another rank");
  for (std::size_t dim = 0; dim < window.size(); ++dim) {
    c.require(may_be_at_most(0, window[dim]) && may_be_at_most(window[dim], c.shape()[dim]),
              "a range leaves its dim");
  }
}

void infer_dynamic_slice(const Inference& c) {
  c.require(c.operands() >= 1, "one start is needed for each dim");
  require_starts(c, 1);
  const Dims window = get_dims(c.eqn, "slice_sizes");
  require_window(c, window);
  c.gives(c.in(0).dtype, window);
}

void infer_dynamic_update_slice(const Inference& c) {
  c.require(c.operands() >= 2, "needs an operand, an update, one result");
  require_starts(c, 2);
  c.require(c.in(0).dtype == c.in(1).dtype, "the update has another dtype");
  require_window(c, c.shape(1));
  c.gives(c.in(0));
}

void infer_expand_dims(const Inference& c) {
  c.require_counts(1);
  Ints added = get_ints(c.eqn, "dimensions");
  c.require_axes(added, c.shape().size() + added.size());
  std::ranges::sort(added);
  Dims shape = c.shape();
  for (const std::int64_t axis : added) shape.insert(shape.begin() + axis, Dim(1));
  c.gives(c.in(0).dtype, shape);
}

void infer_iota(const Inference& c) {
  c.require(c.results() == 1, "needs one result");
  c.axis("dimension", c.out().shape.size());
  require_declared(c, "shape");
  if (has(c.eqn, "dtype")) c.gives(get_dtype(c.eqn, "dtype"), c.out().shape);
}

void infer_pad(const Inference& c) {
  c.require_counts(2);
  c.require_one_dtype();
  c.require(c.shape(1).empty(), "the value to pad with is not a scalar");
  const Paddings padding = PadParams::read(c.eqn).config;
  c.require(padding.size() == c.shape().size(), "'padding_config' needs one entry for each dim");
  c.gives(c.in(0).dtype, padded_shape(c.shape(), padding));
}

void infer_reshape(const Inference& c) {
  c.require(c.operands() >= 1 && c.results() == 1,
            "the numbers of operands and results do not fit");
  if (has(c.eqn, "dimensions")) {
    const Ints order = get_ints(c.eqn, "dimensions");
    c.require_axes(order, c.shape().size());
    c.require(order.size() == c.shape().size(), "'dimensions' is no permutation");
  }
  c.gives(c.in(0).dtype, c.out().shape);
  require_declared(c, "new_sizes");
  c.require(equal(product(c.shape()), product(c.out().shape)) != Truth::kNo,
            "the numbers of elements differ");
}

void infer_rev(const Inference& c) {
  c.require_counts(1);
  c.require_axes(get_ints(c.eqn, "dimensions"), c.shape().size());
  c.gives(c.in(0));
}

void infer_slice(const Inference& c) {
  c.require_counts(1);
  const auto [start, limit, stride] = SliceParams::read(c.eqn);
  c.require(start.size() == c.shape().size(), "one range is needed for each dim");
  Dims shape;
  for (std::size_t dim = 0; dim < start.size(); ++dim) {
    c.require(may_be_at_most(0, start[dim]) && may_be_at_most(start[dim], limit[dim]) &&
                  may_be_at_most(limit[dim], c.shape()[dim]),
              "a range leaves its dim");
    const Dim count = limit[dim] - start[dim];
    shape.push_back(stride[dim] == 1 ? count : floordiv(count + (stride[dim] - 1), stride[dim]));
  }
  c.gives(c.in(0).dtype, shape);
}

void infer_split(const Inference& c) {
  c.require(c.operands() == 1, "needs one operand");
  const std::size_t axis = c.axis("axis", c.shape().size());
  const Dims sizes = get_dims(c.eqn, "sizes");
  c.require(sizes.size() == c.results(), "'sizes' needs one entry for each result");
  Dims shape = c.shape();
  Dim sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    shape[axis] = sizes[i];
    sum = sum + sizes[i];
    c.gives(c.in(0).dtype, shape, i);
  }
  c.require_equal(c.shape()[axis], sum);
}

void infer_squeeze(const Inference& c) {
  c.require_counts(1);
  const Ints removed = get_ints(c.eqn, "dimensions");
  c.require_axes(removed, c.shape().size());
  Dims shape;
  for (std::size_t dim = 0; dim < c.shape().size(); ++dim) {
    if (!contains(removed, static_cast<std::int64_t>(dim))) {
      shape.push_back(c.shape()[dim]);
    } else {
      c.require(may_always_be_equal(c.shape()[dim], 1), "a squeezed dim has not size 1");
    }
  }
  c.gives(c.in(0).dtype, shape);
}

void infer_stack(const Inference& c) {
  c.require(c.operands() >= 1 && c.results() == 1, "needs operands and one result");
  for (std::size_t i = 1; i < c.operands(); ++i) {
    c.require(may_be_equal(c.in(0), c.in(i)), "the operands have different types");
  }
  Dims shape = c.shape();
  const std::size_t axis = c.axis("axis", shape.size() + 1);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis),
               Dim(static_cast<std::int64_t>(c.operands())));
  c.gives(c.in(0).dtype, shape);
}

void infer_tile(const Inference& c) {
  c.require_counts(1);
  const Dims reps = get_dims(c.eqn, "reps");
  c.require(reps.size() == c.shape().size(), "'reps' needs one entry for each dim");
  Dims shape = c.shape();
  for (std::size_t dim = 0; dim < reps.size(); ++dim) shape[dim] = shape[dim] * reps[dim];
  c.gives(c.in(0).dtype, shape);
}

void infer_transpose(const Inference& c) {
  c.require_counts(1);
  const Ints order = get_ints(c.eqn, "permutation");
  c.require_axes(order, c.shape().size());
  c.require(order.size() == c.shape().size(), "'permutation' is no permutation");
  Dims shape;
  for (const std::int64_t axis : order) shape.push_back(c.shape()[axis]);
  c.gives(c.in(0).dtype, shape);
}

void infer_unstack(const Inference& c) {
  c.require(c.operands() == 1, "needs one operand");
  const std::size_t axis = c.axis("axis", c.shape().size());
  c.require_equal(c.shape()[axis], static_cast<std::int64_t>(c.results()));
  Dims shape = c.shape();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  for (std::size_t i = 0; i < c.results(); ++i) c.gives(c.in(0).dtype, shape, i);
}

constexpr InferenceRow kShapeTypes[] = {
    // sorted by primitive
    {"broadcast_in_dim", infer_broadcast},
    {"concatenate", infer_concatenate},
    {"dynamic_slice", infer_dynamic_slice},
    {"dynamic_update_slice", infer_dynamic_update_slice},
    {"expand_dims", infer_expand_dims},
    {"iota", infer_iota},
    {"pad", infer_pad},
    {"reshape", infer_reshape},
    {"rev", infer_rev},
    {"slice", infer_slice},
    {"split", infer_split},
    {"squeeze", infer_squeeze},
    {"stack", infer_stack},
    {"tile", infer_tile},
    {"transpose", infer_transpose},
    {"unstack", infer_unstack},
};
static_assert(std::ranges::is_sorted(kShapeTypes, {}, &InferenceRow::primitive));

}  // namespace

std::span<const InferenceRow> shape_types() { return kShapeTypes; }

}  // namespace jaxport::front
