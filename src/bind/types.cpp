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
      key_shape_(reader.attr("key_shape")),
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
  front::Type type;
  type.dtype = dtype(attribute(aval, dtype_attr_));
  for_each_item(attribute(aval, shape_attr_),
                [&](nb::handle size) { type.shape.push_back(dim(size)); });
  if (type.dtype == DType::kKey) {
    has_keys_ = true;
    type.dtype = DType::kU32;
    for_each_item(nb::object(key_shape_(attribute(aval, dtype_attr_))),
                  [&](nb::handle size) { type.shape.emplace_back(int_of(size)); });
  }
  return type;
}

bool Types::is_key(nb::handle aval) {
  return kinds_.of(aval) == Kind::kShaped && dtype(attribute(aval, dtype_attr_)) == DType::kKey;
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
