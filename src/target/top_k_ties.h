// SPDX-License-Identifier: Apache-2.0
// Of equal elements, OpenVINO's TopK does not give the first one first.
#pragma once

#include "onnx/ir.h"

namespace jaxport::target {

// Where the places of a TopK are used, the axis is sorted as a whole, and then once more by numbers
// that are unique: the rank of each value, times the length, plus its place. Axes longer than the
// square root of 2^31 stay as they are. Returns whether the model changed.
bool order_ties(onnx::Model& model);

}  // namespace jaxport::target
