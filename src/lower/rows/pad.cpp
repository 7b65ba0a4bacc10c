// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/pad.h"

#include <algorithm>
#include <limits>

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

}  // namespace jaxport::lower
