// SPDX-License-Identifier: Apache-2.0
// Who is who among the labels of an attention node. Wishes and emission must agree on it, so it is
// decided here alone.
#pragma once

#include <utility>

#include "axis/graph.h"

namespace jaxport::lower {

struct AttentionLabels {
  explicit AttentionLabels(const axis::Node& node);
  axis::Labels
      batch;  // labels that query and key or value share and the result keeps: batch and heads
  axis::Labels time;        // positions of the query
  axis::Labels group;       // heads of the query that share a key head
  axis::Labels keys;        // positions of the key
  axis::Labels key_size;    // contracted between query and key
  axis::Labels value_size;  // only in the value
};

// Which of the shared labels is the head, and the order of the others. `order` is the wanted order
// of the result's labels.
struct AttentionRoles {
  AttentionRoles(const axis::Node& node, const axis::Labels& order);
  AttentionRoles(axis::Labels heads_in, axis::Labels batch_in)
      : heads(std::move(heads_in)), batch(std::move(batch_in)) {}
  axis::Labels heads;  // at most one label
  axis::Labels batch;
};

// The mask or bias as [time, keys], or with batch and heads in front when it has them.
axis::Pattern bias_arrangement(const axis::Node& node, const AttentionLabels& labels,
                               const AttentionRoles& roles);

}  // namespace jaxport::lower
