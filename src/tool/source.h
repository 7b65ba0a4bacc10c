// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "front/ir.h"

namespace jaxport::tool {

// Reads and verifies a .jir file. Error E052 when there is no such file, E010 and E030 for what is
// in it.
front::Module read_program(const std::string& path);

// "package.module:function"; a file of this name is a file all the same.
bool is_python_function(const std::string& program);

// The options in its first lines, see tool/options.h. Error E052 and E010.
std::vector<std::string> read_case_arguments(const std::string& path);

}  // namespace jaxport::tool
