// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/rows/pad.h"

namespace jaxport::lower {

// Windows that slide over an operand, by dim of the operand.
struct Window {
  Ints size, stride, dilation;
  PadConfig padding;     // with the base dilation as interior
  bool is_same = false;  // the op pads, by a size that is symbolic
};
Window window_of(const front::Eqn& eqn);    // from its parameters
std::int64_t volume(const Window& window);  // the number of elements of a window

// Whether AveragePool can compute a reduce_window_sum that is divided by its counts.
bool can_average(const front::Eqn& eqn, const front::Type& operand, int opset);

// The windows that fit along dim i of an operand that is padded already.
Dim window_count(const Window& window, const Dims& padded, std::size_t i);

// For each element of a window, in row-major order, what all windows have there.
Values window_elements(Ctx& c, Value padded, const Window& window);

}  // namespace jaxport::lower
