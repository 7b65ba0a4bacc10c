// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace jaxport::bind {

void define_session(nanobind::module_& m);

}  // namespace jaxport::bind
