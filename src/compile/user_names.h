// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "front/ir.h"
#include "lower/rows/user.h"

namespace jaxport::compile {

// The module with every equation that has a user's lowering under a name of its own, "user.tan":
// no stage knows such a primitive, so none translates, rewrites or evaluates it on its way.
front::Module with_user_names(const front::Module& module, const lower::UserLowerings& lowerings);

// The lowerings by these names.
lower::UserLowerings by_user_name(const lower::UserLowerings& lowerings);

}  // namespace jaxport::compile
