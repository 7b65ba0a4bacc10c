// SPDX-License-Identifier: Apache-2.0
// Where primitives read and write, as far as it is known when the program is built.
#pragma once

#include <optional>

#include "axis/translate/translate.h"

namespace jaxport::axis {

// The start of a window of `count` elements in a dim, clamped so that the window lies inside.
std::optional<Dim> known_start(const Graph& graph, const Use& use, const Dim& size,
                               const Dim& count);

// Indices start, start + step, … along one label.
struct KnownSteps {
  Dim start;
  std::int64_t step;
  Label along;
};
std::optional<KnownSteps> known_steps(Graph& graph, const Use& use);

}  // namespace jaxport::axis
