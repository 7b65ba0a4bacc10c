// SPDX-License-Identifier: Apache-2.0
// Rules that are wrong on purpose, each in the way that a real rule once was: the search must find
// a counterexample to every one.
#pragma once

#include <span>

#include "raise/engine/raise.h"

namespace jaxport::fuzz {

raise::Rules faulty_rules();

}  // namespace jaxport::fuzz
