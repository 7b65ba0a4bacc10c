// SPDX-License-Identifier: Apache-2.0
// Changing front IR: what mutations and shrinking share with jaxport reduce.
#pragma once

#include "reduce/edit.h"

namespace jaxport::fuzz {

using reduce::clean;
using reduce::constant_of;
using reduce::definitions;
using reduce::EachDim;
using reduce::edit_region;
using reduce::for_each_dim;
using reduce::Inserter;
using reduce::list;
using reduce::literal;
using reduce::region_count;
using reduce::replace_size;
using reduce::replace_uses;
using reduce::shape_of_program;
using reduce::with_dtype;

}  // namespace jaxport::fuzz
