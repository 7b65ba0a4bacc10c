// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "raise/raise.h"

namespace jaxport::raise {

// The rotary embedding that `root` is along its label p of size two; empty, perhaps with a remark,
// when it is none.
axis::Use rope_along(const Matcher& m, const axis::Use& root, axis::Label p);

}  // namespace jaxport::raise
