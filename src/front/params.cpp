// SPDX-License-Identifier: Apache-2.0
// Typed reading of an equation's parameters.
#include <fmt/format.h>

#include "front/ir.h"
#include "jaxport/error.h"

namespace jaxport::front {
namespace {

const Attr& attr(const Eqn& eqn, std::string_view name) {
  if (const Attr* found = find(eqn.attrs, name)) return *found;
  throw Error("E031", fmt::format("primitive '{}' has no parameter '{}'", eqn.primitive, name));
}

[[noreturn]] void wrong_type(const Eqn& eqn, std::string_view name, std::string_view expected) {
  throw Error("E031", fmt::format("parameter '{}' of primitive '{}' is not {}", name, eqn.primitive,
                                  expected));
}

template <class T>
const T& get(const Eqn& eqn, std::string_view name, std::string_view expected) {
  if (const T* value = attr(eqn, name).get_if<T>()) return *value;
  wrong_type(eqn, name, expected);
}

}  // namespace

bool get_bool(const Eqn& eqn, std::string_view name) { return get<bool>(eqn, name, "a bool"); }

std::int64_t get_int(const Eqn& eqn, std::string_view name) {
  const Attr& value = attr(eqn, name);
  if (const auto* integer = value.get_if<std::int64_t>()) return *integer;
  if (const auto* dim = value.get_if<Dim>(); dim != nullptr && dim->is_static())
    return dim->value();
  wrong_type(eqn, name, "an integer");
}

double get_double(const Eqn& eqn, std::string_view name) {
  const Attr& value = attr(eqn, name);
  if (const auto* number = value.get_if<double>()) return *number;
  if (const auto* integer = value.get_if<std::int64_t>()) return static_cast<double>(*integer);
  wrong_type(eqn, name, "a number");
}

std::string get_string(const Eqn& eqn, std::string_view name) {
  const Attr& value = attr(eqn, name);
  if (const auto* text = value.get_if<std::string>()) return *text;
  if (const auto* choice = value.get_if<Enum>()) return choice->name;
  wrong_type(eqn, name, "a string");
}

DType get_dtype(const Eqn& eqn, std::string_view name) { return get<DType>(eqn, name, "a dtype"); }

Dim get_dim(const Eqn& eqn, std::string_view name) {
  const Attr& value = attr(eqn, name);
  if (const auto* integer = value.get_if<std::int64_t>()) return *integer;
  if (const auto* dim = value.get_if<Dim>()) return *dim;
  wrong_type(eqn, name, "a size");
}

Dims get_dims(const Eqn& eqn, std::string_view name) {
  constexpr std::string_view kExpected = "a list of sizes";
  Dims dims;
  for (const Attr& item : get<List>(eqn, name, kExpected)) {
    if (const auto* integer = item.get_if<std::int64_t>()) {
      dims.emplace_back(*integer);
    } else if (const auto* dim = item.get_if<Dim>()) {
      dims.push_back(*dim);
    } else {
      wrong_type(eqn, name, kExpected);
    }
  }
  return dims;
}

std::vector<std::int64_t> get_ints(const Eqn& eqn, std::string_view name) {
  constexpr std::string_view kExpected = "a list of integers";
  std::vector<std::int64_t> integers;
  for (const Attr& item : get<List>(eqn, name, kExpected)) {
    if (const auto* integer = item.get_if<std::int64_t>()) {
      integers.push_back(*integer);
    } else if (const auto* dim = item.get_if<Dim>(); dim != nullptr && dim->is_static()) {
      integers.push_back(dim->value());
    } else {
      wrong_type(eqn, name, kExpected);
    }
  }
  return integers;
}

const Function& get_region(const Eqn& eqn, std::string_view name) {
  return *get<Region>(eqn, name, "a nested function");
}

}  // namespace jaxport::front
