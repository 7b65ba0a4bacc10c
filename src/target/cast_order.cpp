// SPDX-License-Identifier: Apache-2.0
#include "target/cast_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "onnx/subgraph.h"
#include "onnx/walk.h"
#include "target/every_graph.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;
using onnx::ValueId;

std::size_t rank(const Model& model, ValueId id) {
  const auto& type = model.values[id].type;
  return type && type->shape ? type->shape->size() : 0;
}

// What the fusion takes for a product over batches whose matrices the first dim belongs to.
bool moves_first_dim(const Node& node) {
  const auto order = ints_attribute(node, "perm");
  return order && order->size() > 2 && (*order)[0] == 1;
}

class Mover {
 public:
  explicit Mover(Model& model) : model_(model), is_border_(function_borders(model)) {
    onnx::for_each_graph(model.graph, [this](const Graph& graph) {
      for (const Node& node : graph.nodes) {
        has_cast_behind_ |= node.op == "Cast" && is_border(node.in[0]);
      }
    });
  }

  bool rewrite(Graph& graph, Builder& op) const {
    std::map<ValueId, Node> transposes;  // by result
    std::set<ValueId> factors;           // of MatMuls whose operands differ in rank
    for (const Node& node : graph.nodes) {
      if (node.op == "Transpose" && moves_first_dim(node)) transposes.emplace(node.out[0], node);
      if (node.op != "MatMul" || rank(model_, node.in[0]) == rank(model_, node.in[1])) continue;
      factors.insert({node.in[0], node.in[1]});
    }
    const auto crashes = [&](const Node& node) {
      return node.op == "Cast" && transposes.contains(node.in[0]) &&
             (factors.contains(node.out[0]) || is_border(node.out[0]));
    };
    const auto is_rewritten = [&](const Node& node) { return crashes(node) || may_crash(node); };
    if (std::ranges::none_of(graph.nodes, is_rewritten)) return false;
    for (Node& node : std::exchange(graph.nodes, {})) {
      if (crashes(node)) exchange(op, node, transposes.at(node.in[0]));
      if (may_crash(node)) {
        keep_apart(graph, op, node);
      } else {
        graph.nodes.push_back(std::move(node));
      }
    }
    return true;
  }

 private:
  bool is_border(ValueId id) const { return id < is_border_.size() && is_border_[id]; }

  // Whether what the Transpose is merged with may stand behind a border: a Cast, or a product that
  // has no elements (empty_product.h).
  bool may_crash(const Node& node) const {
    return node.op == "Transpose" && moves_first_dim(node) && is_border(node.out[0]) &&
           (has_cast_behind_ || onnx::can_be_zero(model_.values[node.in[0]].type->shape->front()));
  }

  // Makes the Cast of a Transpose a Transpose of a Cast.
  void exchange(Builder& op, Node& cast, const Node& transpose) const {
    op.set_origin(model_.origins[cast.origin]);
    const DType dtype = model_.values[cast.out[0]].type->dtype;
    cast.in = {onnx::cast(Value(&op, transpose.in[0]), dtype).id()};
    cast.op = transpose.op;
    cast.attrs = transpose.attrs;
  }

  // A Transpose of one more dim is not merged.
  void keep_apart(Graph& graph, Builder& op, const Node& transpose) const {
    op.set_origin(model_.origins[transpose.origin]);
    Ints order = ints_attribute(transpose, "perm").value_or(Ints{});
    for (std::int64_t& axis : order) ++axis;
    order.insert(order.begin(), 0);
    const Value more = op.Unsqueeze(Value(&op, transpose.in[0]), op.ints({0}));
    op.Squeeze(op.Transpose(more, onnx::Args{{"perm", order}}), op.ints({0}));
    graph.nodes.back().out = transpose.out;
  }

  Model& model_;
  std::vector<bool> is_border_;   // of a function, by value
  bool has_cast_behind_ = false;  // some border
};

}  // namespace

bool cast_before_transposing(Model& model) {
  const Mover mover(model);
  return rewrite_every_graph(model,
                             [&](Graph& graph, Builder& op) { return mover.rewrite(graph, op); });
}

}  // namespace jaxport::target
