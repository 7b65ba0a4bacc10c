// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <fmt/format.h>

#include "lower/emit/prim.h"
#include "lower/layout/assign.h"
#include "lower/rewrite/prepare.h"
#include "support/watch.h"

namespace jaxport::lower {

std::string missing(std::string_view primitive, int opset) {
  return fmt::format("no lowering for primitive '{}' at opset {}", primitive, opset);
}

std::string help_for_missing(std::string_view primitive) {
  if (primitive.ends_with("_callback")) {
    return "a model cannot call Python: compute this part with jax.numpy, or split the program in "
           "two models there; a check that only raises an error is left out by itself, other "
           "checks of Equinox with EQX_ON_ERROR=off or EQX_ON_ERROR=nan";
  }
  return fmt::format(
      "rewrite this part with other operations, or say how to compute '{}': "
      "jaxport.register_decomposition, jaxport.register_lowering",
      primitive);
}

onnx::Model lower(axis::Program& program, const Options& options) {
  watch().enter("lower");
  prepare(program, options);
  Plan plan(program, options.opset, options.lowerings);
  report_missing(plan, options.opset);
  choose_region_layouts(plan, options.opset);
  onnx::Model model = cheapest_draft(plan, options.opset).model;
  model.producer_name = "jaxport";
  model.graph.name = options.model_name;
  for (const std::string& constraint : model.dims->constraints()) {
    model.metadata.emplace_back(fmt::format("jaxport.constraint.{}", model.metadata.size()),
                                constraint);
  }
  return model;
}

}  // namespace jaxport::lower
