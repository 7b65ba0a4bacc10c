// SPDX-License-Identifier: Apache-2.0
// The rules, one group for each file of this folder. Only the engine includes this.
#pragma once

#include <span>

#include "raise/raise.h"

namespace jaxport::raise {

using Rules = std::span<const Rule* const>;

Rules softmax_rules();
Rules norm_rules();
Rules norm_affine_rules();
Rules rope_rules();
Rules partial_rope_rules();
Rules attention_rules();
Rules recurrent_rules();
Rules activation_rules();
Rules prelu_rules();
Rules resize_rules();

}  // namespace jaxport::raise
