// SPDX-License-Identifier: Apache-2.0
// A matrix with ones on a diagonal: an op that lowering makes of comparisons of positions, where
// the sizes are symbolic.
#pragma once

#include <cstdint>
#include <string_view>

#include "axis/graph/graph.h"
#include "raise/engine/op.h"

namespace jaxport::lower {

struct EyeOp {
  static constexpr std::string_view kName = "eye";
  axis::Use rows, columns;  // their positions
  axis::Label row = 0, column = 0;
  std::int64_t diagonal = 0;

  void fields(raise::Fields& f) {
    f.operand(rows);
    f.operand(columns);
    f.label("c", column);
    f.label("r", row);
    f.attr("diagonal", diagonal);
  }
};

}  // namespace jaxport::lower
