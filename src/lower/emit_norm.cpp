// SPDX-License-Identifier: Apache-2.0
// LayerNormalization and RMSNormalization work on trailing dims. A norm with channels of its own is
// InstanceNormalization on [batch, groups, rest]: ONNX Runtime has no kernel for
// GroupNormalization, and its function body takes twice as long. Who prefers it gets it.
#include <algorithm>

#include "axis/pattern.h"
#include "lower/cheapest.h"
#include "lower/emission.h"
#include "lower/norm.h"
#include "onnx/subgraph.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Label;
using axis::Labels;
using axis::Node;
using axis::within;
using axis::without;

namespace {

// Above this many normalised elements, a scale of ones for LayerNormalization costs more than it is
// worth.
constexpr std::int64_t kMostOnes = 4096;

bool flag(const axis::Node& node, std::string_view name) {
  return *node.attr(name)->get_if<bool>();
}

Dim size_of(const Labels& labels, const Dims& sizes) {
  Dim size = 1;
  for (Label label : labels) size = size * sizes[static_cast<std::size_t>(label)];
  return size;
}

Labels operand_labels(const axis::Node& node) {
  Labels labels;
  for (std::size_t i = 1; i < node.edges.size(); ++i) {
    axis::add_new(labels, axis::flatten(node.edges[i].axes));
  }
  return labels;
}

// Labels that stand in one axis of the value with some of both kinds: an axis that was cut into
// groups.
Labels cut_axis(const axis::Node& node, const Labels& along) {
  for (const Labels& axis : node.edges[0].axes) {
    const Labels inside = within(axis, along);
    if (!inside.empty() && inside.size() < axis.size()) return axis;
  }
  return {};
}

// The last static label outside; some axis must be the channels.
Labels any_channel(const axis::Node& node, const Labels& along) {
  const Labels outside = without(axis::flatten(node.edges[0].axes), along);
  for (auto label = outside.rbegin(); label != outside.rend(); ++label) {
    if (node.sizes[static_cast<std::size_t>(*label)].is_static()) return {*label};
  }
  return {};
}

}  // namespace

NormLabels::NormLabels(const axis::Node& node) : along(node.role("a")) {
  if (!flag(node, "center")) return;
  Labels channels = operand_labels(node);
  if (channels.empty()) {
    channels = cut_axis(node, along);
    const Dim size = size_of(along, node.sizes);
    const bool is_small = size.is_static() && size.value() <= kMostOnes;
    if (channels.empty() && !is_small) channels = any_channel(node, along);
  }
  groups = without(channels, along);
  if (!size_of(groups, node.sizes).is_static()) groups.clear();
  if (!groups.empty()) inner = within(channels, along);
}

Labels NormLabels::channels() const {
  Labels labels = groups;
  labels.insert(labels.end(), inner.begin(), inner.end());
  return labels;
}

Labels NormLabels::spatial() const { return without(along, inner); }

namespace {

// The normalised labels in trailing dims of their own.
Arrangement trailing(const Arrangement& seen, const LabelSet& along) {
  const Labels order = axis::flatten(seen);
  const Labels inside = along.keep(order);
  const Labels tail(order.end() - static_cast<std::ptrdiff_t>(inside.size()), order.end());
  Arrangement result;
  for (const Labels& dim : seen) {
    const Labels outside = along.drop(dim);
    if (!outside.empty() || dim.empty()) result.push_back(outside);
    if (tail == inside && outside.size() < dim.size()) result.push_back(along.keep(dim));
  }
  if (tail != inside) result.push_back(inside);
  return result;
}

// [batch][channels][spatial dims as they are seen]
Arrangement channels_second(const Arrangement& seen, const NormLabels& labels) {
  Labels batch;
  Arrangement spatial;
  for (const Labels& dim : seen) {
    const Labels inside = within(dim, labels.spatial());
    if (!inside.empty()) spatial.push_back(inside);
    for (Label label : without(without(dim, labels.along), labels.groups)) batch.push_back(label);
  }
  Arrangement result{batch, labels.channels()};
  result.insert(result.end(), spatial.begin(), spatial.end());
  return result;
}

// [batch][channels]… as [batch][groups][inner]…
Arrangement grouped(const Arrangement& arrangement, const NormLabels& labels) {
  if (labels.inner.empty()) return arrangement;
  Arrangement result{arrangement[0], labels.groups, labels.inner};
  result.insert(result.end(), arrangement.begin() + 2, arrangement.end());
  return result;
}

Value uniform(onnx::Builder& op, double value, DType dtype, const Shape& shape) {
  return op.weight({scalar(dtype, value), 0, shape, Ints(shape.size(), 0)}, shape, "");
}

Shape static_shape(const Arrangement& dims, const Dims& sizes) {
  Shape shape;
  for (const Labels& dim : dims) shape.push_back(size_of(dim, sizes).value());
  return shape;
}

std::vector<Arrangement> norm_candidates(const Emission& e, const Node& node) {
  std::vector<Arrangement> candidates = e.values.arrangements(node.edges[0], node.sizes);
  auto wish = wanted(e, node, LabelSet(node.sizes.size(), node.out));
  if (wish && !hint(e, node)->order_only) candidates.insert(candidates.begin(), std::move(*wish));
  return candidates;
}

// The operands of GroupNormalization are there or neutral.
void emit_group_norm(Emission& e, const Node& node) {
  const NormLabels labels(node);
  const Edge& edge = node.edges[0];
  std::vector<Arrangement> candidates = norm_candidates(e, node);
  for (Arrangement& candidate : candidates) candidate = channels_second(candidate, labels);
  const Arrangement best = cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
    return e.values.price(edge, node.sizes, candidate) + regret(e, node, candidate);
  });
  Values operands{e.values.bring(edge, node.sizes, best)};
  std::size_t next = 1;
  for (const auto& [name, otherwise] : {std::pair("scale", 1.0), std::pair("bias", 0.0)}) {
    const Arrangement channels{labels.channels()};
    operands.push_back(
        flag(node, name)
            ? e.values.bring_full(node.edges[next++], node.sizes, channels)
            : uniform(e.op, otherwise, node.dtype, static_shape(channels, node.sizes)));
  }
  const onnx::Args args{{"epsilon", *node.attr("eps")->get_if<double>()},
                        {"num_groups", size_of(labels.groups, node.sizes).value()}};
  e.values.define(node, e.op.call("GroupNormalization", operands, args), best);
}

