// SPDX-License-Identifier: Apache-2.0
// Equations that are left to the user: nodes of a domain of their own, which the user implements in
// the runtime. docs/custom-ops.md says what such a node looks like.
#pragma once

#include "lower/rows/ctx.h"

namespace jaxport::lower {

constexpr std::string_view kCustomDomain = "jaxport.custom";

// The equation as a node: its operands, its parameters as attributes, and the results that it
// declares. Until the model is finished, the op has the name that the stages know ("user.route"),
// which is that of no ONNX op.
Values custom_node(Ctx& c);

// Gives these nodes the names of their primitives.
void name_custom_nodes(onnx::Model& model);

}  // namespace jaxport::lower
