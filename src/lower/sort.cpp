// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lower/ctx.h"

namespace jaxport::lower {
namespace {

Results top_k(Ctx& c) {
  auto [x] = c.in<1>();
  const auto axis =
      c.has("axis") ? c.param<std::int64_t>("axis") : static_cast<std::int64_t>(x.rank()) - 1;
  const auto k = c.param<std::int64_t>("k");
  const Values found = c.op.call_n("TopK", {x, c.ints({k})}, 2, {{"axis", axis}});
  return Values{found[0], c.cast(found[1], c.out_type(1).dtype)};
}

// Ascending order by TopK of everything, smallest first: equal keys keep their order. The other
// operands follow the first one.
Results sort(Ctx& c) {
  if (c.param<std::int64_t>("num_keys") != 1) c.unsupported("more than one key");
  const auto dimension = c.param<std::int64_t>("dimension");
  const Dim size = c.in_type(0).shape[static_cast<std::size_t>(dimension)];
  const Values found =
      c.op.call_n("TopK", {c.in(0), c.dim(size)}, 2, {{"axis", dimension}, {"largest", 0}});
  for (const Value& result : found) c.op.set_shape(result, c.in_type(0).shape);
  Values results{found[0]};
  for (std::size_t i = 1; i < c.operands().size(); ++i) {
    results.push_back(c.op.GatherElements(c.in(i), found[1], onnx::Args{{"axis", dimension}}));
  }
  return results;
}

constexpr Row kRows[] = {{"sort", sort}, {"top_k", top_k}};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> sort_rows() { return kRows; }

}  // namespace jaxport::lower
