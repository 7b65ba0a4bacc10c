// SPDX-License-Identifier: Apache-2.0
#include "bind/objects.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "jaxport/error.h"

namespace jaxport::bind {
namespace {

constexpr std::pair<std::string_view, Kind> kKindNames[] = {
    {"array", Kind::kArray},      {"bool", Kind::kBool},     {"complex", Kind::kComplex},
    {"dim", Kind::kDim},          {"dtype", Kind::kDType},   {"enum", Kind::kEnum},
    {"float", Kind::kFloat},      {"int", Kind::kInt},       {"jaxpr", Kind::kJaxpr},
    {"key_impl", Kind::kKeyImpl}, {"list", Kind::kList},     {"literal", Kind::kLiteral},
    {"none", Kind::kNone},        {"opaque", Kind::kOpaque}, {"record", Kind::kRecord},
    {"shaped", Kind::kShaped},    {"string", Kind::kString}, {"variable", Kind::kVariable},
};

Kind kind_from_name(std::string_view name) {
  const auto* found =
      std::ranges::find(kKindNames, name, [](const auto& row) { return row.first; });
  if (found != std::end(kKindNames)) return found->second;
  throw Error("BUG", "the Python side names an unknown kind of object: " + std::string(name));
}

}  // namespace

nb::object interned(const char* text) { return nb::steal(PyUnicode_InternFromString(text)); }

nb::object attribute(nb::handle object, const nb::object& name) {
  PyObject* result = PyObject_GetAttr(object.ptr(), name.ptr());
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

std::string text_of(nb::handle string) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(string.ptr(), &size);
  if (text == nullptr) throw nb::python_error();
  return std::string(text, static_cast<std::size_t>(size));
}

std::string class_name(nb::handle object) { return text_of(object.type().attr("__name__")); }

std::int64_t int_of(nb::handle integer) {
  const long long value = PyLong_AsLongLong(integer.ptr());  // calls __index__ of numpy's integers
  if (value != -1 || PyErr_Occurred() == nullptr) return value;
  if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw nb::python_error();
  PyErr_Clear();
  return static_cast<std::int64_t>(PyLong_AsUnsignedLongLongMask(integer.ptr()));
}

Kind Kinds::of(nb::handle object) {
  const nb::handle type = object.type();
  if (const Kind* found = known_.find(type)) return *found;
  return known_.add(type, kind_from_name(text_of(nb::object(ask_(type)))));
}

}  // namespace jaxport::bind
