// SPDX-License-Identifier: Apache-2.0
// Positional primitives that move or make data, and sizes as values.
#include <algorithm>
#include <limits>

#include "lower/rows/pad.h"

namespace jaxport::lower {
namespace {

// Amounts that are computed at run time. Pad removes elements where they turn out negative.
Value padded_by_sizes(Ctx& c, Value x, Value fill, const Dims& low, const Dims& high) {
  Dims amounts = low, shape = x.shape();
  amounts.insert(amounts.end(), high.begin(), high.end());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = shape[i] + low[i] + high[i];
  return c.op.call_with_shape("Pad", {x, c.shape(amounts), fill}, {{"mode", "constant"}}, shape);
}

Results pad(Ctx& c) {
  auto [x, fill] = c.in<2>();
  const front::Paddings given = front::PadParams::read(c.eqn()).config;
  if (is_static(given)) return padded(c, x, fill, static_config(given));
  PadConfig interior;
  Dims low, high;
  for (const front::Padding& dim : given) {
    interior.push_back({0, 0, dim.interior});
    low.push_back(dim.low);
    high.push_back(dim.high);
  }
  return padded_by_sizes(c, padded(c, x, fill, interior), fill, low, high);
}

front::Attrs reordered_pad(const front::Eqn& eqn, const Ints& order) {
  const front::Paddings given = front::PadParams::read(eqn).config;
  front::PadParams pad;
  for (std::int64_t dim : order) pad.config.push_back(given[dim]);
  return pad.attrs();
}

Results rev(Ctx& c) {
  auto [x] = c.in<1>();
  const Ints dims = c.param<Ints>("dimensions");
  if (dims.empty()) return x;
  const Ints starts(dims.size(), -1), steps(dims.size(), -1);
  const Ints ends(dims.size(), std::numeric_limits<std::int64_t>::min());
  return c.op.call_with_shape(
      "Slice", {x, c.ints(starts), c.ints(ends), c.ints(dims), c.ints(steps)}, {}, x.shape());
}

front::Attrs reordered_rev(const front::Eqn& eqn, const Ints& order) {
  const Ints given = front::get_ints(eqn, "dimensions");
  Ints dims;
  for (std::int64_t i = 0; i < std::ssize(order); ++i) {
    if (std::ranges::find(given, order[i]) != given.end()) dims.push_back(i);
  }
  return {{"dimensions", dims}};
}

// Of sizes that may turn out not to fit. An inferred dim (-1) would take any number of elements.
Results reshape(Ctx& c) {
  const Dims& shape = c.out_type().shape;
  return c.op.call_with_shape("Reshape", {c.in(0), c.shape(shape)}, {{"allowzero", 1}}, shape);
}

Results dim_as_value(Ctx& c) {
  return cast(c.number(front::get_dim(c.eqn(), "dim")), c.out_type().dtype);
}

// See rewrite.h.
Results shape_as_value(Ctx& c) {
  return cast(c.shape(front::get_dims(c.eqn(), "shape")), c.out_type().dtype);
}

// lo + (hi - lo) u, u in [0, 1). Every run of the model draws other numbers, as JAX does.
Results rng_uniform(Ctx& c) {
  auto [lo, hi] = c.in<2>();
  const DType dtype = c.out_type().dtype;
  if (!is_float(dtype)) c.unsupported("only floating-point numbers are supported");
  const DType drawn = dtype == DType::kF64 ? dtype : DType::kF32;
  const Value u =
      c.op.call("RandomUniform", {}, {{"dtype", drawn}, {"shape", c.param<Ints>("shape")}});
  return lo + cast(u, dtype) * (hi - lo);
}

// See rewrite.h.
Results triangle(Ctx& c) {
  const Value diagonal = c.constant(int_scalar(DType::kI64, c.param<std::int64_t>("diagonal")));
  return c.op.Trilu(c.in(0), diagonal, onnx::Args{{"upper", c.param<bool>("upper") ? 1 : 0}});
}

constexpr Row kShapeRows[] = {
    {"dim_as_value", dim_as_value}, {.primitive = "pad", .lower = pad, .reordered = reordered_pad},
    {"reshape", reshape},           {.primitive = "rev", .lower = rev, .reordered = reordered_rev},
    {"rng_uniform", rng_uniform},   {"shape_as_value", shape_as_value},
    {"triangle", triangle}};
static_assert(std::ranges::is_sorted(kShapeRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> shape_rows() { return kShapeRows; }

}  // namespace jaxport::lower
