// SPDX-License-Identifier: Apache-2.0
// Interpreter of front IR on the CPU: folds constants, checks raise rules, serves tests.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "front/ir.h"

namespace jaxport::eval {

// True when apply() knows the primitive.
bool knows(std::string_view primitive);

// Runs the body of a call, a branch or a loop.
using RunRegion = std::function<std::vector<Tensor>(
    const front::Function& region, std::span<const Tensor> operands, const DimBindings& outer)>;

// Evaluates one equation with JAX's semantics (rounding, NaN, integer division, clamping). Operands
// of pointwise primitives broadcast as in numpy. `results` are the result types; symbolic dims in
// them and in parameters are looked up in `bindings`. Throws Error E040 for a primitive or a dtype
// it does not know, E041 when operands, parameters and results do not fit each other. Bodies of
// control flow run through `run_region`, and through run() when there is none.
std::vector<Tensor> apply(const front::Eqn& eqn, std::span<const Tensor> operands,
                          std::span<const front::Type> results, const DimBindings& bindings = {},
                          const RunRegion& run_region = {});

// Runs a function on concrete inputs; symbolic dims are bound from their shapes, or by the function
// around it. Throws Error E041 when the inputs do not fit the parameters.
std::vector<Tensor> run(const front::Function& function, std::span<const Tensor> inputs,
                        const DimBindings& outer = {});

// The sizes of the symbols in the types of the parameters. Throws Error E041 as run() does.
DimBindings bind(const front::Function& function, std::span<const Tensor> inputs,
                 DimBindings bindings = {});

Tensor cast(const Tensor& tensor, DType dtype);  // as lax.convert_element_type

}  // namespace jaxport::eval
