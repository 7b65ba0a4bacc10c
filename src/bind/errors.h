// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace jaxport::bind {

// From here on jaxport::Error reaches Python as jaxport.ConversionError.
void translate_errors();

// Throws the Error that such a Python exception came from; returns when it is another exception.
void rethrow_conversion_error(const nanobind::python_error& raised);

}  // namespace jaxport::bind
