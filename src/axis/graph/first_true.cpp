// SPDX-License-Identifier: Apache-2.0
// select_n(argmax(conditions), x0, x1, …), as jnp.select has it: the case of the first condition
// that is true, x0 when none is.
#include "axis/graph/expr.h"
#include "axis/graph/parts.h"
#include "axis/graph/pattern.h"
#include "axis/graph/pointwise.h"
#include "front/params.h"

namespace jaxport::axis {
namespace {

// The conditions whose first true one an index stands for, stacked along `along`; empty when it is
// no such index. Unit dims have no axes on either side of the argmax.
Use stacked_conditions(Graph& graph, const Use& index, Label& along) {
  const Node& node = *index.node;
  if (!node.is(Kind::kPrim, "argmax") || node.edges[0].node->dtype != DType::kBool) return {};
  const Ints axes = front::ReduceParams::read(node.prim->eqn).axes;
  const Dims& shape = node.prim->in[0].shape;
  if (axes.size() != 1 || shape[axes[0]].is_one()) return {};
  Use conditions{node.edges[0].node, {}};
  auto rest = index.labels.begin();
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (static_cast<std::int64_t>(dim) == axes[0]) {
      along = graph.label(shape[dim]);
      conditions.labels.push_back({along});
    } else if (!shape[dim].is_one()) {
      conditions.labels.push_back(*rest++);
    }
  }
  if (conditions.node->kind == Kind::kRelayout) conditions = graph.child(conditions, 0);
  return conditions && conditions.node->kind == Kind::kStack ? conditions : Use{};
}

// The index in front of conversions that keep it: to integers that hold all `count` of them.
Use unconverted(Graph& graph, Use index, std::size_t count) {
  const auto holds_all = [count](DType dtype) {
    return is_integer(dtype) && bit_width(dtype) >= 8 && count <= 128;
  };
  while (holds_all(index.node->dtype) && index.node->is(Kind::kPointwise, "convert_element_type")) {
    index = graph.child(index, 0);
  }
  return index;
}

}  // namespace

Use case_of_first_true(const Call& call) {
  Graph& graph = call.graph;
  if (!is_integer(call[0].node->dtype)) return {};
  const std::size_t count = call.operands.size() - 1;
  const Use index = unconverted(graph, call[0], count);
  Label along = 0;
  const Use stack = stacked_conditions(graph, index, along);
  if (!stack || stack.node->edges.size() != count ||
      Stack::of(graph, stack).along != Labels{along}) {
    return {};
  }
  Use chosen = call[1];
  for (std::size_t i = count - 1; i > 0; --i) {
    chosen = select(graph.child(stack, i), call[i + 1], chosen);
  }
  return select(graph.child(stack, 0), call[1], chosen);
}

}  // namespace jaxport::axis
