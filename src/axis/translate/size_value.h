// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "axis/graph/graph.h"

namespace jaxport::axis {

// The size that a scalar is: an integer constant or dim_as_value, also as a float ("x / n").
std::optional<Dim> size_value(const Graph& graph, const Use& use);

// The way back: a size as an integer of the graph.
Use size_as_value(Graph& graph, const Dim& size, DType dtype);

}  // namespace jaxport::axis
