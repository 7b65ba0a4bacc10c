// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/rows/ctx.h"
#include "onnx/subgraph.h"

namespace jaxport::lower {

// What `with` builds where x may have a NaN, else what `without` builds: results of these shapes.
// The sum of all elements tells at little cost; it is NaN, too, where x has infinities of both
// signs, so that `with` must be right for every x.
Values if_any_nan(Ctx& c, const Value& x, const onnx::Build& with, const onnx::Build& without,
                  const std::vector<Dims>& shapes);

}  // namespace jaxport::lower
