// SPDX-License-Identifier: Apache-2.0
#include "bind/params.h"

#include <algorithm>
#include <utility>

#include "bind/arrays.h"

namespace jaxport::bind {
namespace {

// GatherScatterMode.FILL_OR_DROP -> "fill_or_drop"
std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool contains(const nb::object& set, nb::handle key) {
  const int found = PySet_Contains(set.ptr(), key.ptr());
  if (found < 0) throw nb::python_error();
  return found == 1;
}

double double_of(nb::handle number) {
  const double value = PyFloat_AsDouble(number.ptr());
  if (value == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

bool bool_of(nb::handle value) {
  const int truth = PyObject_IsTrue(value.ptr());
  if (truth < 0) throw nb::python_error();
  return truth == 1;
}

}  // namespace

Params::Params(const nb::object& reader, Kinds& kinds, Types& types, ReadRegion read_region)
    : kinds_(kinds),
      types_(types),
      read_region_(std::move(read_region)),
      ignored_(reader.attr("ignored")),
      ignored_when_none_(reader.attr("ignored_when_none")),
      array_of_(reader.attr("array")),
      impl_name_(reader.attr("key_impl_name")),
      dtype_attr_(interned("dtype")),
      name_attr_(interned("name")) {}

front::Attrs Params::attrs(nb::handle params) {
  front::Attrs result;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(params.ptr(), &position, &key, &value) != 0) {
    const Name& name = name_of(key);
    if (name.ignored || (name.ignored_when_none && Py_IsNone(value) != 0)) continue;
    result.emplace_back(name.text, attr(value));
  }
  std::ranges::sort(result, {},
                    [](const auto& entry) -> const std::string& { return entry.first; });
  return result;
}

void Params::check_names(const front::Signature& signature, nb::handle params) {
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(params.ptr(), &position, &key, &value) != 0) {
    const Name& name = name_of(key);
    if (name.ignored || (name.ignored_when_none && Py_IsNone(value) != 0)) continue;
    if (!signature.has(name.text)) front::refuse_parameter(signature.name, name.text);
  }
}

const Params::Name& Params::name_of(nb::handle key) {
  if (const Name* found = names_.find(key)) return *found;
  return names_.add(key,
                    {text_of(key), contains(ignored_, key), contains(ignored_when_none_, key)});
}

front::Attr Params::attr(nb::handle value) {
  switch (kinds_.of(value)) {
    case Kind::kNone:
      return {front::None{}};
    case Kind::kBool:
      return {bool_of(value)};
    case Kind::kInt:
      return integer(value);
    case Kind::kFloat:
      return {double_of(value)};
    case Kind::kString:
      return {text_of(value)};
    case Kind::kDType:
      return {types_.dtype(value)};
    case Kind::kDim:
      return {types_.dim(value)};
    case Kind::kEnum:
      return {front::Enum{lower_case(text_of(attribute(value, name_attr_)))}};
    case Kind::kKeyImpl:
      return {front::Enum{text_of(impl_name_(value))}};
    case Kind::kList:
      return {list(value)};
    case Kind::kRecord:
      return {record(value)};
    case Kind::kJaxpr:
      return {read_region_(value)};
    case Kind::kArray:
      return array(nb::borrow(value));
    default:
      return {opaque(value)};
  }
}

front::List Params::list(nb::handle sequence) {
  front::List items;
  for_each_item(sequence, [&](nb::handle item) { items.push_back(attr(item)); });
  return items;
}

front::Record Params::record(nb::handle tuple) {
  front::Record result{class_name(tuple), {}};
  std::vector<std::string> fields;
  for_each_item(tuple.attr("_fields"), [&](nb::handle field) { fields.push_back(text_of(field)); });
  std::size_t index = 0;
  for_each_item(tuple, [&](nb::handle item) {
    result.fields.emplace_back(std::move(fields[index++]), attr(item));
  });
  front::check_fields(result.name, result);
  return result;
}

// An integer that only u64 holds, such as JAX's fill for it, is an array of one; one beyond 64 bits
// is kept as its digits.
front::Attr Params::integer(nb::handle value) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred() == nullptr) {
      return {int_scalar(DType::kU64, static_cast<std::int64_t>(large))};
    }
    PyErr_Clear();
  }
  if (overflow != 0) return {front::Opaque{text_of(nb::str(value))}};
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return {std::int64_t{number}};
}

// The class, and from the second object that differs from those before it on, a number: equations
// that differ in such a parameter are not equal.
front::Opaque Params::opaque(nb::handle value) {
  nb::object key = nb::make_tuple(value.type(), value);
  PyObject* found = PyDict_GetItemWithError(opaque_.ptr(), key.ptr());
  if (found == nullptr && PyErr_Occurred() != nullptr) {  // it cannot be hashed or compared
    PyErr_Clear();
    key = nb::make_tuple(nb::none(), nb::int_(reinterpret_cast<std::uintptr_t>(value.ptr())));
    found = PyDict_GetItem(opaque_.ptr(), key.ptr());
  }
  std::string name = class_name(value);
  std::int64_t which = 0;
  if (found != nullptr) {
    which = int_of(PyTuple_GET_ITEM(found, 0));
  } else {
    which = ++unsorted_opaque_counts_[name];
    // The object lives on beside its number, so that no other has its address.
    opaque_[key] = nb::make_tuple(which, nb::borrow(value));
  }
  return {which == 1 ? std::move(name) : name + " #" + std::to_string(which)};
}

front::Attr Params::array(const nb::object& value) {
  const nb::object dtype = attribute(value, dtype_attr_);
  return {view_of(array_of_(value, dtype), types_.element(dtype).dtype)};
}

}  // namespace jaxport::bind
