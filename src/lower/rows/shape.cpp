// SPDX-License-Identifier: Apache-2.0
// Positional primitives that move or make data, and sizes as values.
#include <algorithm>
#include <limits>

#include "lower/rows/pad.h"

namespace jaxport::lower {
namespace {

// Interior padding: each dim [n] becomes [n, 1], is padded to [n, 1 + interior] and cut to (n - 1)
// * (1 + interior) + 1.
Value with_interior(Ctx& c, Value x, Value fill, const PadConfig& config) {
  Dims split, joined, cut;
  Ints pads_low, pads_high;
  for (std::size_t i = 0; i < config.size(); ++i) {
    const Dim size = x.shape()[i];
    const std::int64_t step = config[i].interior + 1;
    split.push_back(size);
    split.emplace_back(1);
    pads_low.insert(pads_low.end(), {0, 0});
    pads_high.insert(pads_high.end(), {0, config[i].interior});
    joined.push_back(size * step);
    cut.push_back(size == Dim(0) ? size : (size - 1) * step + 1);
  }
  pads_low.insert(pads_low.end(), pads_high.begin(), pads_high.end());
  Dims stepped = split;
  for (std::size_t i = 0; i < config.size(); ++i) stepped[2 * i + 1] = config[i].interior + 1;
  const Value apart = c.op.call_with_shape("Pad", {c.reshape(x, split), c.ints(pads_low), fill},
                                           {{"mode", "constant"}}, stepped);
  const Value together = c.reshape(apart, joined);
  if (cut == joined) return together;
  const Value zeros = c.ints(Ints(config.size(), 0));
  return c.op.call_with_shape("Slice", {together, zeros, c.shape(cut)}, {}, cut);
}

// Negative padding: a slice.
Value trimmed(Ctx& c, Value x, const PadConfig& config) {
  Ints starts, ends;
  Dims shape;
  for (std::size_t i = 0; i < config.size(); ++i) {
    const std::int64_t low = std::min<std::int64_t>(config[i].low, 0),
                       high = std::min<std::int64_t>(config[i].high, 0);
    starts.push_back(-low);
    ends.push_back(high < 0 ? high : std::numeric_limits<std::int64_t>::max());
    shape.push_back(x.shape()[i] + high + low);
  }
  if (shape == x.shape()) return x;
  return c.op.call_with_shape("Slice", {x, c.ints(starts), c.ints(ends)}, {}, shape);
}

// Positive padding.
Value widened(Ctx& c, Value x, Value fill, const PadConfig& config) {
  Ints low, high;
  Dims shape;
  for (std::size_t i = 0; i < config.size(); ++i) {
    low.push_back(std::max<std::int64_t>(config[i].low, 0));
    high.push_back(std::max<std::int64_t>(config[i].high, 0));
    shape.push_back(x.shape()[i] + low.back() + high.back());
  }
  if (shape == x.shape()) return x;
  low.insert(low.end(), high.begin(), high.end());
  return c.op.call_with_shape("Pad", {x, c.ints(low), fill}, {{"mode", "constant"}}, shape);
}

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

PadConfig static_config(const front::Paddings& paddings) {
  PadConfig config;
  for (const auto& [low, high, interior] : paddings) {
    config.push_back({low.value(), high.value(), interior});
  }
  return config;
}

Value padded(Ctx& c, Value x, Value fill, const PadConfig& config) {
  if (std::ranges::any_of(config, [](const PadDim& d) { return d.interior != 0; })) {
    x = with_interior(c, x, fill, config);
  }
  // What is taken away at one end may be padding of the other: the order matters for short dims.
  return trimmed(c, widened(c, x, fill, config), config);
}

std::span<const Row> shape_rows() { return kShapeRows; }

}  // namespace jaxport::lower
