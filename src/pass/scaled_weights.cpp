// SPDX-License-Identifier: Apache-2.0
// Scales and shifts of what Conv, ConvTranspose, Gemm and MatMul compute become part of their
// weights and biases; zeros around the image become the padding of Conv.
#include <algorithm>
#include <cmath>
#include <limits>

#include "pass/local.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Initializer;
using onnx::Node;
using onnx::ValueId;

using Numbers = std::vector<double>;

std::optional<Numbers> numbers(const Local& local, ValueId id) {
  const Initializer* found = local.constant(id);
  if (found == nullptr) return std::nullopt;
  const DType dtype = found->view.base.dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64) return std::nullopt;
  const Tensor tensor = materialise(found->view);
  if (dtype == DType::kF64) return Numbers(tensor.as<double>().begin(), tensor.as<double>().end());
  return Numbers(tensor.as<float>().begin(), tensor.as<float>().end());
}

// Whether a channel had ordinary weights and has none that keeps its digits.
bool vanishes(DType dtype, const Numbers& before, const Numbers& after, std::size_t inner,
              std::size_t channels) {
  const double least =
      dtype == DType::kF32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  Numbers largest_before(channels, 0.0), largest_after(channels, 0.0);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::size_t channel = i / inner % channels;
    largest_before[channel] = std::max(largest_before[channel], std::fabs(before[i]));
    largest_after[channel] = std::max(largest_after[channel], std::fabs(after[i]));
  }
  for (std::size_t i = 0; i < channels; ++i) {
    const bool is_lost = largest_after[i] != 0 && largest_after[i] < least;
    if (is_lost && largest_before[i] >= least) return true;
  }
  return false;
}

// nullopt when a number would leave the dtype.
std::optional<Tensor> rounded(DType dtype, Shape shape, const Numbers& values) {
  MutableTensor result = allocate(dtype, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kF32) {
      const auto value = static_cast<float>(values[i]);
      if (!std::isfinite(value)) return std::nullopt;
      result.as<float>()[i] = value;
    } else {
      if (!std::isfinite(values[i])) return std::nullopt;
      result.as<double>()[i] = values[i];
    }
  }
  return result.tensor;
}

// --- the node whose weights take the scale

struct Layer {
  const Node* node;
  std::int64_t channels;           // of the result
  std::size_t channel_axis, rank;  // in the result
  // The channel of an element of the weights: index / inner % channels.
  std::int64_t inner;
};

std::optional<Layer> layer_of(const Local& local, ValueId id) {
  const Node* node = local.producer(id);
  const Dims* result = local.shape(id);
  if (node == nullptr || result == nullptr || !local.is_used_once(id)) return std::nullopt;
  if (node->in.size() < 2 || local.constant(node->in[1]) == nullptr) return std::nullopt;
  const Shape& weights = local.constant(node->in[1])->shape;
  const auto elements = [&](std::size_t from) {
    return element_count(std::span(weights).subspan(from));
  };
  if (node->op == "Conv" && weights.size() > 2) {
    return Layer{node, weights[0], 1, result->size(), elements(1)};
  }
  const bool is_plain = int_attribute(*node, "group", 1) == 1;
  if (node->op == "ConvTranspose" && weights.size() > 2 && is_plain) {
    return Layer{node, weights[1], 1, result->size(), elements(2)};
  }
  if (node->op == "Gemm" && weights.size() == 2 && float_attribute(*node, "beta", 1) == 1) {
    const bool is_turned = int_attribute(*node, "transB", 0) != 0;
    return is_turned ? Layer{node, weights[0], 1, 2, weights[1]} : Layer{node, weights[1], 1, 2, 1};
  }
  if (node->op == "MatMul" && weights.size() == 2 && !result->empty()) {
    return Layer{node, weights[1], result->size() - 1, result->size(), 1};
  }
  return std::nullopt;
}

