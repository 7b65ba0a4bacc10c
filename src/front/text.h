// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "front/ir.h"
#include "jaxport/error.h"

namespace jaxport::front {

// .jir text: parse(print(m)) == m. The grammar is in docs/jir.md.
//
//   func @softmax(%x: f32[B,4,8]) -> (%out) {
//     %c: f32[] = constant 0.5
//     %w: f32[2] = constant dense<[1.0, 2.0]> {path = "dense.kernel"}
//     %max: f32[B,4] = reduce_max %x {axes = (2)} loc("model.py":42 "Net.__call__")
//     return %max
//   }
struct PrintOptions {
  bool locations = true;
  bool constants = true;  // false: dense<…> shows a hash only; such text does not parse back
};
std::string print(const Module& module, const PrintOptions& options = {});
std::string print(const Attr& attr);

// A text with the places in it where something starts that has a location, in order.
struct MarkedText {
  std::string text;
  std::vector<std::pair<std::size_t, LocationId>> marks;
};
MarkedText print_marked(const Module& module, const PrintOptions& options = {});  // its equations
// One equation with types, shortened, for errors: "%1:f32[B,4] = reduce_max[axes=(2)]
// %0:f32[B,4,8]".
std::string print(const Function& function, const Eqn& eqn);

// The error with its place: the user's line, and the line of the library that it went through.
Error located(Error error, const Location& location);

// Throws Error E010 with line and column for anything malformed, however hostile, and E110 beyond
// the limits of the thread's watch.
Module parse(std::string_view text, std::string_view file_name);

}  // namespace jaxport::front
