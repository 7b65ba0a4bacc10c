// SPDX-License-Identifier: Apache-2.0
// Python objects as the importer meets them: what kind each is, and the names of their attributes.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

namespace jaxport::bind {

namespace nb = nanobind;

// What an object stands for. The Python side (jaxport._jax.Reader.kind) decides once for each type.
enum class Kind : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kComplex,
  kString,
  kDType,
  kDim,
  kEnum,
  kRecord,
  kList,
  kJaxpr,
  kArray,
  kKeyImpl,
  kLiteral,
  kVariable,
  kShaped,
  kOpaque,
};

// An attribute name that Python compares by identity.
nb::object interned(const char* text);
nb::object attribute(nb::handle object, const nb::object& name);
std::string text_of(nb::handle string);
std::string class_name(nb::handle object);
// Anything with __index__. Integers beyond int64 exist in u64 only and keep their bits.
std::int64_t int_of(nb::handle integer);

// Calls visit(item) for each item of a tuple or list, without an iterator object.
template <class Visit>
void for_each_item(nb::handle sequence, Visit visit) {
  if (PyTuple_Check(sequence.ptr())) {
    const Py_ssize_t size = PyTuple_Size(sequence.ptr());
    for (Py_ssize_t i = 0; i < size; ++i) visit(nb::handle(PyTuple_GetItem(sequence.ptr(), i)));
    return;
  }
  for (nb::handle item : sequence) visit(item);
}

// What is known about objects, by identity. Keeps them alive so that no address is used twice.
template <class T>
class ByIdentity {
 public:
  T* find(nb::handle object) {
    const auto found = known_.find(object.ptr());
    return found == known_.end() ? nullptr : &found->second.value;
  }
  T& add(nb::handle object, T value) {
    return known_.emplace(object.ptr(), Entry{nb::borrow(object), std::move(value)})
        .first->second.value;
  }

 private:
  struct Entry {
    nb::object object;
    T value;
  };
  std::unordered_map<PyObject*, Entry> known_;
};

// Remembers the kind of every type met.
class Kinds {
 public:
  explicit Kinds(const nb::object& reader) : ask_(reader.attr("kind")) {}
  Kind of(nb::handle object);

 private:
  nb::object ask_;
  ByIdentity<Kind> known_;
};

}  // namespace jaxport::bind