// A number for each channel of the layer, from a constant that is broadcast to its result.
std::optional<Numbers> per_channel(const Local& local, const Layer& layer, ValueId id) {
  const Initializer* found = local.constant(id);
  if (found == nullptr) return std::nullopt;
  const Shape& shape = found->shape;
  if (shape.size() > layer.rank) return std::nullopt;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool is_channel = i + layer.rank - shape.size() == layer.channel_axis;
    if (shape[i] != 1 && !(is_channel && shape[i] == layer.channels)) return std::nullopt;
  }
  auto values = numbers(local, id);
  if (!values || values->empty()) return std::nullopt;
  if (values->size() == 1)
    values->assign(static_cast<std::size_t>(layer.channels), values->front());
  return values;
}

// The bias of Conv has one dim; that of Gemm is broadcast to the result.
Layer bias_layer(Layer layer) {
  if (layer.node->op != "Gemm") layer.rank = layer.channel_axis + 1;
  return layer;
}

// result * scale + shift takes the place of `node`.
bool absorb(Local& local, Node& node, const Layer& layer, const Numbers& scale,
            const Numbers& shift) {
  const bool has_bias = layer.node->in.size() > 2 && layer.node->in[2] != onnx::kAbsent;
  const bool has_shift = std::ranges::any_of(shift, [](double x) { return x != 0; });
  const bool is_product = layer.node->op == "MatMul";
  if (is_product && has_shift) return false;
  const auto weights = numbers(local, layer.node->in[1]);
  auto bias = has_bias ? per_channel(local, bias_layer(layer), layer.node->in[2])
                       : Numbers(scale.size(), 0.0);
  if (!weights || !bias) return false;
  const auto inner = static_cast<std::size_t>(layer.inner);
  Numbers scaled = *weights;
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] *= scale[i / inner % scale.size()];
  for (std::size_t i = 0; i < bias->size(); ++i) (*bias)[i] = (*bias)[i] * scale[i] + shift[i];
  const Initializer& old = *local.constant(layer.node->in[1]);
  const DType dtype = old.view.base.dtype;
  if (vanishes(dtype, *weights, scaled, inner, scale.size())) return false;
  auto new_weights = rounded(dtype, old.shape, scaled);
  auto new_bias = rounded(dtype, {std::ssize(*bias)}, *bias);
  if (!new_weights || !new_bias) return false;
  node.op = layer.node->op;
  node.attrs = layer.node->attrs;
  node.in = {layer.node->in[0], local.add_constant(std::move(*new_weights))};
  if (has_bias || has_shift) node.in.push_back(local.add_constant(std::move(*new_bias)));
  return true;
}

// --- Mul, Div, Add and Sub of a constant

struct Affine {
  Layer layer;
  Numbers scale, shift;
};

enum class Operation { kMultiply, kDivide, kAdd, kSubtract };

std::optional<Affine> affine_of(const Local& local, const Node& node, Operation operation) {
  const bool is_commutative = operation == Operation::kMultiply || operation == Operation::kAdd;
  for (std::size_t side : {0u, 1u}) {
    if (side == 1 && !is_commutative) break;
    const auto layer = layer_of(local, node.in[side]);
    const auto given = layer ? per_channel(local, *layer, node.in[1 - side]) : std::nullopt;
    if (!given || !local.same_type(node.in[side], node.out[0])) continue;
    Affine affine{*layer, Numbers(given->size(), 1.0), Numbers(given->size(), 0.0)};
    for (std::size_t i = 0; i < given->size(); ++i) {
      const double value = (*given)[i];
      if (operation == Operation::kMultiply) affine.scale[i] = value;
      if (operation == Operation::kDivide) affine.scale[i] = 1 / value;
      if (operation == Operation::kAdd) affine.shift[i] = value;
      if (operation == Operation::kSubtract) affine.shift[i] = -value;
    }
    return affine;
  }
  return std::nullopt;
}

template <Operation kOperation>
bool absorb_constant(Local& local, Node& node) {
  const auto affine = affine_of(local, node, kOperation);
  return affine && absorb(local, node, affine->layer, affine->scale, affine->shift);
}

