// SPDX-License-Identifier: Apache-2.0
// Source lines and name stacks of equations.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "bind/objects.h"
#include "front/ir.h"

namespace jaxport::bind {

// Equal tracebacks are resolved once: thousands of equations share a hundred source lines.
class Locations {
 public:
  Locations(const nb::object& reader, front::Module& module);
  front::LocationId of(nb::handle source_info);

 private:
  std::size_t frame_of(const nb::object& traceback);
  std::size_t scope_of(const nb::object& name_stack);
  front::LocationId add(std::size_t frame, std::size_t scope);

  front::Module& module_;
  nb::object resolve_, scope_text_, traceback_attr_, name_stack_attr_;
  nb::dict frame_by_traceback_;
  std::vector<front::Location> frames_;
  ByIdentity<std::size_t> scope_by_stack_;
  std::vector<std::string> scopes_;
  std::map<std::pair<std::size_t, std::size_t>, front::LocationId> known_;
};

}  // namespace jaxport::bind
