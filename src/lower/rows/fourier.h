// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of known length as products with constant matrices.
#pragma once

#include "lower/rows/ctx.h"

namespace jaxport::lower {

// One transform along the middle dim of [batch, length, parts]. A complex number is a last dim of
// two parts; real numbers have one.
struct Fourier {
  std::int64_t length = 0;
  bool is_inverse = false;  // the other sign of the angles, and divided by the length
  bool from_real = false;   // RFFT: gives the first half of the frequencies
  bool to_real = false;     // IRFFT: takes the first half of the frequencies

  std::int64_t frequencies() const { return from_real || to_real ? length / 2 + 1 : length; }
  std::int64_t in_count() const { return to_real ? frequencies() : length; }
  std::int64_t out_count() const { return from_real ? frequencies() : length; }
  std::int64_t in_parts() const { return from_real ? 1 : 2; }
  std::int64_t out_parts() const { return to_real ? 1 : 2; }
};

// The transform by the DFT op, whatever its length. In f32 and f64 it is exact enough for powers of
// two only.
Value by_op(Ctx& c, const Fourier& of, const Dim& length, Value x);

// The first half of a spectrum and its mirror image: [batch, length, 2]. The imaginary parts of the
// zero frequency and of the highest one of an even length do not reach a real result.
Value mirrored(Ctx& c, Value z, const Dim& length);

// The transform by products; by the DFT op where these would need too many constants.
Value transformed(Ctx& c, const Fourier& of, Value x);

}  // namespace jaxport::lower
