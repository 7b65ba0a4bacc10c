// SPDX-License-Identifier: Apache-2.0
// Regions: the bodies of control flow as programs with a graph of their own.
//
// Input i of a region stands for operand i of the equation, except that a region of cond lacks the
// index and a region of scan sees one step of xs. An input whose operand is a constant that no step
// changes is unused: the region has the constant itself, so that rules see it.
//
//   jit    a marked call (front::FunctionMark) has one region: operands -> results
//   cond   one region for each branch: operands -> results
//   scan   one region: consts, carry, step of xs -> carry, step of ys
//   while  two regions over cond_consts, body_consts, carry: -> condition (a scalar), and
//          -> condition of the next round, next carry
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "axis/translate/inliner.h"

namespace jaxport::axis {

class RegionBuilder {
 public:
  // A region of an equation that `outer` is about to translate.
  explicit RegionBuilder(const Inliner& outer);

  View variable(const front::Type& type);                      // an input that each step changes
  View invariant(const front::Type& type, const View& outer);  // an input that is always `outer`
  Graph& graph() const { return *program_->graph; }
  std::vector<View> run(const front::Function& function, std::vector<View> arguments) {
    return inliner_.run(function, std::move(arguments));
  }
  std::unique_ptr<Program> finish(std::vector<View> outputs, std::vector<front::Type> types);

 private:
  const Graph& outer_;
  std::unique_ptr<Program> program_;
  Inliner inliner_;
};

}  // namespace jaxport::axis
