// SPDX-License-Identifier: Apache-2.0
#include "lower/emit/weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "lower/layout/label_set.h"

namespace jaxport::lower {

using axis::Label;
using axis::Labels;

namespace {

// Elements above which a constant stays a view that is streamed while the file is written.
constexpr std::int64_t kLargestInline = 1024;

}  // namespace

// What is computed from a weight has the name of the weight: of the operand with the most axes.
std::string Weights::unused_name(const axis::Node& node) {
  const axis::Node* named = &node;
  while (named->path.empty() && !named->edges.empty()) {
    const auto axes = [](const axis::Edge& edge) { return edge.axes.size(); };
    named = std::ranges::max_element(named->edges, {}, axes)->node;
  }
  if (named->path.empty()) return "";
  std::string name = named->path;
  for (int i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", named->path, i);
  return name;
}

onnx::Value Weights::stored(const axis::Edge& edge, const Dims& sizes, const Arrangement& to,
                            bool full) {
  const ConstantView& source = facts_.constant(edge.node);
  const auto pieces = label_pieces(edge.axes, sizes);
  const LabelSet mine(sizes.size(), edge.axes);
  StridedView view{source.base, source.offset, {}, {}};
  Shape shape;
  for (const Labels& labels : to) {
    std::int64_t extent = 1;
    const bool repeat = full || mine.has_any(labels);
    for (Label label : labels) {
      const AxisPiece& piece = pieces[label];
      if (piece.axis < 0 && !repeat) continue;
      view.sizes.push_back(sizes[label].value());
      view.strides.push_back(piece.axis < 0 ? 0
                                            : source.strides[piece.axis] * piece.stride.value());
      extent *= view.sizes.back();
    }
    shape.push_back(extent);
  }
  auto [found, fresh] =
      stored_.try_emplace({facts_.index(edge.node), view.sizes, view.strides, shape});
  if (!fresh) return found->second;
  std::string name = unused_name(*edge.node);
  onnx::Value value;
  if (view.size() <= kLargestInline) {
    Tensor dense = materialise(view);
    dense.shape = shape;
    value = op_.constant(std::move(dense), std::move(name));
  } else {
    value = op_.weight(std::move(view), std::move(shape), std::move(name));
  }
  return found->second = {&op_, value.id()};  // weights are values of the main graph
}

}  // namespace jaxport::lower
