// SPDX-License-Identifier: Apache-2.0
// Runs a program as written and lets somebody see, and change, what each equation reads and gives.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "front/ir.h"

namespace jaxport::fuzz {

// An equation with results of the same types, and its operands.
using Apply = std::function<std::vector<Tensor>(const front::Eqn&, const std::vector<Tensor>& in)>;
// May be empty.
struct Watch {
  std::function<void(const front::Eqn&, std::vector<Tensor>& in)> before;
  std::function<void(const front::Eqn&, const std::vector<Tensor>& in, std::vector<Tensor>& out,
                     const Apply&)>
      after;
};
// Calls, branches and loops are entered. Throws Error as eval::run does.
std::vector<Tensor> interpret(const front::Function& function, std::span<const Tensor> inputs,
                              const Watch& watch, const DimBindings& outer = {});

// The results when every rounding is wrong by `relative` of its value, and every transcendental
// function but exp by `absolute` too; sums are wrong by that much of their terms, and one that
// nothing but its error is left of may be 0. Who reads a rounded value reads one that is wrong in
// another way: a raised node computes again what others share.
std::vector<Tensor> with_noise(const front::Function& function, const std::vector<Tensor>& inputs,
                               double relative, double absolute, std::uint64_t seed);

}  // namespace jaxport::fuzz
