// SPDX-License-Identifier: Apache-2.0
// Layout assignment: of several choices the one whose emission costs least.
#pragma once

#include <vector>

#include "lower/layout/plan.h"
#include "onnx/ir.h"

namespace jaxport::lower {

// A program, emitted as a model of its own.
struct Draft {
  onnx::Model model;
  std::vector<Paid> paid;
};

// The cheapest draft that was found for the plan, which keeps its choice. Emits the plan once when
// nothing has to be converted. The layouts of regions must have been chosen.
Draft cheapest_draft(Plan& plan, int opset);

// Chooses the layouts of all regions of the plan, inner ones first.
void choose_region_layouts(Plan& plan, int opset);

}  // namespace jaxport::lower
