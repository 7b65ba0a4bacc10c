// SPDX-License-Identifier: Apache-2.0
#include "onnx/subgraph.h"

#include <algorithm>
#include <variant>

#include "onnx/walk.h"

namespace jaxport::onnx {

std::shared_ptr<Graph> subgraph(Builder& outer, const Build& fill) {
  auto graph = std::make_shared<Graph>();
  Builder op(outer, *graph);
  for (const Value& value : fill(op)) op.output(value, "");
  return graph;
}

Model with_own_bodies(Model model) {
  for_each_graph_of(model, [](Graph& graph) {
    for (Node& node : graph.nodes) {
      for (Attribute& attr : node.attrs) {
        auto* body = std::get_if<std::shared_ptr<Graph>>(&attr.value);
        if (body) *body = std::make_shared<Graph>(**body);
      }
    }
  });
  return model;
}

bool can_be_zero(const Dim& size) {
  if (size.is_static()) return size.is_zero();
  // 2*T + 1: products of symbols, which are not negative, and a positive number.
  const auto is_symbol = [](const DimFactor& factor) {
    return factor.atom->op == DimAtom::Op::kSymbol;
  };
  const auto& terms = size.expr()->terms;
  const bool adds_up = std::ranges::all_of(terms, [&](const DimTerm& term) {
    return term.coefficient > 0 && std::ranges::all_of(term.factors, is_symbol);
  });
  return !adds_up ||
         std::ranges::none_of(terms, [](const DimTerm& t) { return t.factors.empty(); });
}

Values unless_zero(Builder& op, Value count, const Build& values, const Build& otherwise) {
  const auto some = subgraph(op, values), none = subgraph(op, otherwise);
  const Value is_some = op.Cast(count, Args{{"to", DType::kBool}});
  return op.call_n("If", {is_some}, some->outputs.size(),
                   {{"then_branch", some}, {"else_branch", none}});
}

}  // namespace jaxport::onnx
