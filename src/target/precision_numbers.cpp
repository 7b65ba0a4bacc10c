// SPDX-License-Identifier: Apache-2.0
#include "target/precision_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "onnx/walk.h"
#include "target/borders.h"
#include "target/precision_ops.h"

namespace jaxport::target {
namespace {

using onnx::Graph;
using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

struct Extent {
  bool has_large = false;
  float largest = 0;  // of what is not large
};

// Whole numbers up to 2048 (f16) and 256 (bf16) are exact; beyond them only some numbers are.
bool is_large_number(float magnitude, DType half) {
  const float exact = std::ldexp(1.0F, mantissa_bits(half) + 1);
  return magnitude > exact && std::isfinite(magnitude) && rounded_to(half, magnitude) != magnitude;
}

Extent extent_of(const StridedView& view, DType half) {
  Extent extent;
  for_each_chunk(view, [&](std::span<const std::byte> chunk) {
    for (std::size_t at = 0; at < chunk.size(); at += sizeof(float)) {
      float value;
      std::memcpy(&value, chunk.data() + at, sizeof(float));
      const float magnitude = std::abs(value);
      extent.has_large |= is_large_number(magnitude, half);
      if (magnitude > extent.largest) extent.largest = magnitude;
    }
  });
  return extent;
}

float smallest_normal(DType half) { return half == DType::kF16 ? 0x1p-14F : 0x1p-126F; }

}  // namespace

Numbers::Numbers(const onnx::Model& model, DType half)
    : model_(model), half_(half), is_large_(model.values.size()) {
  onnx::for_each_graph(model.graph, [this](const Graph& graph) {
    for (const onnx::Initializer& constant : graph.initializers) {
      if (constant.view.base.dtype != DType::kF32) continue;
      const Extent extent = extent_of(constant.view, half_);
      const bool is_tiny = extent.largest > 0 && extent.largest < smallest_normal(half_);
      is_large_[constant.value] = extent.has_large;
      unsorted_fits_[constant.value] = !extent.has_large && !is_tiny;
    }
  });
  while (visit(model.graph)) continue;  // what loops carry
}

bool Numbers::fits(ValueId constant) const {
  const auto found = unsorted_fits_.find(constant);
  return found != unsorted_fits_.end() && found->second;
}

bool Numbers::is_f32(ValueId id) const {
  return id != kAbsent && model_.values[id].type && model_.values[id].type->dtype == DType::kF32;
}

bool Numbers::mark(ValueId id) {
  if (!is_f32(id) || is_large_[id]) return false;
  is_large_[id] = true;
  return true;
}

bool Numbers::visit(const Graph& graph) {
  bool changed = false;
  for (const Node& node : graph.nodes) changed |= visit(node);
  return changed;
}

bool Numbers::visit(const Node& node) {
  bool changed = false;
  const auto pass_on = [&](ValueId from, ValueId to) {
    if (from != kAbsent && to != kAbsent && is_large_[from]) changed |= mark(to);
  };
  const std::vector<Border> all = borders(node);
  for (const Border& border : all) {
    for (std::size_t i = 0; i < border.body->inputs.size(); ++i) {
      pass_on(border.given(i), border.body->inputs[i]);
    }
    changed |= visit(*border.body);
    for (std::size_t i = 0; i < border.body->outputs.size(); ++i) {
      pass_on(border.body->outputs[i], border.result_of(i));
      pass_on(border.body->outputs[i], border.carried(i));
    }
  }
  if (all.empty() && has_large_operand(node)) {
    for (ValueId id : node.out) changed |= mark(id);
  }
  return changed;
}

bool Numbers::has_large_operand(const Node& node) const {
  if (!node.domain.empty() || half_conduct(node).is_bounded) return false;
  if (node.op == "Cast") {
    const auto& type = model_.values[node.in[0]].type;
    if (type && is_integer(type->dtype) && bit_width(type->dtype) > 8) return true;
  }
  const auto is_large = [this](ValueId id) { return is_f32(id) && is_large_[id]; };
  if (node.op == "Div") return is_large(node.in[0]);
  return std::ranges::any_of(node.in, is_large);
}

}  // namespace jaxport::target
