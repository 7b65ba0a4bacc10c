// SPDX-License-Identifier: Apache-2.0
// Activations are recognised by what they compute, not by their spelling.
#pragma once

#include "raise/raise.h"

namespace jaxport::raise {

// The names at which the spelling of an activation may end.
inline constexpr std::string_view kActivationRoots[] = {"add", "clamp", "div", "log",      "log1p",
                                                        "max", "min",   "mul", "select_n", "sub"};

// The raised node when `root` is an activation of some value below it. One call serves the rules
// of all activations.
axis::Use match_activation(const Matcher& m, const axis::Use& root);

}  // namespace jaxport::raise
