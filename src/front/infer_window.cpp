// SPDX-License-Identifier: Apache-2.0
// Products and windows.
#include <algorithm>
#include <utility>

#include "front/infer.h"
#include "front/params.h"

namespace jaxport::front {
namespace {

Dim dilated_size(const Dim& size, std::int64_t step) {
  return step == 1 || size.is_zero() ? size : (size - 1) * step + 1;
}

// How often a window fits.
Dim window_count(const Dim& padded, const Dim& window, std::int64_t stride) {
  const Dim room = padded - window;
  return max((stride == 1 ? room : floordiv(room, stride)) + 1, 0);
}

// The dtype of a product: what is asked for, or that of both operands.
DType product_dtype(const Inference& c) {
  if (has(c.eqn, "preferred_element_type")) return get_dtype(c.eqn, "preferred_element_type");
  return c.in(0).dtype == c.in(1).dtype ? c.in(0).dtype : c.out().dtype;
}

// Dims of one operand that are in neither list.
void append_others(Dims& shape, const Dims& operand, const Ints& batch, const Ints& contracted) {
  for (std::size_t dim = 0; dim < operand.size(); ++dim) {
    const auto axis = static_cast<std::int64_t>(dim);
    if (!contains(batch, axis) && !contains(contracted, axis)) shape.push_back(operand[dim]);
  }
}

Ints joined(Ints a, const Ints& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void infer_dot_general(const Inference& c) {
  c.require_counts(2);
  const auto [lhs, rhs, lhs_batch, rhs_batch] = DotParams::read(c.eqn);
  c.require_axes(joined(lhs_batch, lhs), c.shape(0).size());
  c.require_axes(joined(rhs_batch, rhs), c.shape(1).size());
  Dims shape;
  for (std::size_t i = 0; i < lhs_batch.size(); ++i) {
    c.require_equal(c.shape(0)[lhs_batch[i]], c.shape(1)[rhs_batch[i]]);
    shape.push_back(c.shape(0)[lhs_batch[i]]);
  }
  for (std::size_t i = 0; i < lhs.size(); ++i) {
    c.require_equal(c.shape(0)[lhs[i]], c.shape(1)[rhs[i]]);
  }
  append_others(shape, c.shape(0), lhs_batch, lhs);
  append_others(shape, c.shape(1), rhs_batch, rhs);
  c.gives(product_dtype(c), shape);
}

void require_groups(const Inference& c, const ConvParams& conv) {
  const Dims &x = c.shape(0), &kernel = c.shape(1);
  c.require(conv.batch_groups >= 1 && less_equal(1, conv.feature_groups) != Truth::kNo,
            "a number of groups is below 1");
  c.require_equal(x[conv.lhs[1]], kernel[conv.rhs[1]] * conv.feature_groups);
  for (const Dim& groups : {conv.feature_groups, Dim(conv.batch_groups)}) {
    const bool divides = equal(mod(kernel[conv.rhs[0]], groups), 0) != Truth::kNo;
    c.require(divides, "the groups do not divide the features");
  }
  c.require(equal(mod(x[conv.lhs[0]], conv.batch_groups), 0) != Truth::kNo,
            "the groups do not divide the batch");
}

void infer_conv(const Inference& c) {
  c.require_counts(2);
  const ConvParams conv = ConvParams::read(c.eqn);
  const std::size_t rank = conv.lhs.size();
  c.require(c.shape(0).size() == rank && c.shape(1).size() == rank,
            "'dimension_numbers' do not fit the operands");
  require_groups(c, conv);
  Dims shape(rank);
  shape[conv.out[0]] = floordiv(c.shape(0)[conv.lhs[0]], conv.batch_groups);
  shape[conv.out[1]] = c.shape(1)[conv.rhs[0]];
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const Dims padded = padded_shape({c.shape(0)[conv.lhs[i + 2]]}, {conv.padding[i]});
    const Dim window = dilated_size(c.shape(1)[conv.rhs[i + 2]], conv.rhs_dilation[i]);
    shape[conv.out[i + 2]] = window_count(padded[0], window, conv.stride[i]);
  }
  c.gives(product_dtype(c), shape);
}

// The shape of what windows over an operand give.
Dims windows_over(const Inference& c, const Dims& operand) {
  const WindowParams window = WindowParams::read(c.eqn);
  c.require(window.size.size() == operand.size(), "the window has another rank");
  Dims shape = padded_shape(operand, window.padding);
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const Dim size = dilated_size(window.size[dim], window.dilation[dim]);
    shape[dim] = window_count(shape[dim], size, window.stride[dim]);
  }
  return shape;
}

void infer_window_reduction(const Inference& c) {
  c.require_counts(1);
  c.gives(c.in(0).dtype, windows_over(c, c.shape()));
}

// With a function of the user's: operands, then their initial values.
void infer_reduce_window(const Inference& c) {
  const std::size_t count = c.results();
  c.require(count >= 1 && c.operands() == 2 * count, "needs an initial value for each operand");
  for (std::size_t i = 0; i < count; ++i) {
    c.require(c.shape(count + i).empty(), "an initial value is not a scalar");
    c.gives(c.in(i).dtype, windows_over(c, c.shape(i)), i);
  }
}

// Operands: one element for each window, and the array that has the windows.
void infer_select_and_scatter(const Inference& c) {
  c.require_counts(2);
  c.require_one_dtype();
  const Type windows{c.in(1).dtype, windows_over(c, c.shape(1))};
  c.require(may_be_equal(windows, c.in(0)), "the first operand has no element for each window");
  c.gives(c.in(1));
}

constexpr InferenceRow kWindowTypes[] = {
    // sorted by primitive
    {"conv_general_dilated", infer_conv},
    {"dot_general", infer_dot_general},
    {"reduce_window", infer_reduce_window},
    {"reduce_window_max", infer_window_reduction},
    {"reduce_window_min", infer_window_reduction},
    {"reduce_window_sum", infer_window_reduction},
    {"select_and_scatter_add", infer_select_and_scatter},
};
static_assert(std::ranges::is_sorted(kWindowTypes, {}, &InferenceRow::primitive));

}  // namespace

Dims padded_shape(const Dims& shape, const Paddings& padding) {
  Dims padded;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const auto& [low, high, interior] = padding[dim];
    padded.push_back(dilated_size(shape[dim], interior + 1) + low + high);
  }
  return padded;
}

std::span<const InferenceRow> window_types() { return kWindowTypes; }

}  // namespace jaxport::front
