// SPDX-License-Identifier: Apache-2.0
// Sliding windows over padded, dilated operands: what pooling and convolution share.
#pragma once

#include <cstdint>
#include <optional>

#include "eval/call.h"

namespace jaxport::eval {

// One spatial dim: window element k of output o reads the operand at
// (o * stride + k * window_dilation - pad_low) / base_dilation, if that is an element at all.
struct WindowDim {
  std::int64_t operand, window, stride, pad_low, base_dilation, window_dilation;

  std::optional<std::int64_t> read(std::int64_t o, std::int64_t k) const {
    const std::int64_t at = o * stride + k * window_dilation - pad_low;
    if (at < 0 || at % base_dilation != 0 || at / base_dilation >= operand) return std::nullopt;
    return at / base_dilation;
  }
};

// The dims of reduce_window and its kin over operand 0. High padding is in the result's shape.
std::vector<WindowDim> window_dims(const Call& c);
// The row-major element that window position `k` of output `o` reads, or nullopt in the padding.
std::optional<std::int64_t> element_under(const std::vector<WindowDim>& dims, const Ints& strides,
                                          const Ints& o, const Ints& k);

}  // namespace jaxport::eval
