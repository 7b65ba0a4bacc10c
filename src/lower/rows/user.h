// SPDX-License-Identifier: Apache-2.0
// Lowerings that users bring along for primitives of their own.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "lower/rows/ctx.h"

namespace jaxport::lower {

using UserLowering = std::function<Values(Ctx&)>;
using UserLowerings = std::map<std::string, UserLowering, std::less<>>;  // by primitive

// The name under which the stages see a primitive with such a lowering: "user.tan"; and back.
std::string user_name(std::string_view primitive);
std::string_view without_user_name(std::string_view name);

// Runs a user's lowering. Error E014 when it builds an invalid node, or when its results are not
// those that the equation declares.
Values run_user_lowering(const UserLowering& lowering, Ctx& c);

}  // namespace jaxport::lower
