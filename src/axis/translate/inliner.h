// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::axis {

// Adds functions to the graph of a program, one equation after the other.
class Inliner {
 public:
  // Equations without a line of their own have that of the equation around them, `location`.
  explicit Inliner(const Program& program, front::LocationId location = front::kNoLocation)
      : program_(program), location_(location) {}

  // The results of `function` for these arguments. Errors name the equation and its source line.
  std::vector<View> run(const front::Function& function, std::vector<View> arguments);

  const Program& program() const { return program_; }
  front::LocationId location() const { return location_; }

 private:
  void add(const front::Function& function, const front::Eqn& eqn, std::vector<View>& values);
  bool fits(const View& view, const front::Type& type) const;

  const Program& program_;
  front::LocationId location_;
};

// A graph input as a view of all its dims.
View input_view(Graph& graph, std::size_t index, const front::Type& type, const std::string& name);

}  // namespace jaxport::axis
