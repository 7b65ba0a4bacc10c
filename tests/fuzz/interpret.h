// SPDX-License-Identifier: Apache-2.0
// Runs a program as written and lets somebody see, and change, what each equation gives.
#pragma once

#include <functional>
#include <vector>

#include "front/ir.h"

namespace jaxport::fuzz {

// Operands and results of one equation.
using Watch =
    std::function<void(const front::Eqn&, const std::vector<Tensor>& in, std::vector<Tensor>& out)>;
// Calls and branches are entered; a loop is one equation. Throws Error as eval::run does.
std::vector<Tensor> interpret(const front::Function& function, const std::vector<Tensor>& inputs,
                              const Watch& watch, const DimBindings& outer = {});

// The results when every rounding is wrong by `relative` of its value, and every transcendental
// function by `absolute` too.
std::vector<Tensor> with_noise(const front::Function& function, const std::vector<Tensor>& inputs,
                               double relative, double absolute, std::uint64_t seed);

}  // namespace jaxport::fuzz
