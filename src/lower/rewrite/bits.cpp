// SPDX-License-Identifier: Apache-2.0
// What programs do with bits, by arithmetic: signs of floats and rotations. ONNX has BitCast from
// opset 26 on.
#include <cmath>

#include "axis/graph/expr.h"
#include "lower/rewrite/floats.h"
#include "lower/rewrite/rewrite.h"
#include "raise/algebra/views.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Use;

constexpr std::string_view kHasSignBit = "has_sign_bit";

// x when `use` asks whether the bits of x, as a signed integer, are negative.
Use tested_for_sign(Graph& graph, const Use& use) {
  if (!use.node->is(Kind::kPointwise, "lt")) return {};
  const Use bits = graph.child(use, 0);
  if (!bits.node->is(Kind::kPointwise, "bitcast_convert_type")) return {};
  if (!is_signed(bits.node->dtype) || graph.scalar_value(graph.child(use, 1)) != 0) return {};
  const Use x = graph.child(bits, 0);
  const bool is_supported = is_float(x.node->dtype) && bit_width(x.node->dtype) >= 16;
  return is_supported && !raise::is_closed(*x.node) ? x : Use{};
}

// select(p, -y, y) is a product, which keeps the sign of 0. ONNX Runtime's Where does not.
Use signed_magnitude(Graph& graph, const Use& use) {
  if (!use.node->is(Kind::kPointwise, "select_n") || !is_float(use.node->dtype)) return {};
  const Use test = graph.child(use, 0), y = graph.child(use, 1), negated = graph.child(use, 2);
  if (!test.node->is(Kind::kPointwise, kHasSignBit) && !tested_for_sign(graph, test)) return {};
  if (!negated.node->is(Kind::kPointwise, "neg") || graph.child(negated, 0) != y) return {};
  const Use one = graph.scalar(1, y.node->dtype);
  return y * select(test, -1.0, one);
}

// The amount of a shift by a known number of bits that leaves some of them.
std::optional<int> shifted_by(Graph& graph, const Use& use, std::string_view name) {
  if (!use.node->is(Kind::kPointwise, name)) return std::nullopt;
  const auto by = graph.scalar_value(graph.child(use, 1));
  if (!by || *by < 1 || *by >= bit_width(use.node->dtype)) return std::nullopt;
  return static_cast<int>(*by);
}

}  // namespace

Use sign_test(Graph& graph, const Use& use, const Options& options) {
  const Use x = options.opset < 26 ? tested_for_sign(graph, use) : Use{};
  if (x && is_whole(graph, x)) return compared("lt", x, 0);
  return x ? graph.pointwise(kHasSignBit, {x}, DType::kBool) : signed_magnitude(graph, use);
}

Use rotation(Graph& graph, const Use& use) {
  if (!use.node->is(Kind::kPointwise, "or") || use.node->dtype != DType::kU32) return {};
  for (const std::size_t i : {0u, 1u}) {
    const Use left = graph.child(use, i), right = graph.child(use, 1 - i);
    const auto up = shifted_by(graph, left, "shift_left"),
               down = shifted_by(graph, right, "shift_right_logical");
    if (!up || !down || *up + *down < bit_width(use.node->dtype)) continue;
    return graph.child(left, 0) * std::ldexp(1, *up) + right;
  }
  return {};
}

}  // namespace jaxport::lower
