// SPDX-License-Identifier: Apache-2.0
// What emission and layout assignment know about a program before they start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::lower {

// A constant that is computed from smaller ones is stored up to this many elements; above, the
// model computes it.
constexpr std::int64_t kLargestComputed = 1 << 20;

// A constant value without a copy: element (i0, i1, …) of its axes is base[offset + sum i *
// stride].
struct ConstantView {
  Tensor base;
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;  // by axis of the node
};

class Facts {
 public:
  explicit Facts(const axis::Program& program);

  struct User {
    const axis::Node* node;  // nullptr: a program output
    std::size_t operand;     // index of the edge, or of the output
  };

  // A program output: its node as an operand, in labels numbered from 0, and the dims it asks for.
  struct Output {
    axis::Edge edge;
    Dims sizes;  // by label
    axis::Pattern dims;
  };

  const axis::Program& program;
  // Operands first. Their labels are cut where consumers cut axes, see splits.h; edges lead to the
  // nodes of the program.
  const std::vector<const axis::Node*>& order() const { return order_; }
  const axis::Node& node(const axis::Node* any) const { return *order_[index(any)]; }  // cut
  std::size_t index(const axis::Node* node) const { return index_[node->id]; }         // in order()
  const std::vector<User>& users(const axis::Node* node) const { return users_[index(node)]; }
  // Known at export, with static sizes: never computed by the model.
  bool is_constant(const axis::Node* node) const { return constant_[index(node)]; }
  const ConstantView& constant(const axis::Node* node) const;
  Output output(std::size_t i) const;

 private:
  void find_constants();
  void evaluate_constants();
  void cut_nodes();
  std::optional<ConstantView> view_of(const axis::Node* node) const;

  std::vector<const axis::Node*> order_;
  std::vector<std::unique_ptr<const axis::Node>> cut_;  // by index
  std::vector<std::size_t> index_;                      // by node id
  std::vector<std::vector<User>> users_;
  std::vector<bool> constant_;
  std::vector<std::optional<ConstantView>> views_;
};

}  // namespace jaxport::lower
