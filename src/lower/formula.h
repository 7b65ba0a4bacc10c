// SPDX-License-Identifier: Apache-2.0
// Functions that are composed of several ops because ONNX has none for them, or one that loses
// digits.
#pragma once

#include "lower/ctx.h"

namespace jaxport::lower {

// A formula of several roundings has no digits of a 16-bit float to spare: it is computed in f32.
template <Value (*Formula)(Ctx&, Value)>
Results in_f32(Ctx& c) {
  auto [x] = c.in<1>();
  const DType dtype = x.dtype();
  return c.cast(Formula(c, byte_width(dtype) < 4 ? c.cast(x, DType::kF32) : x), dtype);
}

Value expm1(Ctx& c, Value x);  // exp(x) - 1 with all digits near zero; math.cpp

}  // namespace jaxport::lower
