// SPDX-License-Identifier: Apache-2.0
// The geometry that gather and scatter share: each index vector names a window of the operand, and
// each window has its place in an outer array (the result of gather, the updates of scatter).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "eval/call.h"

namespace jaxport::eval {

enum class OutOfBounds : std::uint8_t { kClip, kSkip };

class IndexWindows {
 public:
  // `window` is the size of a window along each dim of the operand. Index vectors lie along the
  // last dim of `indices`, whose windows lie in `outer`. E041 when the parts do not fit.
  IndexWindows(const Call& c, const front::IndexParams& dims, const Shape& operand,
               const Tensor& indices, const Shape& window, const Shape& outer);

  // Elements of one window, relative to its first: in the operand and in the outer array.
  const Ints& operand_steps() const { return operand_steps_; }
  const Ints& outer_steps() const { return outer_steps_; }

  // Calls visit(first element in the outer array, first element in the operand) for each index
  // vector in order; the second is nullopt for a window that is out of bounds under kSkip.
  using Visit = std::function<void(std::int64_t, std::optional<std::int64_t>)>;
  void for_each(OutOfBounds mode, const Visit& visit) const;

 private:
  std::optional<std::int64_t> operand_start(OutOfBounds mode, const Ints& batch,
                                            std::span<const std::int64_t> index) const;

  front::IndexParams dims_;
  Shape operand_, window_, batch_;
  Ints operand_strides_, batch_strides_;  // batch_strides_: of the outer array
  Ints operand_steps_, outer_steps_;
  Ints indices_;
};

// One offset for each index of `sizes`, row-major.
Ints all_offsets(const Shape& sizes, const Ints& strides);

}  // namespace jaxport::eval
