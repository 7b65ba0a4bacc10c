// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::lower {

// Labels of one node as a set.
class LabelSet {
 public:
  explicit LabelSet(std::size_t count) : in_(count, 0) {}
  LabelSet(std::size_t count, const axis::Labels& labels) : in_(count, 0) { add(labels); }
  LabelSet(std::size_t count, const axis::Pattern& pattern) : in_(count, 0) {
    for (const auto& labels : pattern) add(labels);
  }
  void add(const axis::Labels& labels) {
    for (auto label : labels) in_[label] = 1;
  }
  bool empty() const { return std::ranges::find(in_, 1) == in_.end(); }
  bool has(axis::Label label) const { return in_[label] != 0; }
  bool has_all(const axis::Labels& labels) const;
  bool has_any(const axis::Labels& labels) const;
  bool has_part(const axis::Labels& labels) const { return has_any(labels) && !has_all(labels); }
  axis::Labels keep(const axis::Labels& labels) const;  // those in the set, in order
  axis::Labels drop(const axis::Labels& labels) const;  // those not in the set, in order

 private:
  std::vector<char> in_;
};

// Each dim without the labels that the set lacks.
axis::Pattern restricted(const axis::Pattern& dims, const LabelSet& set);
// Dims without the labels of the set; dims that become empty vanish, unit dims stay.
axis::Pattern dropped(const axis::Pattern& dims, const LabelSet& set);
// Dims that the set has a part of fall apart into runs inside and outside of it.
axis::Pattern split_by(const axis::Pattern& dims, const LabelSet& set);

}  // namespace jaxport::lower
