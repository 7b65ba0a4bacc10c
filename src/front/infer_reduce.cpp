// SPDX-License-Identifier: Apache-2.0
// Primitives that reduce, order or transform along axes.
#include <algorithm>
#include <utility>

#include "front/infer.h"
#include "front/params.h"

namespace jaxport::front {
namespace {

Dims without_axes(const Inference& c, const Dims& shape, const Ints& axes) {
  c.require_axes(axes, shape.size());
  Dims kept;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (!contains(axes, static_cast<std::int64_t>(dim))) kept.push_back(shape[dim]);
  }
  return kept;
}

void infer_reduction(const Inference& c) {
  c.require_counts(1);
  c.gives(c.in(0).dtype, without_axes(c, c.shape(), get_ints(c.eqn, "axes")));
}

void infer_arg_reduction(const Inference& c) {
  c.require_counts(1);
  const DType index = has(c.eqn, "index_dtype") ? get_dtype(c.eqn, "index_dtype") : c.out().dtype;
  c.require(is_integer(index), "the result is no index");
  c.gives(index, without_axes(c, c.shape(), get_ints(c.eqn, "axes")));
}

// With a function of the user's: operands, then their initial values.
void infer_reduce(const Inference& c) {
  const std::size_t count = c.results();
  c.require(count >= 1 && c.operands() == 2 * count, "needs an initial value for each operand");
  const Ints axes = ReduceParams::read(c.eqn).axes;
  for (std::size_t i = 0; i < count; ++i) {
    c.require(c.shape(count + i).empty(), "an initial value is not a scalar");
    c.gives(c.in(i).dtype, without_axes(c, c.shape(i), axes), i);
  }
}

void infer_running(const Inference& c) {
  c.require_counts(1);
  c.axis("axis", c.shape().size());
  c.gives(c.in(0));
}

void infer_sort(const Inference& c) {
  c.require(c.operands() >= 1 && c.operands() == c.results(), "needs as many results as operands");
  c.axis("dimension", c.shape().size());
  c.require(SortParams::read(c.eqn).keys <= c.operands(), "there are more keys than operands");
  for (std::size_t i = 0; i < c.operands(); ++i) {
    c.require(may_be_equal(c.in(i), {c.in(i).dtype, c.shape()}), "the shapes differ");
    c.gives(c.in(i), i);
  }
}

void infer_top_k(const Inference& c) {
  c.require_counts(1, 2);
  Dims shape = c.shape();
  c.require(!shape.empty(), "the operand is a scalar");
  const std::size_t axis = has(c.eqn, "axis") ? c.axis("axis", shape.size()) : shape.size() - 1;
  const Dim k = get_dim(c.eqn, "k");
  c.require(less_equal(0, k) != Truth::kNo && less_equal(k, shape[axis]) != Truth::kNo,
            "'k' is not a number of elements of the axis");
  shape[axis] = k;
  c.gives(c.in(0).dtype, shape);
  c.require(is_integer(c.out(1).dtype), "the second result is no index");
  c.gives(c.out(1).dtype, shape, 1);
}

// A complex array may be given by its parts, along one more dim.
Dims with_parts(Dims shape, DType dtype, bool is_complex_array) {
  if (is_complex_array && !is_complex(dtype)) shape.emplace_back(2);
  return shape;
}

// Along the last axes. Transforms of real numbers hold half of the frequencies.
void infer_fft(const Inference& c) {
  c.require_counts(1);
  const Dims lengths = get_dims(c.eqn, "fft_lengths");
  const std::string kind = get_string(c.eqn, "fft_type");
  const bool from_half = kind == "irfft", to_half = kind == "rfft";
  const DType in = c.in(0).dtype, out = c.out().dtype;
  const DType part = part_dtype(in);
  c.require((part == DType::kF32 || part == DType::kF64) && part == part_dtype(out),
            "it takes and gives numbers of f32 or of f64");
  const std::size_t parts = !to_half && !is_complex(in) ? 1 : 0;
  c.require(!lengths.empty() && lengths.size() + parts <= c.shape().size(),
            "'fft_lengths' do not fit the operand");
  Dims time(c.shape().begin(), c.shape().end() - static_cast<std::ptrdiff_t>(parts));
  std::ranges::copy(lengths, time.end() - static_cast<std::ptrdiff_t>(lengths.size()));
  Dims half = time;
  half.back() = floordiv(lengths.back(), 2) + 1;
  c.require(may_be_equal(c.in(0), {in, with_parts(from_half ? half : time, in, !to_half)}),
            "'fft_lengths' do not fit the operand");
  c.gives(out, with_parts(to_half ? half : time, out, !from_half));
}

constexpr InferenceRow kReduceTypes[] = {
    // sorted by primitive
    {"argmax", infer_arg_reduction},
    {"argmin", infer_arg_reduction},
    {"cumlogsumexp", infer_running},
    {"cummax", infer_running},
    {"cummin", infer_running},
    {"cumprod", infer_running},
    {"cumsum", infer_running},
    {"fft", infer_fft},
    {"reduce", infer_reduce},
    {"reduce_and", infer_reduction},
    {"reduce_max", infer_reduction},
    {"reduce_min", infer_reduction},
    {"reduce_or", infer_reduction},
    {"reduce_prod", infer_reduction},
    {"reduce_sum", infer_reduction},
    {"reduce_xor", infer_reduction},
    {"sort", infer_sort},
    {"top_k", infer_top_k},
};
static_assert(std::ranges::is_sorted(kReduceTypes, {}, &InferenceRow::primitive));

}  // namespace

std::span<const InferenceRow> reduce_types() { return kReduceTypes; }

}  // namespace jaxport::front
