// SPDX-License-Identifier: Apache-2.0
#include "target/scale.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "onnx/expr.h"
#include "target/every_graph.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::kAbsent;
using onnx::Model;
using onnx::Node;
using onnx::Value;
using onnx::ValueId;

// Scales within 2^-20 and 2^20 do not leave the range of f32 before six of them meet.
constexpr int kLargestExponent = 20;

// The dtypes in which ONNX Runtime merges scales on the CPU.
bool is_merged_dtype(const Model& model, ValueId id) {
  if (id == kAbsent || !model.values[id].type) return false;
  const DType dtype = model.values[id].type->dtype;
  return dtype == DType::kF32 || dtype == DType::kF64;
}

bool has_matmul(const Graph& graph, const Model& model) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return node.op == "MatMul" && is_merged_dtype(model, node.out[0]);
  });
}

// alpha stands for the factor: it is no extreme one, and of f64 a power of two.
bool fits_alpha(double factor, DType dtype) {
  int exponent = 0;
  const double mantissa = std::frexp(std::abs(factor), &exponent);
  if (!std::isfinite(factor) || factor == 0 || std::abs(exponent) > kLargestExponent) return false;
  return dtype == DType::kF32 || mantissa == 0.5;
}

// A product with a constant of one element.
struct Scale {
  std::size_t at;  // the operand that is the constant
  bool fits_alpha;
};

class Keeper {
 public:
  explicit Keeper(Model& model) : model_(model), is_border_(function_borders(model)) {}

  bool rewrite(Graph& graph, Builder& op) const {
    if (is_border_.empty() && !has_matmul(graph, model_)) return false;
    const std::vector<bool> is_kept = kept_apart(graph, op);
    if (std::ranges::find(is_kept, true) == is_kept.end()) return false;
    std::vector<Node> nodes = std::exchange(graph.nodes, {});
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Node& node = nodes[i];
      if (is_kept[i]) keep_apart(op, node);
      graph.nodes.push_back(std::move(node));
    }
    return true;
  }

 private:
  std::optional<Scale> scale_of(const Builder& op, const Node& node) const {
    const auto at = scale_operand(op, node);
    if (!at || !is_merged_dtype(model_, node.out[0])) return std::nullopt;
    const double factor = op.known(node.in[*at])->at(0);
    return Scale{*at, fits_alpha(factor, model_.values[node.out[0]].type->dtype)};
  }

  // By node: a scale that must not be merged. Backwards, so that the ways to products are known:
  // bit n of a value says that n scales lie on some way from it to a MatMul.
  std::vector<bool> kept_apart(const Graph& graph, const Builder& op) const {
    std::vector<bool> is_kept(graph.nodes.size()), is_product(model_.values.size());
    std::vector<std::uint32_t> ways(model_.values.size());
    for (std::size_t id = 0; id < is_border_.size(); ++id) {  // a product may be on the other side
      is_product[id] = is_border_[id];
      ways[id] = is_border_[id];
    }
    for (const Node& node : graph.nodes) {
      if (node.op == "MatMul") is_product[node.out[0]] = true;
      const auto scale = scale_of(op, node);
      const bool is_merged = scale && scale->fits_alpha && is_product[node.in[1 - scale->at]];
      if (is_merged) is_product[node.out[0]] = true;  // the scale behind it is beside the product
    }
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = graph.nodes[i];
      const bool is_matmul = node.op == "MatMul" && is_merged_dtype(model_, node.out[0]);
      if (is_matmul) ways[node.in[0]] |= 1, ways[node.in[1]] |= 1;
      if (node.op == "Transpose") ways[node.in[0]] |= ways[node.out[0]];  // it is merged before
      const auto scale = scale_of(op, node);
      if (!scale) continue;
      const ValueId scaled = node.in[1 - scale->at];
      const std::uint32_t below = ways[node.out[0]];
      const bool is_beside = below != 0 || is_product[scaled];
      const bool differs_by_one = (below & (below >> 1)) != 0;
      is_kept[i] = (is_beside && !scale->fits_alpha) || differs_by_one;
      if (!is_kept[i]) ways[scaled] |= below << 1;
    }
    return is_kept;
  }

  void keep_apart(Builder& op, Node& node) const {
    const std::size_t at = scale_of(op, node)->at;
    const Value scaled(&op, node.in[1 - at]);
    op.set_origin(model_.origins[node.origin]);
    if (std::ranges::all_of(scaled.shape(), is_unit)) {
      // One element cannot be repeated: -(c (-x)) has a Neg on both sides of the scale.
      node.in[1 - at] = (-scaled).id();
      const Value negative = op.call(node.op, {Value(&op, node.in[0]), Value(&op, node.in[1])});
      node.op = "Neg";
      node.in = {negative.id()};
    } else {
      node.in[at] = repeated(op, node.in[at], scaled).id();
    }
  }

  static bool is_unit(const Dim& dim) { return dim == Dim(1); }

  // The constant as often as the last dim of the product that is no unit dim is long.
  Value repeated(Builder& op, ValueId constant, const Value& other) const {
    const Tensor element = scalar(model_.values[constant].type->dtype, op.known(constant)->at(0));
    const Dims& dims = other.shape();
    const auto last = std::ranges::find_if_not(dims.rbegin(), dims.rend(), is_unit);
    const auto units = static_cast<std::size_t>(last - dims.rbegin());
    if (last->is_static()) {
      Shape shape(units + 1, 1);
      shape[0] = last->value();
      return op.weight({element, 0, shape, Shape(units + 1, 0)}, shape, "");
    }
    const onnx::Args start{{"start", -static_cast<std::int64_t>(units) - 1}};
    const Value size = op.Shape(other, start);
    Dims shape(dims.end() - static_cast<std::ptrdiff_t>(units) - 1, dims.end());
    return op.call_with_shape("Expand", {op.constant(element), size}, {}, std::move(shape));
  }

  Model& model_;
  std::vector<bool> is_border_;  // of a function, by value
};

}  // namespace

std::optional<std::size_t> scale_operand(const Builder& op, const Node& node) {
  const bool divides = node.op == "Div";
  if (!divides && node.op != "Mul") return std::nullopt;
  for (std::size_t i = divides ? 1 : 0; i < 2; ++i) {
    const Tensor* constant = op.known(node.in[i]);
    if (constant && constant->size() == 1) return i;
  }
  return std::nullopt;
}

bool keep_scales(Model& model) {
  const Keeper keeper(model);
  return rewrite_every_graph(model,
                             [&](Graph& graph, Builder& op) { return keeper.rewrite(graph, op); });
}

}  // namespace jaxport::target
