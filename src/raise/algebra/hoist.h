// SPDX-License-Identifier: Apache-2.0
// What a step of a scan computes from xs and constants alone, computed for all steps outside.
#pragma once

#include <optional>
#include <unordered_map>

#include "axis/graph/graph.h"

namespace jaxport::raise {

class Hoist {
 public:
  // `scan` is a node of `outer`; the steps run along the label `step` of `outer`.
  Hoist(axis::Graph& outer, const axis::Node& scan, axis::Label step);

  // A value of the scan's region as a value outside, which varies along `step` when it depends on
  // xs. Each label of the use has the label outside() instead. Empty when it depends on the carry
  // or on nodes that cannot get another axis.
  axis::Use operator()(const axis::Use& use);
  axis::Label outside(axis::Label label);

  // Operand i of the scan over these labels, one for each non-unit dim.
  axis::Use operand(std::size_t i, const axis::Labels& labels) const;

 private:
  struct Moved {
    axis::Use use;
    axis::Labels axes;  // what stands for each axis of the node in the region
  };
  std::optional<Moved> moved(const axis::Node* node, int depth);
  std::optional<Moved> input(const axis::Node& node);
  std::optional<Moved> constant(const axis::Node& node);
  std::optional<Moved> remade(const axis::Node& node, int depth);

  axis::Graph& outer_;
  const axis::Node& scan_;
  const axis::Graph& inner_;
  axis::Label step_;
  std::unordered_map<const axis::Node*, std::optional<Moved>> unsorted_moved_;
  std::unordered_map<axis::Label, axis::Label> unsorted_labels_;
};

}  // namespace jaxport::raise
