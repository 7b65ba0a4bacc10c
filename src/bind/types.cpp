// SPDX-License-Identifier: Apache-2.0
#include "bind/types.h"

#include <fmt/format.h>

#include "jaxport/error.h"

namespace jaxport::bind {
namespace {

DType dtype_named(const std::string& name) {
  if (name == "key") return DType::kKey;
  if (const auto dtype = dtype_from_numpy(name)) return *dtype;
  throw Error("E076", fmt::format("element type '{}' has no counterpart in ONNX", name));
}

}  // namespace

Types::Types(const nb::object& reader, Kinds& kinds, DimScope& dims)
    : kinds_(kinds),
      dims_(dims),
      dtype_name_(reader.attr("dtype_name")),
      dim_text_(reader.attr("dim_text")),
      packed_(reader.attr("packed")),
      shape_attr_(interned("shape")),
      dtype_attr_(interned("dtype")) {}

const front::Type& Types::type(nb::handle aval) {
  if (const front::Type* found = types_.find(aval)) return *found;
  return types_.add(aval, read_type(aval));
}

front::Type Types::read_type(nb::handle aval) {
  if (kinds_.of(aval) != Kind::kShaped) {
    throw Error("E076", fmt::format("a value of kind '{}' cannot be exported", class_name(aval)))
        .help("only arrays can cross an ONNX graph; remove side effects and mutable references");
  }
  const Element& of = element(attribute(aval, dtype_attr_));
  front::Type type{of.dtype, {}};
  for_each_item(attribute(aval, shape_attr_),
                [&](nb::handle size) { type.shape.push_back(dim(size)); });
  type.shape.insert(type.shape.end(), of.sizes.begin(), of.sizes.end());
  has_packed_ = has_packed_ || !of.sizes.empty();
  return type;
}

const Element& Types::element(nb::handle dtype) {
  if (const Element* found = elements_.find(dtype)) return *found;
  const nb::object parts = packed_(dtype);  // (dtype, sizes), or None
  if (parts.is_none()) return elements_.add(dtype, {this->dtype(dtype), {}});
  Element element{dtype_named(text_of(nb::object(parts[0]))), {}};
  for_each_item(nb::object(parts[1]),
                [&](nb::handle size) { element.sizes.emplace_back(int_of(size)); });
  return elements_.add(dtype, std::move(element));
}

bool Types::is_packed(nb::handle aval) {
  return kinds_.of(aval) == Kind::kShaped && !element(attribute(aval, dtype_attr_)).sizes.empty();
}

DType Types::dtype(nb::handle dtype) {
  if (const DType* found = dtypes_.find(dtype)) return *found;
  return dtypes_.add(dtype, dtype_named(text_of(nb::object(dtype_name_(dtype)))));
}

Dim Types::dim(nb::handle size) {
  if (PyLong_CheckExact(size.ptr())) return Dim(int_of(size));
  if (kinds_.of(size) != Kind::kDim) return Dim(int_of(size));
  if (const Dim* found = sizes_.find(size)) return *found;
  return sizes_.add(size, dims_.parse(text_of(nb::object(dim_text_(size)))));
}

}  // namespace jaxport::bind