// ONNX Runtime crashes where there is nothing to normalise.
Value instance_norm(Emission& e, const Node& node, const Values& operands) {
  const auto normalised = [&](onnx::Builder& op) -> Values {
    return {op.call("InstanceNormalization", operands,
                    {{"epsilon", *node.attr("eps")->get_if<double>()}})};
  };
  const Dim count = size_of(node.role("a"), node.sizes);
  if (!onnx::can_be_zero(count)) return normalised(e.op)[0];
  const auto as_it_is = [&](onnx::Builder&) -> Values { return {operands[0]}; };
  const Value y = unless_zero(e.op, e.shapes.dim(count), normalised, as_it_is)[0];
  e.op.set_shape(y, operands[0].shape());
  return y;
}

// A group norm scales each channel afterwards: InstanceNormalization has one scale for each group.
void emit_instance_norm(Emission& e, const Node& node) {
  const NormLabels labels(node);
  const Edge& edge = node.edges[0];
  std::vector<Arrangement> candidates = norm_candidates(e, node);
  for (Arrangement& candidate : candidates) candidate = channels_second(candidate, labels);
  const Arrangement best = cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
    return e.values.price(edge, node.sizes, grouped(candidate, labels)) +
           regret(e, node, candidate);
  });
  const bool has_scale = flag(node, "scale"), has_bias = flag(node, "bias");
  const bool is_group = !labels.inner.empty();
  const Edge* scale = has_scale ? &node.edges[1] : nullptr;
  const Edge* bias = has_bias ? &node.edges[has_scale ? 2 : 1] : nullptr;
  const Shape groups = static_shape({labels.groups}, node.sizes);
  const auto operand = [&](const Edge* given, double otherwise) {
    if (!given || is_group) return uniform(e.op, otherwise, node.dtype, groups);
    return e.values.bring_full(*given, node.sizes, {labels.groups});
  };
  const Value x = e.values.bring(edge, node.sizes, grouped(best, labels));
  Value y = instance_norm(e, node, {x, operand(scale, 1), operand(bias, 0)});
  if (is_group) {
    Arrangement channels{labels.channels()};
    channels.resize(best.size() - 1);
    Dims shape;
    for (const Labels& dim : best) shape.push_back(size_of(dim, node.sizes));
    y = e.shapes.reshape(y, shape);
    if (scale) y = e.op.Mul(y, e.values.bring_full(*scale, node.sizes, channels));
    if (bias) y = e.op.Add(y, e.values.bring_full(*bias, node.sizes, channels));
  }
  e.values.define(node, y, best);
}

}  // namespace

void emit_norm(Emission& e, const Node& node) {
  if (node.attr("native")) return emit_group_norm(e, node);
  if (NormLabels(node).is_instance()) return emit_instance_norm(e, node);
  const Edge& edge = node.edges[0];
  const LabelSet along(node.sizes.size(), node.role("a"));
  std::vector<Arrangement> candidates = norm_candidates(e, node);
  for (Arrangement& candidate : candidates) candidate = trailing(candidate, along);
  const Arrangement best = cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
    return e.values.price(edge, node.sizes, candidate) + regret(e, node, candidate);
  });
  // The op normalises all dims from its axis on: unit dims between and behind count.
  const auto first =
      std::ranges::find_if(best, [&](const Labels& dim) { return along.has_any(dim); });
  const Arrangement inner(first, best.end());
  const bool center = flag(node, "center"), has_scale = flag(node, "scale");
  Values operands{e.values.bring(edge, node.sizes, best)};
  operands.push_back(has_scale  // the op requires a scale
                         ? e.values.bring_full(node.edges[1], node.sizes, inner)
                         : uniform(e.op, 1, node.dtype, static_shape(inner, node.sizes)));
  if (flag(node, "bias")) {
    operands.push_back(e.values.bring_full(node.edges[has_scale ? 2 : 1], node.sizes, inner));
  }
  const onnx::Args args{{"axis", -static_cast<std::int64_t>(inner.size())},
                        {"epsilon", *node.attr("eps")->get_if<double>()}};
  e.values.define(
      node, e.op.call(center ? "LayerNormalization" : "RMSNormalization", operands, args), best);
}

}  // namespace jaxport::lower
