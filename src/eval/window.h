// SPDX-License-Identifier: Apache-2.0
// Sliding windows over padded, dilated operands: what pooling and convolution share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "eval/call.h"
#include "eval/view.h"

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

// A window over the operand. High padding is in the result's shape.
class SlidingWindow {
 public:
  explicit SlidingWindow(std::vector<WindowDim> dims);
  // That of reduce_window and its kin over operand 0
  static SlidingWindow read(const Call& c);

  // Calls visit(k, at) where position `k` of the window at output `o` lies on element `at`, both
  // row-major. Positions in the padding are left out.
  template <class Visit>
  void each(const Ints& o, Visit visit) const {
    std::int64_t number = 0;
    for (Odometer k(window_); k.valid(); k.next(), ++number) {
      if (const auto at = element_under(o, k.index())) visit(number, *at);
    }
  }

 private:
  std::optional<std::int64_t> element_under(const Ints& o, const Ints& k) const;

  std::vector<WindowDim> dims_;
  Shape window_;
  Ints strides_;  // of the operand
};

}  // namespace jaxport::eval
