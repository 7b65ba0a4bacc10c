// SPDX-License-Identifier: Apache-2.0
// Makes a program smaller as long as something about it stays as it is.
#pragma once

#include <functional>

#include "front/ir.h"

namespace jaxport::reduce {

struct Options {
  int most_tries = 1500;
  // Whether a smaller program still has what it is kept for. Programs that are asked for may be
  // malformed.
  std::function<bool(const front::Function&)> keeps;
  // After each change that stays, with the number of tries so far; may be empty.
  std::function<void(const front::Function&, int)> on_progress;
};

// The smallest program that was found. The same program and the same answers give the same result.
// It loses results, equations (their results become inputs or operands), bodies of loops and calls,
// constants, sizes and digits.
front::Function reduced(front::Function function, const Options& options);

}  // namespace jaxport::reduce
