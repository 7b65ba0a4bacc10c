// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "front/ir.h"
#include "lower/rows/user.h"

namespace jaxport::compile {

// The module with the equations that a user lowers under names of their own, "user.tan": no stage
// knows such a primitive, so none translates, rewrites or evaluates it on its way. `is_users` is
// asked about the equations of `module`.
using IsUsers = std::function<bool(const front::Eqn&)>;
front::Module with_user_names(const front::Module& module, const IsUsers& is_users);

// The lowerings by these names.
lower::UserLowerings by_user_name(const lower::UserLowerings& lowerings);

}  // namespace jaxport::compile
