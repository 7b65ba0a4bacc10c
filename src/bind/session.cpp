// SPDX-License-Identifier: Apache-2.0
#include "tool/session.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bind/session.h"

namespace jaxport::bind {
namespace {

namespace nb = nanobind;

// Ctrl-C and other signals, while the compiler works without the interpreter's lock.
void raise_signals() {
  nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void make_session(tool::Session* place, std::int64_t nodes, std::uint64_t bytes, int depth,
                  std::optional<double> seconds, std::string dump, std::string log,
                  bool shows_progress, nb::callable print) {
  tool::SessionSettings settings;
  settings.limits = {nodes, bytes, depth,
                     seconds.value_or(std::numeric_limits<double>::infinity())};
  settings.dump = std::move(dump);
  settings.log = std::move(log);
  settings.shows_progress = shows_progress;
  settings.print = [print = std::move(print)](std::string_view line) {
    nb::gil_scoped_acquire lock;
    print(nb::str(line.data(), line.size()));
  };
  settings.interrupt = raise_signals;
  new (place) tool::Session(std::move(settings));
}

}  // namespace

void define_session(nb::module_& m) {
  nb::class_<tool::Session>(m, "Session", "Who watches a conversion: limits, messages, progress.")
      .def("__init__", &make_session, nb::arg("nodes"), nb::arg("bytes"), nb::arg("depth"),
           nb::arg("seconds").none(), nb::arg("dump"), nb::arg("log"), nb::arg("shows_progress"),
           nb::arg("print"))
      .def(
          "folder", [](tool::Session& session) { return session.folder().string(); },
          "Where this conversion is kept; \"\" when it is not.")
      .def("close", &tool::Session::close, "Nobody is called and nothing is shown from here on.");
}

}  // namespace jaxport::bind
