// SPDX-License-Identifier: Apache-2.0
// select_n(argmax(conditions), x0, x1, …), as jnp.select has it: the case of the first condition
// that is true, x0 when none is.
#include "axis/graph/expr.h"
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

}  // namespace

Use case_of_first_true(const Call& call) {
  Graph& graph = call.graph;
  Use index = call[0];
  if (!is_integer(index.node->dtype)) return {};
  while (index.node->is(Kind::kPointwise, "convert_element_type")) index = graph.child(index, 0);
  Label along = 0;
  const Use stack = stacked_conditions(graph, index, along);
  const std::size_t count = call.operands.size() - 1;
  if (!stack || stack.node->edges.size() != count || graph.role(stack, "p") != Labels{along}) {
    return {};
  }
  Use chosen = call[1];
  for (std::size_t i = count - 1; i > 0; --i) {
    chosen = select(graph.child(stack, i), call[i + 1], chosen);
  }
  return select(graph.child(stack, 0), call[1], chosen);
}

}  // namespace jaxport::axis
