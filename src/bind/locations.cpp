// SPDX-License-Identifier: Apache-2.0
#include "bind/locations.h"

namespace jaxport::bind {

Locations::Locations(const nb::object& reader, front::Module& module)
    : module_(module),
      resolve_(reader.attr("source_frame")),
      scope_text_(reader.attr("scope_text")),
      traceback_attr_(interned("traceback")),
      name_stack_attr_(interned("name_stack")) {}

front::LocationId Locations::of(nb::handle source_info) {
  const std::size_t frame = frame_of(attribute(source_info, traceback_attr_));
  const std::size_t scope = scope_of(attribute(source_info, name_stack_attr_));
  if (auto found = known_.find({frame, scope}); found != known_.end()) return found->second;
  return known_.emplace(std::pair(frame, scope), add(frame, scope)).first->second;
}

// Tracebacks of equal frames are separate objects with equal hashes, so Python's dict finds them.
std::size_t Locations::frame_of(const nb::object& traceback) {
  if (PyObject* found = PyDict_GetItemWithError(frame_by_traceback_.ptr(), traceback.ptr())) {
    return static_cast<std::size_t>(int_of(found));
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  const nb::object frame = resolve_(traceback);  // (file, line, function, library)
  front::Location location;
  location.file = text_of(frame[0]);
  location.line = static_cast<int>(int_of(frame[1]));
  location.function = text_of(frame[2]);
  location.library = text_of(frame[3]);
  frames_.push_back(std::move(location));
  frame_by_traceback_[traceback] = frames_.size() - 1;
  return frames_.size() - 1;
}

std::size_t Locations::scope_of(const nb::object& name_stack) {
  if (const std::size_t* found = scope_by_stack_.find(name_stack)) return *found;
  scopes_.push_back(text_of(nb::object(scope_text_(name_stack))));
  return scope_by_stack_.add(name_stack, scopes_.size() - 1);
}

front::LocationId Locations::add(std::size_t frame, std::size_t scope) {
  front::Location location = frames_[frame];
  location.scope = scopes_[scope];
  return module_.add_location(std::move(location));
}

}  // namespace jaxport::bind
