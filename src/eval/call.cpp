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

bool Call::has(std::string_view name) const {
  const front::Attr* found = front::find(eqn.attrs, name);
  return found != nullptr && !found->is_none();
}

const front::Attr& Call::attr(std::string_view name) const {
  const front::Attr* found = front::find(eqn.attrs, name);
  if (found == nullptr) {
    throw Error("E031", fmt::format("primitive '{}' lacks parameter '{}'", eqn.primitive, name));
  }
  return *found;
}

// No size, step or offset of a tensor in memory needs more than 31 bits; without larger ones the
// product of two never overflows.
std::int64_t Call::integer(const front::Attr& value) const {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  std::int64_t number;
  if (const auto* plain = value.get_if<std::int64_t>()) {
    number = *plain;
  } else if (const auto* dim = value.get_if<Dim>()) {
    number = evaluate(*dim, bindings);
  } else {
    throw Error("E031", fmt::format("primitive '{}' needs an integer parameter", eqn.primitive));
  }
  require(number >= -kLimit && number <= kLimit, fmt::format("{} is too large", number));
  return number;
}

std::int64_t Call::integer(std::string_view name) const { return integer(attr(name)); }

Ints Call::integers(const front::Attr& list) const {
  const auto* items = list.get_if<front::List>();
  if (items == nullptr) {
    throw Error("E031", fmt::format("primitive '{}' needs a list of integers", eqn.primitive));
  }
  Ints numbers;
  numbers.reserve(items->size());
  for (const front::Attr& item : *items) numbers.push_back(integer(item));
  return numbers;
}

Ints Call::integers(std::string_view name) const { return integers(attr(name)); }

std::vector<Ints> Call::integer_lists(std::string_view name) const {
  const auto* items = attr(name).get_if<front::List>();
  require(items != nullptr, fmt::format("'{}' is not a list", name));
  std::vector<Ints> lists;
  lists.reserve(items->size());
  for (const front::Attr& item : *items) lists.push_back(integers(item));
  return lists;
}

Ints Call::integers_or(std::string_view name, std::size_t count, std::int64_t otherwise) const {
  if (!has(name)) return Ints(count, otherwise);
  Ints numbers = integers(name);
  require(numbers.size() == count, fmt::format("'{}' needs {} entries", name, count));
  return numbers;
}

const front::Attr& Call::field(std::string_view record, std::string_view name) const {
  const auto* fields = attr(record).get_if<front::Record>();
  require(fields != nullptr, fmt::format("'{}' is not a record", record));
  const auto found = std::ranges::find(fields->fields, name, [](const auto& f) { return f.first; });
  require(found != fields->fields.end(), fmt::format("'{}' lacks the field '{}'", record, name));
  return found->second;
}

std::int64_t Call::axis(std::string_view name, std::int64_t rank) const {
  const std::int64_t value = integer(name);
  require(value >= 0 && value < rank, fmt::format("'{}' is out of range", name));
  return value;
}

Ints Call::axes(const front::Attr& list, std::int64_t rank) const {
  Ints found = integers(list);
  std::vector<bool> seen(static_cast<std::size_t>(rank), false);
  for (const std::int64_t axis : found) {
    require(axis >= 0 && axis < rank, fmt::format("axis {} is out of range", axis));
    require(!seen[axis], fmt::format("axis {} appears twice", axis));
    seen[axis] = true;
  }
  return found;
}

Ints Call::axes(std::string_view name, std::int64_t rank) const { return axes(attr(name), rank); }

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
