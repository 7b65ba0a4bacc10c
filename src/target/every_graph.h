// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "onnx/builder.h"

namespace jaxport::target {

// Rewrites the nodes of one graph, with a builder that appends to it; whether it changed any.
using RewriteGraph = std::function<bool(onnx::Graph&, onnx::Builder&)>;

// Every graph of the model, the inner ones first. Returns whether any changed.
bool rewrite_every_graph(onnx::Model& model, const RewriteGraph& rewrite);

// By value: those that enter or leave the body of a call that is to become a function. ONNX Runtime
// inlines functions, so that any node may stand behind such a value. Empty when there are no calls.
std::vector<bool> function_borders(const onnx::Model& model);

}  // namespace jaxport::target
