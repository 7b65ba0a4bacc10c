// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace jaxport {

// The package takes its version from here: 1.2.3, or 1.2.3rc1 before it.
inline constexpr const char* kVersion = "0.1.0";

}  // namespace jaxport
