// SPDX-License-Identifier: Apache-2.0
// Bits, for all integers of a model. lower/rewrite/range.cpp has exact bounds, which may be
// symbolic, for the few indices that lowering asks about, in a graph where the nodes seen here do
// not exist yet.
#include "target/magnitude.h"

#include <algorithm>
#include <bit>

#include "onnx/check.h"
#include "onnx/equal.h"
#include "onnx/walk.h"
#include "target/conduct.h"

namespace jaxport::target {
namespace {

using onnx::Node;
using onnx::ValueId;

constexpr int kUnknown = 65;
constexpr int kSizeBits = 29;  // no tensor has that many elements along an axis

int bits_of_constant(const onnx::Initializer& constant) {
  const DType dtype = constant.view.base.dtype;
  if (!onnx::is_small(dtype, constant.view.size())) return value_bits(dtype);
  const Tensor content = materialise(constant.view);
  int bits = 0;
  for (std::int64_t i = 0; i < content.size(); ++i) {
    const std::int64_t value = content.int_at(i);
    const bool is_negative = value < 0 && dtype != DType::kU64;
    bits = std::max(
        bits,
        static_cast<int>(std::bit_width(static_cast<std::uint64_t>(is_negative ? ~value : value))));
  }
  return bits;
}

// Results that count or place elements.
bool is_size(const Node& node) {
  constexpr std::string_view kOps[] = {"ArgMax", "ArgMin", "NonZero", "Shape", "Size"};
  return std::ranges::binary_search(kOps, node.op);
}

}  // namespace

int value_bits(DType dtype) {
  if (dtype == DType::kBool) return 1;
  return is_integer(dtype) ? bit_width(dtype) - (is_signed(dtype) ? 1 : 0) : kUnknown;
}

Magnitudes::Magnitudes(const onnx::Model& model) : model_(model) {
  bits_.reserve(model.values.size());
  for (const onnx::ValueInfo& info : model.values) {
    bits_.push_back(info.type ? value_bits(info.type->dtype) : kUnknown);
  }
  visit(model.graph);
}

void Magnitudes::visit(const onnx::Graph& graph) {
  for (const onnx::Initializer& constant : graph.initializers) {
    if (is_integer(constant.view.base.dtype)) bits_[constant.value] = bits_of_constant(constant);
  }
  for (const Node& node : graph.nodes) {
    onnx::for_each_subgraph(node, [this](const onnx::Graph& inner) { visit(inner); });
    if (!node.domain.empty() || node.out.empty() || node.out[0] == onnx::kAbsent) continue;
    int& bits = bits_[node.out[0]];
    if (bits < kUnknown) bits = std::min(bits, bits_of(node));
    if (node.op == "TopK") bits_[node.out[1]] = kSizeBits;
  }
}

int Magnitudes::bits_of(const Node& node) const {
  const auto in = [&](std::size_t i) { return bits(node.in[i]); };
  if (is_size(node)) return kSizeBits;
  if (node.op == "Cast") return in(0);
  if (node.op == "Abs" || node.op == "Neg") return in(0) + 1;
  if (node.op == "Add" || node.op == "Sub") return std::max(in(0), in(1)) + 1;
  if (node.op == "Mul") return in(0) + in(1);
  if (node.op == "Mod") return in(1);
  if (node.op == "Range") return std::max(in(0), in(1));
  const Conduct conduct = conduct_of(node.op).integers;
  if (conduct != Conduct::kCopies && conduct != Conduct::kOrders) return kUnknown;
  const onnx::Schema& schema = onnx::require_schema(node.op, static_cast<int>(model_.opset()));
  int bits = 0;
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    const bool is_data = onnx::formal_at(schema.inputs, i).type == schema.outputs[0].type;
    if (is_data && node.in[i] != onnx::kAbsent) bits = std::max(bits, in(i));
  }
  return bits;
}

}  // namespace jaxport::target
