// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <fmt/format.h>

#include "lower/emitter.h"
#include "lower/prepare.h"

namespace jaxport::lower {
namespace {

onnx::Model emitted(const Plan& plan, const Hints& hints, const Options& options) {
  onnx::Model model;
  model.dims = plan.facts.program.dims;
  model.producer_name = "jaxport";
  model.graph.name = options.model_name;
  for (const std::string& constraint : model.dims->constraints()) {
    model.metadata.emplace_back(fmt::format("jaxport.constraint.{}", model.metadata.size()),
                                constraint);
  }
  onnx::Builder builder(model, options.opset, onnx::DTypeRule::kAny);
  ShapeValues shapes(builder);
  Emitter(plan, hints, builder, shapes).run();
  return model;
}

double price_of(const onnx::Graph& graph) {
  double sum = 0;
  for (const onnx::Node& node : graph.nodes) {
    sum += node.op == "Transpose" ? kTransposePrice : node.op == "Expand" ? kExpandPrice : 1;
  }
  return sum;
}

}  // namespace

onnx::Model lower(axis::Program& program, const Options& options) {
  prepare(program, options.opset, options.target);
  const Plan plan(program, options.opset, options.lowerings);
  onnx::Model wished = emitted(plan, plan.wishes, options);
  const double price = price_of(wished.graph);
  // Nothing moves: no assignment can be cheaper.
  if (price <= static_cast<double>(wished.graph.nodes.size())) return wished;
  onnx::Model greedy = emitted(plan, Hints(plan.facts.order().size()), options);
  return price_of(greedy.graph) < price ? std::move(greedy) : std::move(wished);
}

}  // namespace jaxport::lower
