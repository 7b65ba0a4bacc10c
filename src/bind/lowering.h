// SPDX-License-Identifier: Apache-2.0
// Lowerings that are Python functions.
#pragma once

#include <nanobind/nanobind.h>

#include "lower/rows/user.h"

namespace jaxport::bind {

// `functions`: by primitive, called with a _core.Lowering, giving a list of _core.Value. The result
// holds Python objects: it must be destroyed under the interpreter's lock.
lower::UserLowerings user_lowerings(const nanobind::dict& functions);

void define_lowering(nanobind::module_& m);

}  // namespace jaxport::bind
