// SPDX-License-Identifier: Apache-2.0
#include "explore/cost.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace jaxport::explore {
namespace {

using onnx::Node;
using onnx::ValueId;

// What copies, reads or names data and computes no number of it.
constexpr std::array<std::string_view, 29> kMoves = {
    "Cast",         "CastLike", "Compress",  "Concat",    "Constant", "ConstantOfShape",
    "DepthToSpace", "Expand",   "EyeLike",   "Flatten",   "Gather",   "GatherElements",
    "GatherND",     "Identity", "If",        "Loop",      "Pad",      "Range",
    "Reshape",      "Scan",     "ScatterND", "Shape",     "Size",     "Slice",
    "SpaceToDepth", "Split",    "Squeeze",   "Transpose", "Unsqueeze"};
static_assert(std::ranges::is_sorted(kMoves));

std::int64_t int_attr(const Node& node, std::string_view name, std::int64_t otherwise) {
  const onnx::Attribute* attr = node.attr(name);
  const auto* value = attr ? std::get_if<std::int64_t>(&attr->value) : nullptr;
  return value ? *value : otherwise;
}

bool has(const std::vector<ValueId>& ids, std::size_t i) {
  return i < ids.size() && ids[i] != onnx::kAbsent;
}

}  // namespace

Costs::Costs(const onnx::Model& model) : model_(model) {
  for (const std::string& symbol : model.dims->symbols()) ones_.emplace(symbol, 1);
}

const Dims* Costs::shape(ValueId id) const {
  const auto& type = model_.values[id].type;
  return type && type->shape ? &*type->shape : nullptr;
}

std::int64_t Costs::size(const Dim& dim) const {
  return dim.is_static() ? dim.value() : std::max<std::int64_t>(evaluate(dim, ones_), 0);
}

std::int64_t Costs::size(ValueId id, std::size_t axis) const {
  const Dims* dims = shape(id);
  return dims && axis < dims->size() ? size((*dims)[axis]) : 0;
}

std::int64_t Costs::size_from_end(ValueId id, std::size_t axis) const {
  const Dims* dims = shape(id);
  return dims && axis <= dims->size() ? size((*dims)[dims->size() - axis]) : 0;
}

std::int64_t Costs::elements(ValueId id) const {
  const Dims* dims = shape(id);
  if (!dims) return 0;
  std::int64_t product = 1;
  for (const Dim& dim : *dims) {
    // A hostile file may declare any sizes.
    if (__builtin_mul_overflow(product, size(dim), &product)) return 0;
  }
  return product;
}

std::int64_t Costs::bytes(ValueId id) const {
  const auto& type = model_.values[id].type;
  return type ? (elements(id) * bit_width(type->dtype) + 7) / 8 : 0;
}

// Multiplications of matrices and windows; 0 for every other op.
std::int64_t Costs::products(const Node& node) const {
  if (!has(node.in, 1) || !has(node.out, 0)) return 0;
  const ValueId lhs = node.in[0], rhs = node.in[1];
  const std::int64_t results = elements(node.out[0]);
  if (node.op == "MatMul") return results * size_from_end(lhs, 1);
  if (node.op == "Gemm") return results * size(lhs, int_attr(node, "transA", 0) == 0 ? 1 : 0);
  if (node.op == "Conv") return results * (elements(rhs) / std::max<std::int64_t>(size(rhs, 0), 1));
  if (node.op == "ConvTranspose")
    return elements(lhs) * (elements(rhs) / std::max<std::int64_t>(size(rhs, 0), 1));
  if (node.op == "Attention" && has(node.in, 2)) {
    // Scores and weighted values: each query meets each key. In 3 dims heads are a part of the
    // last.
    const std::int64_t keys = size_from_end(rhs, 2);
    return elements(lhs) * keys + results * keys;
  }
  if (node.op == "LSTM" || node.op == "GRU" || node.op == "RNN")
    return size(lhs, 0) * size(lhs, 1) *
           (elements(rhs) + (has(node.in, 2) ? elements(node.in[2]) : 0));
  return 0;
}

std::int64_t Costs::flops(const Node& node) const {
  if (const std::int64_t count = products(node)) return 2 * count;
  if (std::ranges::binary_search(kMoves, node.op)) return 0;
  std::int64_t largest = 0;  // a reduction computes with what it reads
  for (ValueId id : node.out) {
    if (id != onnx::kAbsent) largest = std::max(largest, elements(id));
  }
  if (has(node.in, 0)) largest = std::max(largest, elements(node.in[0]));
  return largest;
}

}  // namespace jaxport::explore
