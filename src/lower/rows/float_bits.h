// SPDX-License-Identifier: Apache-2.0
// Floats taken apart and put together by arithmetic that is exact: ONNX has BitCast from opset 26
// on only. Everything here is in f64, of which every bf16, f16 and f32 is a value.
#pragma once

#include "lower/rows/ctx.h"

namespace jaxport::lower {

// The sign bit, which -0 has too. No op sees that of a NaN: it is taken for 0.
Value has_sign(const Value& x);
Value two_to(const Value& exponent);
// floor(log2 x) for positive, finite x.
Value floor_log2(const Value& x);

// The bits of a bf16, f16, f32 or f64 as integers of that width. A NaN gives the usual quiet one.
Value bits_of_float(Ctx& c, const Value& x, DType to);
// The float of `dtype` with these bits, which are integers of its width.
Value float_from_bits(Ctx& c, const Value& bits, DType dtype);

// Integers in the order -NaN, -inf, …, -0, 0, …, inf, NaN of floats; from opset 26 on.
Value total_order(Ctx& c, const Value& x);

}  // namespace jaxport::lower
