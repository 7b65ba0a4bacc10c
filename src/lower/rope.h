// SPDX-License-Identifier: Apache-2.0
// Who is who among the labels of a rotary embedding. Wishes and emission must agree on it, so it
// is decided here alone.
#pragma once

#include <vector>

#include "axis/graph.h"
#include "lower/layout.h"

namespace jaxport::lower {

struct RopeLabels {
  explicit RopeLabels(const axis::Node& node);
  axis::Labels head;  // the size of a head, in the order that the op expects
  axis::Labels half;  // the last dim of the tables
  axis::Labels time;  // labels of the tables that are not in `half`: positions, perhaps of a batch
  axis::Labels rest;  // the other labels of the value: batch and heads
  bool interleaved;
};

// One way to feed the op: [batch, time, heads * size] or [batch, heads, time, size].
struct RopeForm {
  axis::Labels heads, batch, time;
  bool three = true;
  Arrangement arrange(const axis::Labels& head) const;
  // [time, size / 2] when the whole batch shares the tables, else [batch, time, size / 2].
  Arrangement tables(const RopeLabels& labels) const;
};

// The form that fits dims [batch][time][heads, size] in this order best.
RopeForm natural_form(const RopeLabels& labels, const Arrangement& dims);

}  // namespace jaxport::lower
