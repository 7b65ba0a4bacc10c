// SPDX-License-Identifier: Apache-2.0
#include "lower/ctx.h"

namespace jaxport::lower {
namespace {

Results cumsum(Ctx& c) {
  auto [x] = c.in<1>();
  const Value axis = c.op.scalar(static_cast<double>(c.param<std::int64_t>("axis")), DType::kI64);
  return c.op.CumSum(x, axis, onnx::Args{{"reverse", c.param<bool>("reverse") ? 1 : 0}});
}

constexpr Row kRows[] = {{"cumsum", cumsum}};

}  // namespace

std::span<const Row> cumulative_rows() { return kRows; }

}  // namespace jaxport::lower
