// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "raise/engine/raise.h"

namespace jaxport::raise {

// The rotary embedding that `root` is along its label p of size two; empty, perhaps with a remark,
// when it is none.
axis::Use rope_along(const Matcher& m, const axis::Use& root, axis::Label p);

// [x_0 cos - x_1 sin, x_1 cos + x_0 sin] along p
axis::Use rotated(const axis::Use& x, const axis::Use& cos, const axis::Use& sin, axis::Label p);

}  // namespace jaxport::raise
