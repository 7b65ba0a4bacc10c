// SPDX-License-Identifier: Apache-2.0
// Abstract values, dtypes and symbolic sizes of JAX as front types.
#pragma once

#include "bind/objects.h"
#include "front/ir.h"

namespace jaxport::bind {

// What one element of an array consists of. A random key is its words and a complex number its
// parts, as last axes of the array: key<fry>[4] is u32[4,2], c64[3] is f32[3,2].
struct Element {
  DType dtype;
  Dims sizes;  // empty for plain numbers
};

// Every object is read once; JAX interns most of them, so a large program has few.
class Types {
 public:
  Types(const nb::object& reader, Kinds& kinds, DimScope& dims);

  const front::Type& type(nb::handle aval);  // Error E076: not an array (a token, a ref)
  DType dtype(nb::handle dtype);             // Error E076: no element type of ours
  const Element& element(nb::handle dtype);
  Dim dim(nb::handle size);                        // an integer or a symbolic expression
  bool has_packed() const { return has_packed_; }  // whether any type so far has packed elements
  bool is_packed(nb::handle aval);

 private:
  front::Type read_type(nb::handle aval);

  Kinds& kinds_;
  DimScope& dims_;
  nb::object dtype_name_, dim_text_, packed_, shape_attr_, dtype_attr_;
  bool has_packed_ = false;
  ByIdentity<front::Type> types_;
  ByIdentity<DType> dtypes_;
  ByIdentity<Element> elements_;
  ByIdentity<Dim> sizes_;
};

}  // namespace jaxport::bind
