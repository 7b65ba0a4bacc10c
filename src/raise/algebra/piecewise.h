// SPDX-License-Identifier: Apache-2.0
// Two functions of one number are equal when they are equal on every piece that their conditions
// cut, and at every point between the pieces.
#pragma once

#include <functional>
#include <optional>

#include "raise/algebra/form.h"
#include "support/dtype.h"

namespace jaxport::raise {

// A function of x on the piece of x.
using Function = std::function<Form(const Form& x)>;

// Where two functions are not shown to be equal: inside a piece, or at a point.
struct Difference {
  double lo, hi;
};

// nullopt: the functions are equal at every finite number of `dtype`, up to roundings of the
// numbers in them to that type. A jump of `known` must be one of `function` that rounding cannot
// move. Says nothing about NaN and the infinities.
std::optional<Difference> find_difference(const Function& function, const Function& known,
                                          DType dtype);

}  // namespace jaxport::raise
