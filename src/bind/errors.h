// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace jaxport::bind {

// From here on jaxport::Error reaches Python as jaxport.ConversionError.
void translate_errors();

}  // namespace jaxport::bind
