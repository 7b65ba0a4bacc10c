// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "inspect/spec.h"
#include "onnx/ir.h"

namespace jaxport::inspect {

// What a model does not fulfil of an expectation, as text for people: for each path what was
// expected, how far it got and what stands there instead. "" when everything holds.
std::string unfulfilled(const onnx::Model& model, const Expectation& expectation);

// The specification of a model, at most about a screen of text: its longest paths, and counts for
// the ops that are on none of them. The model fulfils it.
enum class SpecForm { kPython, kJson };
std::string specification(const onnx::Model& model, SpecForm form);

}  // namespace jaxport::inspect
