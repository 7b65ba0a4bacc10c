// SPDX-License-Identifier: Apache-2.0
// The pointwise expression above a value, as a function of that one number.
#pragma once

#include <string_view>
#include <vector>

#include "axis/graph/graph.h"
#include "raise/algebra/form.h"

namespace jaxport::raise {

// Walks down from a root. Between two steps there is one value, the base, that every path from the
// root to a non-literal operand passes through: the root is a function of the base.
class Cone {
 public:
  Cone(axis::Graph& graph, const axis::Use& root);

  // Moves to the next base below. False when there is none within a bounded number of nodes, or
  // when an operation in between is not one that at() can compute.
  bool next();

  const axis::Use& base() const { return slots_[base_].use; }
  // The root when the base is x, in double precision and on a piece. A 16-bit factor that is the
  // rounding of a well-known constant counts as that constant.
  double at(double x) const;
  Form on(const Form& x) const;
  bool is_curved() const { return curved_; }       // not only + - * /
  bool has_raised() const { return has_raised_; }  // contains an activation
  // Whether the root picks a value in between that others use too. They may compare the two, as the
  // gradient of a clip does, and would see it when the root is rounded in another way.
  bool picks_shared_value(const axis::UseCounts& uses) const;

  struct Operation {
    std::string_view name;
    double (*value)(const double* operands, const axis::Node& node);
    Form (*form)(const Form* operands, const axis::Node& node);
    bool curved = true;
  };

 private:
  struct Slot {
    axis::Use use;
    bool is_literal = false;
    double literal = 0, factor = 0;  // factor: the literal when it scales something
    const Operation* operation = nullptr;
    std::vector<std::size_t> operands = {};  // slots
  };
  double literal(std::size_t user, std::size_t operand) const;
  bool expand(std::size_t slot);
  std::size_t slot_of(const axis::Use& use);
  std::size_t take_newest();

  axis::Graph& graph_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> frontier_;  // seen, not expanded, not literals
  std::vector<std::size_t> expanded_;  // operands come after their users
  std::size_t base_ = 0;
  bool curved_ = false, has_raised_ = false;
};

}  // namespace jaxport::raise
