// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "front/ir.h"

namespace jaxport::tool {

// Reads and verifies a .jir file. Error E052 when there is no such file, E010 and E030 for what is
// in it.
front::Module read_program(const std::string& path);

}  // namespace jaxport::tool
