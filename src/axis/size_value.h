// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "axis/graph.h"

namespace jaxport::axis {

// The size that a scalar is: an integer constant or dim_as_value, also as a float ("x / n").
std::optional<Dim> size_value(const Graph& graph, const Use& use);

}  // namespace jaxport::axis
