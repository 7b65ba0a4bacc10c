// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <fmt/format.h>

#include "lower/emitter.h"
#include "lower/prepare.h"

namespace jaxport::lower {
namespace {

struct Emission {
  onnx::Model model;
  double price;
};

Emission emitted(const Facts& facts, const Hints& hints, const Options& options) {
  onnx::Model model;
  model.dims = facts.program.dims;
  model.opsets = {{"", options.opset}};
  model.ir_version = onnx::ir_version_for(options.opset);
  model.producer_name = "jaxport";
  for (const std::string& constraint : facts.program.dims->constraints()) {
    model.metadata.emplace_back(fmt::format("jaxport.constraint.{}", model.metadata.size()),
                                constraint);
  }
  Emitter emitter(facts, hints, model, options.opset);
  emitter.run(options.model_name);
  const double price = emitter.price();
  return {std::move(model), price};
}

}  // namespace

onnx::Model lower(axis::Program& program, const Options& options) {
  prepare(program, options.opset);
  const Facts facts(program);
  Emission wished = emitted(facts, collect_wishes(facts, options.opset), options);
  // Nothing moves: no assignment can be cheaper.
  if (wished.price <= static_cast<double>(wished.model.graph.nodes.size()))
    return std::move(wished.model);
  Emission greedy = emitted(facts, Hints(facts.order().size()), options);
  return std::move(greedy.price < wished.price ? greedy.model : wished.model);
}

}  // namespace jaxport::lower
