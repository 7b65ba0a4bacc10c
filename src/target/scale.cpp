// SPDX-License-Identifier: Apache-2.0
#include "target/scale.h"

#include <algorithm>
#include <utility>

#include "onnx/builder.h"
#include "onnx/walk.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;

bool is_f64(const Model& model, onnx::ValueId id) {
  return id != onnx::kAbsent && model.values[id].type &&
         model.values[id].type->dtype == DType::kF64;
}

bool has_f64_matmul(const Model& model) {
  bool found = false;
  onnx::for_each_graph(model.graph, [&](const Graph& graph) {
    found = found || std::ranges::any_of(graph.nodes, [&](const Node& node) {
              return node.op == "MatMul" && is_f64(model, node.out[0]);
            });
  });
  return found;
}

bool fits_f32(double value) { return static_cast<double>(static_cast<float>(value)) == value; }

class Keeper {
 public:
  explicit Keeper(Model& model) : model_(model) {}

  void rewrite(Graph& graph, Builder& op) {
    for (Node& node : std::exchange(graph.nodes, {})) {
      onnx::for_each_subgraph(node, [&](Graph& inner) {
        Builder inner_op(op, inner);
        rewrite(inner, inner_op);
      });
      if (const auto at = lossy_scale(op, node)) {
        op.set_origin(model_.origins[node.origin]);
        node.in[*at] = repeated(op, node.in[*at], node.in[1 - *at]).id();
      }
      graph.nodes.push_back(std::move(node));
    }
  }

 private:
  // The operand of a product that is a constant of one element which f32 would round.
  std::optional<std::size_t> lossy_scale(const Builder& op, const Node& node) const {
    const bool divides = node.op == "Div";
    if ((!divides && node.op != "Mul") || !is_f64(model_, node.out[0])) return std::nullopt;
    for (std::size_t i = divides ? 1 : 0; i < 2; ++i) {
      const Tensor* constant = op.known(Value(&op, node.in[i]));
      if (!constant || constant->size() != 1) continue;
      const double value = constant->at(0);
      if (!fits_f32(value) || (divides && !fits_f32(1 / value))) return i;
    }
    return std::nullopt;
  }

  // The constant as often as the last dim of the product that is no unit dim is long.
  Value repeated(Builder& op, onnx::ValueId constant, onnx::ValueId other) const {
    const Tensor element = scalar(DType::kF64, op.known(Value(&op, constant))->at(0));
    const Dims& dims = *model_.values[other].type->shape;
    const auto is_unit = [](const Dim& dim) { return dim == Dim(1); };
    const auto last = std::ranges::find_if_not(dims.rbegin(), dims.rend(), is_unit);
    if (last == dims.rend()) return Value(&op, constant);
    const auto units = static_cast<std::size_t>(last - dims.rbegin());
    if (last->is_static()) {
      Shape shape(units + 1, 1);
      shape[0] = last->value();
      return op.weight({element, 0, shape, Shape(units + 1, 0)}, shape, "");
    }
    const onnx::Args start{{"start", -static_cast<std::int64_t>(units) - 1}};
    const Value size = op.Shape(Value(&op, other), start);
    Dims shape(dims.end() - static_cast<std::ptrdiff_t>(units) - 1, dims.end());
    return op.call_with_shape("Expand", {op.constant(element), size}, {}, std::move(shape));
  }

  Model& model_;
};

}  // namespace

void keep_scales(Model& model) {
  if (!has_f64_matmul(model)) return;
  Builder op(model, static_cast<int>(model.opset()), onnx::DTypeRule::kAny);
  Keeper(model).rewrite(model.graph, op);
}

}  // namespace jaxport::target
