// SPDX-License-Identifier: Apache-2.0
// LayerNormalization and RMSNormalization work on trailing dims. A norm with channels of its own is
// InstanceNormalization on [batch, groups, rest]: ONNX Runtime has no kernel for
// GroupNormalization, and its function body takes twice as long. Options::native_norms asks for it.
#include <algorithm>
#include <cmath>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "lower/emit/emission.h"
#include "lower/macro/macro.h"
#include "lower/rewrite/rewrite.h"
#include "onnx/expr.h"
#include "onnx/subgraph.h"
#include "raise/engine/ops.h"

namespace jaxport::lower {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;
using axis::Use;
using axis::within;
using axis::without;
using raise::NormOp;

namespace {

// The role of each label of a norm, for wishes, emission and the choice of the op.
struct NormLabels {
  NormLabels(const NormOp& op, const Dims& sizes);
  Labels along;  // normalised
  // Channels of an instance or group norm: outside and inside of what is normalised. A layer norm
  // has none.
  Labels groups, inner;
  bool is_instance() const { return !groups.empty(); }
  Labels channels() const;  // groups and inner, in this order
  Labels spatial() const;   // `along` without `inner`
};

// LayerNormalization needs a scale for each normalised element. One of ones is stored in the file:
// not above this many elements, which are 16 KB.
constexpr std::int64_t kMostOnes = 4096;

// Labels that stand in one axis of the value with some of both kinds: an axis that was cut into
// groups.
Labels cut_axis(const NormOp& op) {
  for (const Labels& axis : op.x.labels) {
    const Labels inside = within(axis, op.along);
    if (!inside.empty() && inside.size() < axis.size()) return axis;
  }
  return {};
}

// The last static label outside; some axis must be the channels.
Labels any_channel(const NormOp& op, const Dims& sizes) {
  const Labels outside = without(op.x.flat(), op.along);
  for (auto label = outside.rbegin(); label != outside.rend(); ++label) {
    if (sizes[*label].is_static()) return {*label};
  }
  return {};
}

NormLabels::NormLabels(const NormOp& op, const Dims& sizes) : along(op.along) {
  if (!op.center) return;
  Labels channels = op.scale.flat();
  axis::add_new(channels, op.bias.flat());
  if (channels.empty()) {
    channels = cut_axis(op);
    const Dim size = size_of(along, sizes);
    const bool is_small = size.is_static() && size.value() <= kMostOnes;
    if (channels.empty() && !is_small) channels = any_channel(op, sizes);
  }
  groups = without(channels, along);
  if (!size_of(groups, sizes).is_static()) groups.clear();
  if (!groups.empty()) inner = within(channels, along);
}

Labels NormLabels::channels() const {
  Labels labels = groups;
  labels.insert(labels.end(), inner.begin(), inner.end());
  return labels;
}

Labels NormLabels::spatial() const { return without(along, inner); }

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

// A norm over labels of its node, while it is emitted.
struct Norm {
  Norm(Emission& emission, const Node& emitted)
      : e(emission), node(emitted), op(raise::read<NormOp>(node)), labels(op, node.sizes) {}
  Emission& e;
  const Node& node;
  NormOp op;
  NormLabels labels;

