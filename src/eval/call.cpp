// SPDX-License-Identifier: Apache-2.0
#include "eval/call.h"

#include <fmt/format.h>

#include <algorithm>

#include "jaxport/error.h"

namespace jaxport::eval {

Shape Call::out_shape(std::size_t result) const {
  Shape shape;
  shape.reserve(out[result].shape.size());
  for (const Dim& dim : out[result].shape) shape.push_back(evaluate(dim, bindings));
  return shape;
}

// No size, step or offset of a tensor in memory needs more than 31 bits; without larger ones the
// product of two never overflows.
std::int64_t Call::bound(const Dim& size) const {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  const std::int64_t number = evaluate(size, bindings);
  require(number >= -kLimit && number <= kLimit, fmt::format("{} is too large", number));
  return number;
}

Ints Call::bound(const Dims& sizes) const {
  Ints numbers;
  numbers.reserve(sizes.size());
  for (const Dim& size : sizes) numbers.push_back(bound(size));
  return numbers;
}

const Ints& Call::checked(const Ints& axes, std::int64_t rank) const {
  std::vector<bool> seen(static_cast<std::size_t>(rank), false);
  for (const std::int64_t axis : axes) {
    require(axis >= 0 && axis < rank, fmt::format("axis {} is out of range", axis));
    require(!seen[axis], fmt::format("axis {} appears twice", axis));
    seen[axis] = true;
  }
  return axes;
}

Ints Call::axes(std::string_view name, std::int64_t rank) const {
  return checked(front::get_ints(eqn, name), rank);
}

std::int64_t Call::axis(std::string_view name, std::int64_t rank) const {
  return checked({front::get_int(eqn, name)}, rank)[0];
}

void Call::require_counts(std::size_t operands, std::size_t results) const {
  require(in.size() == operands, fmt::format("needs {} operands", operands));
  require(out.size() == results, fmt::format("needs {} results", results));
}

void Call::fail(std::string_view why) const {
  throw Error("E041", fmt::format("primitive '{}': {}", eqn.primitive, why));
}

Error Call::no_dtype(DType dtype) const {
  return Error(
      "E040", fmt::format("no evaluation of primitive '{}' for {}", eqn.primitive, name_of(dtype)));
}

}  // namespace jaxport::eval
