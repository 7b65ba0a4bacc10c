// SPDX-License-Identifier: Apache-2.0
// Abstract values, dtypes and symbolic sizes of JAX as front types.
#pragma once

#include "bind/objects.h"
#include "front/ir.h"

namespace jaxport::bind {

// Every object is read once; JAX interns most of them, so a large program has few.
class Types {
 public:
  Types(const nb::object& reader, Kinds& kinds, DimScope& dims);

  // A random key is its data: key<fry>[4] is u32[4,2]. Error E076: not an array (a token, a ref).
  const front::Type& type(nb::handle aval);
  DType dtype(nb::handle dtype);               // Error E076: no element type of ours
  Dim dim(nb::handle size);                    // an integer or a symbolic expression
  bool has_keys() const { return has_keys_; }  // whether any type so far is one of random keys
  bool is_key(nb::handle aval);

 private:
  front::Type read_type(nb::handle aval);

  Kinds& kinds_;
  DimScope& dims_;
  nb::object dtype_name_, dim_text_, key_shape_, shape_attr_, dtype_attr_;
  bool has_keys_ = false;
  ByIdentity<front::Type> types_;
  ByIdentity<DType> dtypes_;
  ByIdentity<Dim> sizes_;
};

}  // namespace jaxport::bind
