// SPDX-License-Identifier: Apache-2.0
// The role of each label of a norm. Wishes, emission and the choice of the op must agree on it, so
// it is decided here alone.
#pragma once

#include "axis/graph.h"
#include "raise/ops.h"

namespace jaxport::lower {

struct NormLabels {
  NormLabels(const raise::NormOp& op, const Dims& sizes);
  axis::Labels along;  // normalised
  // Channels of an instance or group norm: outside and inside of what is normalised. A layer norm
  // has none.
  axis::Labels groups, inner;
  bool is_instance() const { return !groups.empty(); }
  axis::Labels channels() const;  // groups and inner, in this order
  axis::Labels spatial() const;   // `along` without `inner`
};

}  // namespace jaxport::lower
