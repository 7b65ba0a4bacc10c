// SPDX-License-Identifier: Apache-2.0
// How one node can run on a target: as it is, or with some of its dtypes widened.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "onnx/ir.h"
#include "onnx/schema.h"
#include "target/conduct.h"
#include "target/magnitude.h"
#include "target/target.h"

namespace jaxport::target {

// All operands and results of one type variable are computed in another dtype.
struct Widening {
  std::string_view variable;
  DType from;
  WideForm to;
  bool is_exact;  // the wide result has the value of the narrow one
};
using Widenings = std::vector<Widening>;  // empty: the node runs as it is

// The cheapest way to run a node of ai.onnx on a target of for_opset(); nullopt when no widening
// helps.
std::optional<Widenings> widenings_for(const onnx::Model& model, const onnx::Node& node,
                                       const Target& target, const Magnitudes& magnitudes);

// The widening that applies to operand or result `index`; nullptr when it stays.
const Widening* widening_of(const Widenings& widenings, std::span<const onnx::Formal> formals,
                            std::size_t index);

}  // namespace jaxport::target
