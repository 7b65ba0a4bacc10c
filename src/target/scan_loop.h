// SPDX-License-Identifier: Apache-2.0
// OpenVINO's Scan.
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// OpenVINO (2026.4) refuses a Scan whose body uses values of the graph around it, and takes one
// step of a Scan whose body does not use the elements. Its Loop is right, so that every Scan
// becomes one, which takes its elements with Gather. Returns whether the model changed.
bool write_scans_as_loops(onnx::Model& model);

}  // namespace jaxport::target
