// SPDX-License-Identifier: Apache-2.0
// The interpolations of ONNX Resize along one axis, as numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "support/tensor.h"

namespace jaxport::raise {

struct Interpolation {
  std::string_view mode;  // of Resize: "nearest", "linear", "cubic"
  // Which settings of the attribute antialias give these numbers: both where nothing shrinks.
  bool plain = true, antialias = true;
};

// weights(i, j) is what element i adds to element j of the result. nullopt: not what Resize does.
std::optional<Interpolation> interpolation_by(const Tensor& weights);

// indices(j) is the element, of `from`, that element j of the result is.
std::optional<Interpolation> interpolation_at(const Tensor& indices, std::int64_t from);

// Every element of the result is a mean, with whatever weights: an interpolation.
bool are_means(const Tensor& weights);

}  // namespace jaxport::raise