bool absorb_batch_norm(Local& local, Node& node) {
  if (node.out.size() != 1 || int_attribute(node, "training_mode", 0) != 0) return false;
  const auto layer = layer_of(local, node.in[0]);
  if (!layer || layer->node->op == "MatMul" || layer->channel_axis != 1) return false;
  const auto scale = numbers(local, node.in[1]), offset = numbers(local, node.in[2]),
             mean = numbers(local, node.in[3]), variance = numbers(local, node.in[4]);
  const auto channels = static_cast<std::size_t>(layer->channels);
  for (const auto* part : {&scale, &offset, &mean, &variance}) {
    if (!*part || (*part)->size() != channels) return false;
  }
  const double epsilon = float_attribute(node, "epsilon", 1e-5F);
  Numbers factor, shift;
  for (std::size_t i = 0; i < channels; ++i) {
    factor.push_back((*scale)[i] / std::sqrt((*variance)[i] + epsilon));
    shift.push_back((*offset)[i] - (*mean)[i] * factor[i]);
  }
  return absorb(local, node, *layer, factor, shift);
}

// --- Pad in front of Conv

bool pads_itself(Local& local, Node& node) {
  const Node* pad = local.producer(node.in[0], "Pad");
  if (pad == nullptr || text_attribute(*pad, "mode", "constant") != "constant") return false;
  const std::string_view auto_pad = text_attribute(node, "auto_pad", "NOTSET");
  if ((auto_pad != "NOTSET" && auto_pad != "VALID") || pad->in.size() > 3) return false;
  if (pad->in.size() > 2 && pad->in[2] != onnx::kAbsent && local.uniform(pad->in[2]) != 0.0) {
    return false;
  }
  const auto added = local.ints(pad->in[1]);
  const Dims* shape = local.shape(pad->in[0]);
  if (!added || !shape || shape->size() < 3 || added->size() != 2 * shape->size()) return false;
  const std::size_t rank = shape->size(), spatial = rank - 2;
  Ints pads(2 * spatial, 0);
  if (const auto given = ints_attribute(node, "pads"); given && auto_pad == "NOTSET") pads = *given;
  if (pads.size() != 2 * spatial) return false;
  for (std::size_t i = 0; i < 2 * rank; ++i) {
    const std::size_t axis = i % rank;
    if ((*added)[i] < 0 || (axis < 2 && (*added)[i] != 0)) return false;
    if (axis >= 2) pads[i / rank * spatial + axis - 2] += (*added)[i];
  }
  node.in[0] = pad->in[0];
  remove_attribute(node, "auto_pad");
  set_attribute(node, {"pads", pads});
  return true;
}

// --- products of constants

// (x * a) * b = x * (a * b), where the product of a and b is an ordinary number.
bool multiplies_once(Local& local, Node& node) {
  for (std::size_t side : {0u, 1u}) {
    const Node* inner = local.producer(node.in[side], "Mul");
    const auto outer_scale = local.uniform(node.in[1 - side]);
    if (inner == nullptr || !outer_scale || !local.is_used_once(node.in[side])) continue;
    const Initializer* constant = local.constant(node.in[1 - side]);
    const DType dtype = constant->view.base.dtype;
    if (dtype != DType::kF32 && dtype != DType::kF64) continue;
    for (std::size_t other : {0u, 1u}) {
      const auto scale = local.uniform(inner->in[other]);
      if (!scale || !local.same_type(inner->in[1 - other], node.out[0])) continue;
      const double product = *scale * *outer_scale;
      if (!(std::fabs(product) > 1e-30) || !(std::fabs(product) < 1e30)) continue;
      node.in = {inner->in[1 - other], local.add_constant(scalar(dtype, product))};
      return true;
    }
  }
  return false;
}

constexpr LocalRule kScales[] = {
    {"Add", absorb_constant<Operation::kAdd>},
    {"BatchNormalization", absorb_batch_norm},
    {"Conv", pads_itself},
    {"Div", absorb_constant<Operation::kDivide>},
    {"Mul", absorb_constant<Operation::kMultiply>},
    {"Mul", multiplies_once},
    {"Sub", absorb_constant<Operation::kSubtract>},
};
static_assert(std::ranges::is_sorted(kScales, {}, &LocalRule::op));

}  // namespace

std::size_t absorb_scales(onnx::Model& model) { return apply_rules(model, kScales); }

}  // namespace jaxport::pass
