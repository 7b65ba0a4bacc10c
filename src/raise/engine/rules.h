// SPDX-License-Identifier: Apache-2.0
// The rules of raise/rules/, in groups. A group is declared and listed here and nowhere else.
#pragma once

#include <array>

#include "raise/engine/raise.h"

namespace jaxport::raise {

Rules softmax_rules();
Rules norm_rules();
Rules norm_affine_rules();
Rules rope_rules();
Rules partial_rope_rules();
Rules attention_rules();
Rules prelu_rules();
Rules recurrent_rules();
Rules resize_rules();
Rules activation_rules();

// Exact rules in one pass, tried in this order: each change costs a rebuild of all that stands
// above it. Activations come after them: earlier, the clamp of a variance at zero would become a
// relu.
inline auto exact_rules() {
  return std::array{softmax_rules(), norm_rules(),         norm_affine_rules(),
                    rope_rules(),    partial_rope_rules(), attention_rules(),
                    prelu_rules(),   recurrent_rules(),    resize_rules()};
}

}  // namespace jaxport::raise
