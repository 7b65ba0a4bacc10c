// SPDX-License-Identifier: Apache-2.0
// Lowerings that users bring along for primitives of their own.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "lower/rows/ctx.h"

namespace jaxport::lower {

using UserLowering = std::function<Values(Ctx&)>;
using UserLowerings = std::map<std::string, UserLowering, std::less<>>;  // by primitive

// Runs a user's lowering. Error E014 when it builds an invalid node, or when its results are not
// those that the equation declares.
Values run_user_lowering(const UserLowering& lowering, Ctx& c);

}  // namespace jaxport::lower
