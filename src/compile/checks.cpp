// SPDX-License-Identifier: Apache-2.0
#include "compile/checks.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "jaxport/error.h"
#include "support/watch.h"

namespace jaxport::compile {
namespace {

// What the user wrote is verified where it is read; here, every fault is ours.
template <class Verify>
void verified(std::string_view after, const Verify& verify) {
  try {
    verify();
  } catch (const Error& error) {
    if (error.code() == kLimitCode) throw;
    Error fault("BUG", fmt::format("after {}: {}", after, error.message()));
    fault.at(error.source()).equation(error.equation());
    for (const std::string& note : error.notes()) fault.note(note);
    throw Error(std::move(fault));
  }
}

}  // namespace

Checks::Checks() {
  const char* wanted = std::getenv("JAXPORT_CHECK");
  are_on_ = wanted != nullptr && *wanted != '\0' && std::string_view(wanted) != "0";
}

void Checks::front(const front::Module& module) const {
  if (are_on_) verified("tracing", [&] { front::verify(module); });
}

void Checks::axis(const axis::Program& program, std::string_view after) const {
  if (are_on_) verified(after, [&] { axis::verify(program); });
}

void Checks::onnx(const onnx::Model& model, std::string_view after, onnx::DTypeRule dtypes) const {
  if (are_on_) verified(after, [&] { onnx::verify_unnamed(model, after, dtypes); });
}

}  // namespace jaxport::compile
