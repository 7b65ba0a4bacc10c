// SPDX-License-Identifier: Apache-2.0
// What the builder and the verifier check of a node, and how messages spell it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/builder.h"

namespace jaxport::onnx {

std::string to_string(const TensorType& type);                                  // "f32[B,4]"
std::string describe(const Node& node, const std::vector<InferenceInput>& in);  // "Add(f32[2], ?)"
// True when no tensor can have both types: other dtype, other rank, or sizes that always differ.
bool contradict(const TensorType& a, const TensorType& b);

// The formal parameter of input or output `index`: the last one repeats when it is variadic.
const Formal& formal_at(std::span<const Formal> formals, std::size_t index);

// The dtype that each type variable of a schema stands for in one node.
class TypeBinding {
 public:
  TypeBinding(const Schema& schema, DTypeRule rule) : schema_(schema), rule_(rule) {}
  // False when `dtype` does not fit the formal parameter or what its variable stands for already.
  bool bind(const Formal& formal, DType dtype);
  // What a result declared as `formal` must be; nullopt when the inputs do not decide it.
  std::optional<DType> dtype_of(const Formal& formal) const;
  // Whether a result declared as `formal` may be `dtype`.
  bool accepts(const Formal& formal, DType dtype) const;

 private:
  const TypeConstraint* constraint(std::string_view variable) const;
  bool permits(const TypeConstraint& constraint, DType dtype) const;
  const Schema& schema_;
  DTypeRule rule_;
  std::vector<std::pair<std::string_view, DType>> bound_;
};

// Number of inputs and outputs, names and kinds of attributes, dtypes of inputs. Throws JXP-BUG.
TypeBinding check_node(const Schema& schema, const Node& node,
                       const std::vector<InferenceInput>& in, DTypeRule rule);

// The schema for `op`; JXP-BUG when there is none at this opset or it is deprecated.
const Schema& require_schema(std::string_view op, int opset);

}  // namespace jaxport::onnx
