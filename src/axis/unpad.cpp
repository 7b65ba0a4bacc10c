// SPDX-License-Identifier: Apache-2.0
#include "axis/unpad.h"

#include <algorithm>

namespace jaxport::axis {
namespace {

// The labels of all dims of a positional value; none for unit dims.
Pattern dims_of(const Use& use, const Dims& shape) {
  Pattern dims;
  std::size_t axis = 0;
  for (const Dim& size : shape) dims.push_back(size.is_one() ? Labels{} : use.labels[axis++]);
  return dims;
}

struct Amounts {
  std::int64_t low, high;
};

// nullopt for symbolic or negative amounts and for interior padding.
std::optional<Amounts> amounts_of(const front::Attr& config) {
  const auto* triple = config.get_if<front::List>();
  if (!triple || triple->size() != 3) return std::nullopt;
  std::int64_t numbers[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const auto* number = (*triple)[i].get_if<std::int64_t>();
    if (!number || *number < 0) return std::nullopt;
    numbers[i] = *number;
  }
  if (numbers[2] != 0) return std::nullopt;
  return Amounts{numbers[0], numbers[1]};
}

// A dim of one element that was one element before: neither cropped to it nor moved away.
bool is_untouched(const Dim& before, const front::Attr& config) {
  const auto amounts = amounts_of(config);
  return before.is_one() && amounts && amounts->low == 0 && amounts->high == 0;
}

}  // namespace

std::optional<Unpadded> unpadded(Translation& t) {
  const View& padded = t.in[0];
  const Node& pad = *padded.use.node;
  if (!pad.is(Kind::kPrim, "pad")) return std::nullopt;
  const front::Attr* attr = front::find(pad.prim->eqn.attrs, "padding_config");
  const auto* config = attr ? attr->get_if<front::List>() : nullptr;
  const auto fill = t.graph.scalar_value(t.graph.child(padded.use, 1));
  if (!config || !fill) return std::nullopt;
  const Dims &before = pad.prim->in[0].shape, after = pad.prim->out[0].shape;
  const Use operand = t.graph.child(padded.use, 0);
  const Pattern source = dims_of(operand, before), seen = dims_of(padded.use, after);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].empty() && !is_untouched(before[i], (*config)[i])) return std::nullopt;
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
    const auto amounts = at < seen.size() ? amounts_of((*config)[at]) : std::nullopt;
    if (!amounts) return std::nullopt;
    ++found;
    result.view.dims.push_back(source[at]);
    result.shape.push_back(before[at]);
    result.low.push_back(amounts->low);
    result.high.push_back(amounts->high);
  }
  const auto varying = std::ranges::count_if(seen, [](const Labels& dim) { return !dim.empty(); });
  if (static_cast<std::size_t>(varying) != found) return std::nullopt;
  return result;
}

}  // namespace jaxport::axis
