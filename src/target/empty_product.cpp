// SPDX-License-Identifier: Apache-2.0
#include "target/empty_product.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>
#include <vector>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "onnx/subgraph.h"
#include "target/every_graph.h"
#include "target/scale.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::Value;
using onnx::ValueId;
using onnx::Values;

// Empty when it is not given.
Ints order_of(const Node& transpose) { return ints_attribute(transpose, "perm").value_or(Ints{}); }

// [1, 2, …, n - 2] and then 0 and n - 1 in either order.
bool moves_first_dim_into_matrices(const Node& node) {
  if (node.op != "Transpose") return false;
  const Ints order = order_of(node);
  const auto batch = static_cast<std::int64_t>(order.size()) - 2;
  const auto is_next = [&](std::int64_t i) { return order[i] == i + 1; };
  return batch > 0 && std::ranges::all_of(std::views::iota(std::int64_t{0}, batch), is_next);
}

// The nodes from such a Transpose to an operand of a product that are merged with it, the last
// first; empty when there is none.
using Way = std::vector<Node>;

class Guard {
 public:
  Guard(Model& model, Graph& graph, Builder& op) : model_(model), graph_(graph), op_(op) {
    for (const Node& node : graph.nodes) {
      if (is_merged(node)) producers_.emplace(node.out[0], node);
    }
  }

  bool rewrite() {
    const auto is_guarded = [&](const Node& node) {
      return node.op == "MatMul" &&
             (sums_nothing(node) || !merged(node, 0).empty() || !merged(node, 1).empty());
    };
    if (std::ranges::none_of(graph_.nodes, is_guarded)) return false;
    for (Node& node : std::exchange(graph_.nodes, {})) {
      if (is_guarded(node)) {
        guard(node);
      } else {
        graph_.nodes.push_back(std::move(node));
      }
    }
    return true;
  }

 private:
  const Dims& shape(ValueId id) const { return Value(&op_, id).shape(); }
  DType dtype(ValueId id) const { return model_.values[id].type->dtype; }

  bool is_merged(const Node& node) const {
    return node.op == "Cast" || moves_first_dim_into_matrices(node) || scale_operand(op_, node);
  }
  ValueId operand_of(const Node& node) const {
    const auto scale = scale_operand(op_, node);
    return node.in[scale ? 1 - *scale : 0];
  }

  Way way_to(ValueId id) const {
    Way way;
    for (auto it = producers_.find(id); it != producers_.end(); it = producers_.find(id)) {
      way.push_back(it->second);
      id = operand_of(it->second);
      if (it->second.op != "Transpose") continue;
      return onnx::can_be_zero(shape(id).front()) ? way : Way{};
    }
    return {};
  }
  Way merged(const Node& product, std::size_t i) const {
    const bool is_batched = shape(product.in[0]).size() == shape(product.in[1]).size();
    return is_batched ? way_to(product.in[i]) : Way{};
  }

  // Whether the product may have several matrices whose sums have no terms. There are none of them
  // where one of its own sizes is a multiple of the number of terms.
  bool sums_nothing(const Node& product) const {
    const DType type = dtype(product.out[0]);
    const Dims& result = shape(product.out[0]);
    if ((type != DType::kF32 && type != DType::kF64) || result.size() < 3) return false;
    const Dim& terms = shape(product.in[0]).back();
    const auto is_one = [](const Dim& size) { return size == Dim(1); };
    const auto vanishes = [&](const Dim& size) { return exact_div(size, terms).has_value(); };
    return onnx::can_be_zero(terms) && std::ranges::none_of(result, vanishes) &&
           !std::all_of(result.begin(), result.end() - 2, is_one);
  }

  void guard(const Node& product) {
    op_.set_origin(model_.origins[product.origin]);
    const Way ways[] = {merged(product, 0), merged(product, 1)};
    const bool pads = sums_nothing(product);
    const auto build = [&](bool is_empty) {
      return [&, is_empty](Builder& op) -> Values {
        Value operands[2];
        for (std::size_t i = 0; i < 2; ++i) {
          operands[i] = ways[i].empty() ? Value(&op, product.in[i]) : again(op, ways[i], !is_empty);
          if (is_empty && pads) operands[i] = with_a_zero(op, operands[i], i);
        }
        return {op.MatMul(operands[0], operands[1])};
      };
    };
    onnx::unless_zero(op_, smallest(product, ways), build(false), build(true));
    graph_.nodes.back().out = product.out;
  }

  // The least of the sizes that must not be 0: what is summed over, and the first dims of what the
  // Transposes are given.
  Value smallest(const Node& product, const Way (&ways)[2]) {
    Values sizes;
    const auto add = [&](ValueId id, std::int64_t dim) {
      onnx::Args range{{"start", dim}};
      if (dim == 0) range.emplace_back("end", 1);
      const Value size = op_.Shape(Value(&op_, id), range);
      if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
    };
    for (const Way& way : ways) {
      if (!way.empty()) add(operand_of(way.back()), 0);
    }
    if (sums_nothing(product)) add(product.in[0], -1);
    return sizes.size() == 1 ? sizes[0] : op_.Min(sizes);
  }

  // Operand `i` of a product with one term more in each sum, which is 0.
  static Value with_a_zero(Builder& op, Value operand, std::size_t i) {
    const std::size_t rank = operand.shape().size();
    std::vector<std::int64_t> pads(2 * rank, 0);
    pads[2 * rank - (i == 0 || rank == 1 ? 1 : 2)] = 1;
    return op.Pad(operand, op.ints(pads));
  }

  // The nodes of the way once more. A Transpose of one more dim is not merged.
  Value again(Builder& op, const Way& way, bool merges) const {
    Value value(&op, operand_of(way.back()));
    for (const Node& node : way | std::views::reverse) {
      if (node.op == "Cast") {
        value = cast(value, dtype(node.out[0]));
      } else if (node.op != "Transpose") {
        const std::size_t at = *scale_operand(op_, node);
        Values operands{value, value};
        operands[at] = Value(&op, node.in[at]);
        value = op.call(node.op, operands);
      } else if (merges) {
        value = op.Transpose(value, onnx::Args{{"perm", order_of(node)}});
      } else {
        std::vector<std::int64_t> order{0};
        for (std::int64_t i : order_of(node)) order.push_back(i + 1);
        const Value more = op.Unsqueeze(value, op.ints({0}));
        value = op.Squeeze(op.Transpose(more, onnx::Args{{"perm", order}}), op.ints({0}));
      }
    }
    return value;
  }

  Model& model_;
  Graph& graph_;
  Builder& op_;
  std::map<ValueId, Node> producers_;
};

}  // namespace

bool guard_empty_products(Model& model) {
  return rewrite_every_graph(
      model, [&](Graph& graph, Builder& op) { return Guard(model, graph, op).rewrite(); });
}

}  // namespace jaxport::target
