// SPDX-License-Identifier: Apache-2.0
// Python numbers and arrays as Tensors.
#pragma once

#include <nanobind/nanobind.h>

#include "support/tensor.h"

namespace jaxport::bind {

// The bytes of a C-contiguous numpy array, without a copy. The Tensor keeps the array alive; the
// last owner may drop it on any thread.
Tensor view_of(const nanobind::object& array, DType dtype);

// A Python bool, int, float or complex as a scalar of `dtype`.
Tensor scalar_of(nanobind::handle number, DType dtype);

}  // namespace jaxport::bind
