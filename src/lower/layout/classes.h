// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lower/layout/facts.h"
#include "lower/layout/wishes.h"

namespace jaxport::lower {

// Classes of values that should have one layout: those that a pointwise node with several operands
// joins, such as a residual stream. Other nodes are borders between classes: a conversion may stand
// before or after them.
class Classes {
 public:
  explicit Classes(const Facts& facts);

  // One layout for each class of several values: what most consumers outside of it wish.
  Wishes wishes(const Wishes& of_values, int opset) const;
  // Gives the wish for one member to all members of its class.
  void assign(Wishes& wishes, std::size_t member, const Wish& wish) const;
  std::size_t of(std::size_t member) const { return class_[member]; }
  // Dims in labels of a member as dims in labels of the class.
  Arrangement common(std::size_t member, const Arrangement& dims) const;

 private:
  using Map = std::vector<axis::Label>;  // by label of a member; -1: not a label of its result
  void join(std::size_t a, std::size_t b, const Map& from_a_to_b);

  const Facts& facts_;
  std::vector<std::size_t> class_;                 // by Facts::index: the member that names it
  std::vector<std::vector<std::size_t>> members_;  // by class
  std::vector<Map> to_class_;                      // by Facts::index
};

}  // namespace jaxport::lower
