// SPDX-License-Identifier: Apache-2.0
// What the explorer page shows, as JSON (docs/report.md). The page is in web/, its data here:
//
//   model      what the model says about itself, totals
//   graphs     the main graph, bodies and functions; "owner" is the node around a body, or -1
//   values     name, type, kind (0 computed, 1 input, 2 initializer), elements, bytes
//   nodes      op, name, graph, in, out (values), scope, layer, source, flops, and so on
//   sources    what "source" of nodes and equations counts: "model.py:42 in Net.__call__"
//   runtimes   of each, which versions have kernels, and what to do where one has not
//
// and of a conversion, besides:
//
//   program    the jaxpr as text; "marks" are pairs of a line and the equation on it
//   raised     the axis graph in the same way
//   equations  by number; "raised" and "nodes" are the numbers of those whose nodes stand for it
#pragma once

#include <string>

#include "compile/compile.h"
#include "front/ir.h"
#include "onnx/ir.h"

namespace jaxport::explore {

std::string data_of(const onnx::Model& model);
// Compiles the program once more, with an observer.
std::string data_of(const front::Module& module, const compile::Options& options);

}  // namespace jaxport::explore
