// SPDX-License-Identifier: Apache-2.0
// Graphs inside the graph: bodies of control flow, and what runs only where there are elements.
#pragma once

#include <functional>
#include <memory>

#include "onnx/builder.h"

namespace jaxport::onnx {

using Build = std::function<Values(Builder&)>;

// A graph inside that of `outer`; `fill` builds it and returns its outputs.
std::shared_ptr<Graph> subgraph(Builder& outer, const Build& fill);

// The same model with bodies of its own: a copy of a model shares those of the other one, so that
// what changes one changes both.
Model with_own_bodies(Model model);

// Whether the size is 0 for some sizes of the inputs. JAX takes symbols to be at least 1, but an
// empty batch reaches a model all the same.
bool can_be_zero(const Dim& size);

// What `values` builds, or what `otherwise` builds where `count` (i64[1]) turns out to be 0: for
// kernels of ONNX Runtime that fail or crash then.
Values unless_zero(Builder& op, Value count, const Build& values, const Build& otherwise);

}  // namespace jaxport::onnx
