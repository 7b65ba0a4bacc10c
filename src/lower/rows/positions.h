// SPDX-License-Identifier: Apache-2.0
// Gather and scatter in one form: windows of an operand at computed starts, as positions for
// GatherND and ScatterND.
#pragma once

#include <string_view>

#include "lower/rows/ctx.h"

namespace jaxport::lower {

struct Windows : front::IndexParams {
  Dims size;     // window sizes, one for each operand dim
  Ints partial;  // operand dims of which a window is a part; the others are taken whole
  Ints whole;

  bool is_dropped(std::int64_t dim) const;
};
Windows gather_windows(const front::GatherParams& gather, const Dims& operand);
Windows scatter_windows(const front::ScatterParams& scatter, const Dims& operand,
                        const Dims& updates);

struct Positions {
  Value at;     // i64[index dims…, window sizes of the partial dims…, partial dims]
  Value valid;  // bool[index dims…]: the window lies inside the operand; absent when that is known
};
// What to do about windows that may leave the operand: report them in `valid`, move them inside
// too, or nothing because there are none.
enum class Outside : std::uint8_t { kReported, kMoved, kNone };
Positions positions_of(Ctx& c, Value indices, const Dims& operand, const Windows& windows,
                       Outside outside);

Value scalar_dim(Ctx& c, const Dim& dim);  // i64[]

// 0, 1, …, size - 1
Value range(Ctx& c, const Dim& size);

}  // namespace jaxport::lower
