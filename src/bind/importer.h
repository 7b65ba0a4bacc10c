// SPDX-License-Identifier: Apache-2.0
// A jaxpr as front IR, read directly from JAX's Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "front/ir.h"

namespace jaxport::bind {

struct ImportRequest {
  nanobind::object jaxpr;   // what jax.make_jaxpr returns
  nanobind::object reader;  // jaxport._jax.Reader: everything that depends on JAX's version
  std::string name;
  std::vector<std::string> input_names, output_names;  // one for each parameter and result
  nanobind::object path_of;              // callable: a constant -> its path, "" when unknown
  std::vector<std::string> constraints;  // on symbolic sizes: "T >= 4"
};

// Constants are views of JAX's own buffers. Throws Error E076 for values that are no arrays.
front::Module import_jaxpr(const ImportRequest& request);

}  // namespace jaxport::bind
