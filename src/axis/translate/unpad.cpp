// SPDX-License-Identifier: Apache-2.0
#include "axis/translate/unpad.h"

#include <algorithm>

#include "axis/graph/pattern.h"

namespace jaxport::axis {
namespace {

// Whether a padding adds a known number of elements, at the ends only.
bool adds_known(const front::Padding& padding) {
  const auto is_known = [](const Dim& amount) { return amount.is_static() && amount.value() >= 0; };
  return is_known(padding.low) && is_known(padding.high) && padding.interior == 0;
}

// A dim of one element that was one element before: neither cropped to it nor moved away.
bool is_untouched(const Dim& before, const front::Padding& padding) {
  return before.is_one() && padding.low.is_zero() && padding.high.is_zero() &&
         padding.interior == 0;
}

}  // namespace

std::optional<Unpadded> unpadded(Translation& t) {
  const View& padded = t.in[0];
  const Node& pad = *padded.use.node;
  if (!pad.is(Kind::kPrim, "pad")) return std::nullopt;
  const front::Paddings config = front::PadParams::read(pad.prim->eqn).config;
  const auto fill = t.graph.scalar_value(t.graph.child(padded.use, 1));
  const Dims &before = pad.prim->in[0].shape, after = pad.prim->out[0].shape;
  const Use operand = t.graph.child(padded.use, 0);
  const Pattern source = dims_of(operand.labels, before), seen = dims_of(padded.use.labels, after);
  if (!fill || config.size() != seen.size()) return std::nullopt;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].empty() && !is_untouched(before[i], config[i])) return std::nullopt;
  }
  Unpadded result{{operand, {}}, {}, {}, {}, *fill};
  std::size_t found = 0;  // dims of the pad that vary
  for (const Labels& dim : padded.dims) {
    const auto at = static_cast<std::size_t>(std::ranges::find(seen, dim) - seen.begin());
    if (dim.empty()) {  // any unit dim
      result.view.dims.emplace_back();
      result.shape.emplace_back(1);
      result.low.push_back(0);
      result.high.push_back(0);
      continue;
    }
    if (at == seen.size() || !adds_known(config[at])) return std::nullopt;
    ++found;
    result.view.dims.push_back(source[at]);
    result.shape.push_back(before[at]);
    result.low.push_back(config[at].low.value());
    result.high.push_back(config[at].high.value());
  }
  const auto varying = std::ranges::count_if(seen, [](const Labels& dim) { return !dim.empty(); });
  if (static_cast<std::size_t>(varying) != found) return std::nullopt;
  return result;
}

}  // namespace jaxport::axis