  // The cheapest arrangement of x of those that `arrange` makes of what is at hand or wished;
  // `as_given` is what the op takes of it.
  template <class Arrange, class Given>
  Arrangement cheapest(const Arrange& arrange, const Given& as_given) const {
    std::vector<Arrangement> candidates = e.values.arrangements(edge(op.x), node.sizes);
    auto wish = wanted(e, node, LabelSet(node.sizes.size(), node.out));
    if (wish && !wish_for(e, node)->is_for_order())
      candidates.insert(candidates.begin(), std::move(*wish));
    for (Arrangement& candidate : candidates) candidate = arrange(candidate);
    return cheapest_of(std::move(candidates), [&](const Arrangement& candidate) {
      return e.values.price(edge(op.x), node.sizes, as_given(candidate)) +
             regret(e, node, candidate);
    });
  }
  Value x(const Arrangement& dims) const { return e.values.bring(edge(op.x), node.sizes, dims); }
  // The scale or bias; the same number everywhere when it is absent.
  Value operand(const Use& given, double otherwise, const Arrangement& dims) const {
    if (given) return e.values.bring_full(edge(given), node.sizes, dims);
    return uniform(e.op, otherwise, node.dtype, static_shape(dims, node.sizes));
  }
};

constexpr auto kAsItIs = [](const Arrangement& dims) { return dims; };

// The operands of GroupNormalization are there or neutral.
void emit_group_norm(const Norm& norm) {
  const auto& [e, node, op, labels] = norm;
  const Arrangement best = norm.cheapest(
      [&](const Arrangement& seen) { return channels_second(seen, norm.labels); }, kAsItIs);
  const Arrangement channels{labels.channels()};
  const Values operands{norm.x(best), norm.operand(op.scale, 1, channels),
                        norm.operand(op.bias, 0, channels)};
  const onnx::Args args{{"epsilon", op.eps},
                        {"num_groups", size_of(labels.groups, node.sizes).value()}};
  e.values.define(node, e.op.call("GroupNormalization", operands, args), best);
}

// ONNX Runtime crashes where there is nothing to normalise.
Value instance_norm(const Norm& norm, const Values& operands) {
  Emission& e = norm.e;
  const auto normalised = [&](onnx::Builder& op) -> Values {
    return {op.call("InstanceNormalization", operands, {{"epsilon", norm.op.eps}})};
  };
  const Dim count = size_of(norm.op.along, norm.node.sizes);
  if (!onnx::can_be_zero(count)) return normalised(e.op)[0];
  const auto as_it_is = [&](onnx::Builder&) -> Values { return {operands[0]}; };
  const Value y = unless_zero(e.op, e.shapes.dim(count), normalised, as_it_is)[0];
  e.op.set_shape(y, operands[0].shape());
  return y;
}

// A group norm scales each channel afterwards: InstanceNormalization has one scale for each group.
void emit_instance_norm(const Norm& norm) {
  const auto& [e, node, op, labels] = norm;
  const auto as_groups = [&](const Arrangement& dims) { return grouped(dims, norm.labels); };
  const Arrangement best = norm.cheapest(
      [&](const Arrangement& seen) { return channels_second(seen, norm.labels); }, as_groups);
  const bool is_group = !labels.inner.empty();
  const Value x = norm.x(as_groups(best));
  const Arrangement groups{labels.groups};
  const Value scale = norm.operand(is_group ? Use{} : op.scale, 1, groups);
  const Value bias = norm.operand(is_group ? Use{} : op.bias, 0, groups);
  Value y = instance_norm(norm, {x, scale, bias});
  if (is_group) {
    Arrangement channels{labels.channels()};
    channels.resize(best.size() - 1);
    Dims shape;
    for (const Labels& dim : best) shape.push_back(size_of(dim, node.sizes));
    y = e.shapes.reshape(y, shape);
    if (op.scale) y = y * norm.operand(op.scale, 1, channels);
    if (op.bias) y = y + norm.operand(op.bias, 0, channels);
  }
  e.values.define(node, y, best);
}

void emit_layer_norm(const Norm& norm) {
  const auto& [e, node, op, labels] = norm;
  const LabelSet along(node.sizes.size(), op.along);
  const Arrangement best =
      norm.cheapest([&](const Arrangement& seen) { return trailing(seen, along); }, kAsItIs);
  // The op normalises all dims from its axis on: unit dims between and behind count.
  const auto first =
      std::ranges::find_if(best, [&](const Labels& dim) { return along.has_any(dim); });
  const Arrangement inner(first, best.end());
  Values operands{norm.x(best), norm.operand(op.scale, 1, inner)};  // the op requires a scale
  if (op.bias) operands.push_back(norm.operand(op.bias, 0, inner));
  const onnx::Args args{{"axis", -static_cast<std::int64_t>(inner.size())}, {"epsilon", op.eps}};
  e.values.define(
      node, e.op.call(op.center ? "LayerNormalization" : "RMSNormalization", operands, args), best);
}

void emit_norm(Emission& e, const Node& node) {
  const Norm norm(e, node);
  if (norm.op.is_native) return emit_group_norm(norm);
  norm.labels.is_instance() ? emit_instance_norm(norm) : emit_layer_norm(norm);
}

// A layer norm wants its axes last, a norm with channels wants them second.
MaybeWish norm_wish(const Node& node, std::size_t i, const MaybeWish& own) {
  if (i != 0) return std::nullopt;
  const auto op = raise::read<NormOp>(node);
  const NormLabels labels(op, node.sizes);
  const LabelSet along(node.sizes.size(), labels.along);
  const Arrangement& given = own ? own->dims : op.x.labels;
  Arrangement dims;
  if (labels.is_instance()) {
    const LabelSet channels(node.sizes.size(), labels.channels());
    dims = {channels.drop(along.drop(axis::flatten(given))), labels.channels()};
    for (const Labels& dim : given) {
      if (Labels kept = channels.drop(along.keep(dim)); !kept.empty()) dims.push_back(kept);
    }
  } else {
    dims = dropped(given, along);
    dims.push_back(along.keep(op.x.flat()));
  }
  return Wish{own ? own->strength : kWeak, std::move(dims)};
}

// LayerNormalization and RMSNormalization need a scale of all normalised axes. Where their sizes
// are symbolic it must be there: one of ones would have to be made at run time.
bool has_scale(const NormOp& op, const Dims& sizes) {
  const Labels given = op.scale.flat();
  return std::ranges::all_of(op.along, [&](Label label) {
    return axis::contains(given, label) || sizes[label].is_static();
  });
}

bool has_norm(const Node& node, const Options& options) {
  const auto op = raise::read<NormOp>(node);
  if (!fits_attribute(op.eps, node.dtype)) return false;
  const bool is_instance = NormLabels(op, node.sizes).is_instance();
  if (!is_instance && !has_scale(op, node.sizes)) return false;
  if (op.is_native) return has_op("GroupNormalization", node, options);
  if (is_instance) return has_op("InstanceNormalization", node, options);
  return has_op(op.center ? "LayerNormalization" : "RMSNormalization", node, options);
}

// A norm of groups of channels of an image as GroupNormalization, where the options ask for it.
// Earlier versions of the op have one scale for each group.
Use native_norm(const Use& use, const Options& options) {
  constexpr int kGroupNormalization = 21;
  if (!options.native_norms || options.opset < kGroupNormalization) return {};
  const NormLabels labels(raise::read<NormOp>(*use.node), use.node->sizes);
  auto op = raise::read<NormOp>(use);
  if (op.is_native || !labels.is_instance() || labels.inner.empty() || labels.spatial().empty()) {
    return {};
  }
  op.is_native = true;
  return raise::make(std::move(op), use.flat());
}

// --- a norm in f16 where it is written in f32

// Exponents of the normal numbers of f16, as frexp() counts them.
constexpr int kLeastExponent = -13, kLargestExponent = 16;

bool fits_f16(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  const double digits = std::ldexp(mantissa, mantissa_bits(DType::kF16) + 1);
  return value == 0 || (std::trunc(digits) == digits && kLeastExponent <= exponent &&
                        exponent <= kLargestExponent);
}

bool is_convert(const Use& use) { return use.node->is(Kind::kPointwise, "convert_element_type"); }

// The narrow value that a value of f32 is, or an empty Use.
Use narrowed(Graph& graph, const Use& use, DType dtype) {
  if (is_convert(use) && use.node->edges[0].node->dtype == dtype) return graph.child(use, 0);
  if (!graph.is_constant(use) || dtype != DType::kF16) return {};
  for (std::int64_t i = 0; i < use.node->data.size(); ++i) {
    if (!fits_f16(use.node->data.at(i))) return {};
  }
  return convert(use, dtype);
}

bool is_worth_it(DType dtype, const Preferences& preferences) {
  return dtype == DType::kF16 || (dtype == DType::kBF16 && !preferences.has_slow_bf16_norm);
}

}  // namespace

MacroRow norm_macro() {
  return {.name = NormOp::kName,
          .is_available = has_norm,
          .rewritten = native_norm,
          .emit = emit_norm,
          .wish = norm_wish,
          .treats_labels_alike = true};
}

Use narrow_norm(Graph& graph, const Use& use, const axis::UseCounts& uses, const Options& options) {
  const Preferences& preferences = options.preferences();
  const DType dtype = use.node->dtype;
  if (!is_convert(use) || !is_worth_it(dtype, preferences)) return {};
  const Use norm = graph.child(use, 0);
  const Node& node = *norm.node;
  if (!raise::is<NormOp>(node) || node.dtype != DType::kF32 || uses[&node] > 1) return {};
  auto op = raise::read<NormOp>(norm);
  const std::string_view name = op.center ? "LayerNormalization" : "RMSNormalization";
  const bool is_instance = NormLabels(raise::read<NormOp>(node), node.sizes).is_instance();
  if (is_instance || !target::runs(options.target, name, options.opset, dtype)) return {};
  if ((op.scale || op.bias) && !preferences.rounds_norm_once) return {};
  for (Use* operand : {&op.x, &op.scale, &op.bias}) {
    if (!*operand) continue;
    *operand = narrowed(graph, *operand, dtype);
    if (!*operand) return {};
  }
  return raise::make(std::move(op), norm.flat());
}

}  // namespace jaxport::lower
