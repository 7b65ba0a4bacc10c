// SPDX-License-Identifier: Apache-2.0
#include "target/version_fault.h"

#include <algorithm>

#include "onnx/schema.h"
#include "target/average_pool.h"
#include "target/f64_transpose.h"
#include "target/one_element_norm.h"

namespace jaxport::target {
namespace {

using onnx::Node;

bool is_op(const Node& node, std::string_view op) { return node.domain.empty() && node.op == op; }

std::int64_t integer(const Node& node, std::string_view name) {
  const onnx::Attribute* attribute = node.attr(name);
  const auto* value = attribute ? std::get_if<std::int64_t>(&attribute->value) : nullptr;
  return value ? *value : 0;
}

// A Transpose that is moved to a MatMul from further away is not seen.
bool multiplies_transposed_f64(const NodeInModel& place) {
  if (!is_op(place.node, "MatMul")) return false;
  return std::ranges::any_of(place.node.in, [&](onnx::ValueId id) {
    const Node* maker = id < place.makers.size() ? place.makers[id] : nullptr;
    const auto& type = place.model.values[id].type;
    return maker && is_op(*maker, "Transpose") && type && type->dtype == DType::kF64;
  });
}

bool normalises_one(const NodeInModel& place) { return is_norm_of_one(place.model, place.node); }

bool miscounts_padding(const NodeInModel& place) { return is_padding_miscounted(place.node); }

bool counts_beyond_padding(const NodeInModel& place) {
  return is_op(place.node, "AveragePool") && integer(place.node, "ceil_mode") != 0 &&
         integer(place.node, "count_include_pad") != 0;
}

bool rotates_part_of_heads(const NodeInModel& place) {
  return is_op(place.node, "RotaryEmbedding") && integer(place.node, "rotary_embedding_dim") > 0 &&
         integer(place.node, "num_heads") == 0;
}

constexpr VersionFault kFaults[] = {
    {.first = 117,
     .last = 125,
     .first_opset = 0,
     .last_opset = onnx::kNewestOpset,
     .is_met = multiplies_transposed_f64,
     .what = "Transpose and MatMul of f64 are merged into FusedMatMul, which has no kernel",
     .instead = "put the Transpose between two Reshapes that change the rank",
     .loads = false,
     .avoid = keep_f64_transposes},
    {.first = 121,
     .last = 123,
     .first_opset = 17,
     .last_opset = onnx::kNewestOpset,
     .is_met = normalises_one,
     .what = "LayerNormalization over one element is refused",
     .instead = "write (x - x) * scale + bias",
     .loads = false,
     .avoid = guard_norms_of_one},
    {.first = 121,
     .last = 124,
     .first_opset = 19,
     .last_opset = onnx::kNewestOpset,
     .is_met = miscounts_padding,
     .what = "AveragePool takes another size for the padding at the end",
     .instead = "put a Pad in front",
     .loads = true,
     .avoid = pad_before_averaging},
    {.first = 117,
     .last = 120,
     .first_opset = 19,
     .last_opset = onnx::kNewestOpset,
     .is_met = counts_beyond_padding,
     .what = "AveragePool counts what lies beyond the padding, by ceil_mode",
     .instead = "put a Pad in front that ceil_mode does not exceed",
     .loads = true},
    {.first = 117,
     .last = 128,
     .first_opset = 0,
     .last_opset = 18,
     .is_met = counts_beyond_padding,
     .what = "AveragePool counts what lies beyond the padding, by ceil_mode",
     .instead = "put a Pad in front that ceil_mode does not exceed",
     .loads = true},
    // Ours have both attributes, for every target (lower/macro/rope.cpp).
    {.first = 123,
     .last = 123,
     .first_opset = 23,
     .last_opset = onnx::kNewestOpset,
     .is_met = rotates_part_of_heads,
     .what = "RotaryEmbedding with rotary_embedding_dim and without num_heads is refused",
     .instead = "give num_heads, too",
     .loads = false},
};

}  // namespace

std::span<const VersionFault> version_faults() { return kFaults; }

}  // namespace jaxport::target
