// SPDX-License-Identifier: Apache-2.0
// Which parameters the primitives of JAX have, in the versions that are supported. A parameter that
// is not listed may change what an equation means: it is refused, never ignored.
#pragma once

#include <span>
#include <string_view>

#include "front/ir.h"

namespace jaxport::front {

// A primitive, or a named tuple among parameters, with all that it may have.
struct Signature {
  std::string_view name;
  std::string_view parameters;  // separated by blanks
  bool has(std::string_view parameter) const;
};
std::span<const Signature> signatures();  // sorted by name
// nullptr for a primitive that JAX does not have or the compiler does not know.
const Signature* find_signature(std::string_view name);

// Parameters of any primitive that cannot change the numbers of a result on one device. The
// importer drops them; a .jir file may have them.
std::span<const std::string_view> meaningless_parameters();

// Error E031 that names the parameter and the primitive.
[[noreturn]] void refuse_parameter(std::string_view primitive, std::string_view parameter);
// Error E031 unless the parameters of the equation, and the fields of records among them, are
// known.
void check_parameters(const Eqn& eqn);
void check_fields(std::string_view primitive, const Record& record);

}  // namespace jaxport::front
