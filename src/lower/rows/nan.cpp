// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/nan.h"

namespace jaxport::lower {

Values if_any_nan(Ctx& c, const Value& x, const onnx::Build& with, const onnx::Build& without,
                  const std::vector<Dims>& shapes) {
  const Value may_have_nan = is_nan(c.op.ReduceSum(x, onnx::Args{{"keepdims", 0}}));
  const auto careful = subgraph(c.op, with), plain = subgraph(c.op, without);
  Values results = c.op.call_n("If", {may_have_nan}, shapes.size(),
                               {{"then_branch", careful}, {"else_branch", plain}});
  for (std::size_t i = 0; i < shapes.size(); ++i) c.op.set_shape(results[i], shapes[i]);
  return results;
}

}  // namespace jaxport::lower
