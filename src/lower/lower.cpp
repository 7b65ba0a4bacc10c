// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <fmt/format.h>

#include "lower/layout/assign.h"
#include "lower/rewrite/prepare.h"
#include "support/watch.h"

namespace jaxport::lower {

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
