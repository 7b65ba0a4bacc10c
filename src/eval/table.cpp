// SPDX-License-Identifier: Apache-2.0
// All families in one lookup, and what holds for every primitive.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "eval/call.h"
#include "eval/eval.h"

namespace jaxport::eval {
namespace {

constexpr std::array kFamilies{
    pointwise_rows, math_rows, convert_rows, reduce_rows,  window_rows, cumulative_rows, shape_rows,
    contract_rows,  conv_rows, index_rows,   scatter_rows, sort_rows,   control_rows,    fold_rows,
};

// Offsets into a tensor must fit 64 bits even where a dim of size 0 makes the tensor empty.
void check_offsets(const Call& c, const Shape& shape) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 48;
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    const std::int64_t factor = std::max<std::int64_t>(size, 1);
    c.require(size >= 0 && factor <= kLimit / count, "a shape is out of range");
    count *= factor;
  }
}

void check_result(const Call& c, const Tensor& result, std::size_t i) {
  const Shape declared = c.out_shape(i);
  if (result.dtype == c.out_dtype(i) && result.shape == declared) return;
  c.fail(fmt::format("result {} is {}[{}], declared as {}[{}]", i, name_of(result.dtype),
                     fmt::join(result.shape, ","), name_of(c.out_dtype(i)),
                     fmt::join(declared, ",")));
}

}  // namespace

const Row* find_row(std::string_view primitive) {
  if (front::find_call(primitive)) return call_row();
  for (const auto family : kFamilies) {
    const std::span<const Row> rows = family();
    const auto found = std::ranges::lower_bound(rows, primitive, {}, &Row::primitive);
    if (found != rows.end() && found->primitive == primitive) return &*found;
  }
  return nullptr;
}

bool knows(std::string_view primitive) { return find_row(primitive) != nullptr; }

std::vector<Tensor> apply(const front::Eqn& eqn, std::span<const Tensor> operands,
                          std::span<const front::Type> results, const DimBindings& bindings,
                          const RunRegion& run_region) {
  const Row* row = find_row(eqn.primitive);
  if (row == nullptr) {
    throw Error("E040", fmt::format("no evaluation for primitive '{}'", eqn.primitive));
  }
  const Call c{
      .eqn = eqn, .in = operands, .out = results, .bindings = bindings, .run_region = run_region};
  for (const Tensor& operand : operands) check_offsets(c, operand.shape);
  for (std::size_t i = 0; i < results.size(); ++i) check_offsets(c, c.out_shape(i));
  Results values = row->apply(c);
  c.require(values.size() == results.size(), "another number of results is declared");
  for (std::size_t i = 0; i < values.size(); ++i) check_result(c, values[i], i);
  return values;
}

}  // namespace jaxport::eval
