// SPDX-License-Identifier: Apache-2.0
// Parameters of equations as typed attributes.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "bind/objects.h"
#include "bind/types.h"
#include "front/ir.h"
#include "front/parameters.h"

namespace jaxport::bind {

// Reads a nested jaxpr; the importer shares one Region between equations that share the jaxpr.
using ReadRegion = std::function<front::Region(nb::handle jaxpr)>;

class Params {
 public:
  Params(const nb::object& reader, Kinds& kinds, Types& types, ReadRegion read_region);

  // All parameters but those that cannot change the result (shardings, layouts, …), sorted by name.
  front::Attrs attrs(nb::handle params);
  front::Attr attr(nb::handle value);
  // Error E031 for a parameter that the primitive does not have in any JAX that is known.
  void check_names(const front::Signature& signature, nb::handle params);

 private:
  struct Name {
    std::string text;
    bool ignored, ignored_when_none;
  };
  const Name& name_of(nb::handle key);
  front::List list(nb::handle sequence);
  front::Record record(nb::handle tuple);
  front::Attr array(const nb::object& value);
  front::Attr integer(nb::handle value);
  front::Opaque opaque(nb::handle value);

  Kinds& kinds_;
  Types& types_;
  ReadRegion read_region_;
  nb::object ignored_, ignored_when_none_, array_of_, impl_name_, dtype_attr_, name_attr_;
  ByIdentity<Name> names_;
  nb::dict opaque_;  // by class and object: which of its class it is
  std::unordered_map<std::string, std::size_t> unsorted_opaque_counts_;  // by name of the class
};

}  // namespace jaxport::bind
