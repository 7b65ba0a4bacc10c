// SPDX-License-Identifier: Apache-2.0
// The families of lowerings. A family is listed here and nowhere else.
#include <algorithm>
#include <array>

#include "lower/rows/ctx.h"

namespace jaxport::lower {

const Row* find_row(std::string_view primitive, int opset) {
  using Family = std::span<const Row> (*)();
  static constexpr Family kFamilies[] = {
      math_rows,    bits_rows,      precision_rows,     compare_rows, activation_rows,
      conv_rows,    window_rows,    control_rows,       gather_rows,  index_rows,
      scatter_rows, fourier_rows,   select_window_rows, sort_rows,    cumulative_rows,
      shape_rows,   recurrent_rows, integer_rows,       search_rows,
  };
  for (Family family : kFamilies) {
    const std::span<const Row> rows = family();
    auto row = std::ranges::lower_bound(rows, primitive, {}, &Row::primitive);
    for (; row != rows.end() && row->primitive == primitive; ++row) {
      if (row->since_opset <= opset) return &*row;
    }
  }
  return nullptr;
}

}  // namespace jaxport::lower
