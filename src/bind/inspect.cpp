// SPDX-License-Identifier: Apache-2.0
#include "bind/inspect.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "explore/explore.h"
#include "inspect/diff.h"
#include "inspect/expect.h"
#include "pass/optimise.h"
#include "wire/wire.h"

namespace jaxport::bind {
namespace {

namespace nb = nanobind;
using Source = std::variant<nb::bytes, std::filesystem::path>;  // a model, or its file

// The model is a view of the bytes: `source` must outlive it.
onnx::Model read(const Source& source) {
  constexpr wire::ReadOptions kOptions{.check_names = false, .function_attributes = true};
  if (const auto* path = std::get_if<std::filesystem::path>(&source)) {
    return wire::load(*path, kOptions);
  }
  const auto& bytes = std::get<nb::bytes>(source);
  const auto* data = reinterpret_cast<const std::byte*>(bytes.c_str());
  return wire::from_bytes({std::shared_ptr<const std::byte>(), data}, bytes.size(), "", kOptions);
}

std::vector<std::tuple<std::string, std::string, std::string>> side_by_side(const Source& lhs,
                                                                            const Source& rhs) {
  std::vector<std::tuple<std::string, std::string, std::string>> rows;
  for (const auto& [what, left, right] : inspect::side_by_side(read(lhs), read(rhs))) {
    rows.emplace_back(what, left, right);
  }
  return rows;
}

nb::bytes optimize(const Source& source) {
  wire::Kept kept;
  const wire::ReadOptions options{.kept = &kept};
  const auto* path = std::get_if<std::filesystem::path>(&source);
  onnx::Model model;
  if (path != nullptr) {
    model = wire::load(*path, options);
  } else {
    const auto& bytes = std::get<nb::bytes>(source);
    const auto* data = reinterpret_cast<const std::byte*>(bytes.c_str());
    model = wire::from_bytes({std::shared_ptr<const std::byte>(), data}, bytes.size(), "", options);
  }
  pass::optimise(model, kept.functions);
  const std::string result = wire::to_bytes(model, {.kept = &kept});
  return nb::bytes(result.data(), result.size());
}

}  // namespace

void define_inspect(nb::module_& m) {
  m.def(
      "unfulfilled",
      [](const Source& model, const std::string& expectation) {
        return inspect::unfulfilled(read(model), inspect::read_expectation(expectation));
      },
      nb::arg("model"), nb::arg("expectation"),
      "What a model does not fulfil of an expectation in JSON, as text; empty when all holds.");
  m.def(
      "check_expectation",
      [](const std::string& expectation) { inspect::read_expectation(expectation); },
      nb::arg("expectation"), "Raises when an expectation in JSON cannot be used.");
  m.def(
      "specification",
      [](const Source& model) {
        return inspect::specification(read(model), inspect::SpecForm::kPython);
      },
      nb::arg("model"), "The call of expect_graph that a model fulfils.");
  m.def(
      "explore_model", [](const Source& model) { return explore::data_of(read(model)); },
      nb::arg("model"), "What the explorer page shows of a model, as JSON.");
  m.def("optimize", &optimize, nb::arg("model"),
        "A smaller model with the same inputs, outputs and results, as bytes.");
  m.def("side_by_side", &side_by_side, nb::arg("lhs"), nb::arg("rhs"),
        "What two models say about themselves: what, left, right.");
}

}  // namespace jaxport::bind
