// SPDX-License-Identifier: Apache-2.0
#include "bind/errors.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "jaxport/error.h"

namespace jaxport::bind {
namespace {

namespace nb = nanobind;

nb::object conversion_error() {
  return nb::module_::import_("jaxport.errors").attr("ConversionError");
}

void raise_conversion_error(const Error& error) {
  const nb::object type = conversion_error();
  const nb::object raised = type(error.code(), error.message(), nb::arg("source") = error.source(),
                                 nb::arg("equation") = error.equation(),
                                 nb::arg("notes") = error.notes(), nb::arg("help") = error.help());
  PyErr_SetObject(type.ptr(), raised.ptr());
}

}  // namespace

void rethrow_conversion_error(const nb::python_error& raised) {
  if (!raised.matches(conversion_error())) return;
  const auto text = [&](const char* name) {
    return nb::cast<std::string>(raised.value().attr(name));
  };
  Error error(text("code"), text("message"));
  error.at(text("source")).equation(text("equation")).help(text("help"));
  for (const nb::handle note : raised.value().attr("notes")) {
    error.note(nb::cast<std::string>(note));
  }
  throw error;
}

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise_conversion_error(error);
    }
  });
}

}  // namespace jaxport::bind
