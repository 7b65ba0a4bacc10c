// SPDX-License-Identifier: Apache-2.0
#include "onnx/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "jaxport/error.h"

namespace jaxport::onnx {
namespace {

// The dtype that a formal parameter names outright; the schemas use these three only.
std::optional<DType> concrete_dtype(std::string_view type) {
  if (type == "tensor(int64)") return DType::kI64;
  if (type == "tensor(float)") return DType::kF32;
  if (type == "tensor(string)") return DType::kString;
  return std::nullopt;
}

AttrKind kind_of(const Attribute& attr) {
  // In the order of Attribute::value's alternatives.
  constexpr AttrKind kKinds[] = {AttrKind::kInt,     AttrKind::kFloat, AttrKind::kString,
                                 AttrKind::kTensor,  AttrKind::kInts,  AttrKind::kFloats,
                                 AttrKind::kStrings, AttrKind::kGraph};
  return kKinds[attr.value.index()];
}

[[noreturn]] void fail(const Schema& schema, const std::string& why, const std::string& node) {
  throw Error("BUG", fmt::format("{} (opset {}): {}", schema.op, schema.since, why)).note(node);
}

void check_count(const Schema& schema, const Node& node, const std::vector<InferenceInput>& in) {
  if (in.size() < schema.min_inputs || in.size() > schema.max_inputs) {
    fail(schema,
         fmt::format("takes {} to {} inputs, not {}", schema.min_inputs, schema.max_inputs,
                     in.size()),
         describe(node, in));
  }
  const std::size_t outputs = node.out.size();
  if (outputs < schema.min_outputs || outputs > schema.max_outputs) {
    fail(schema,
         fmt::format("has {} to {} results, not {}", schema.min_outputs, schema.max_outputs,
                     outputs),
         describe(node, in));
  }
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    const Formal& formal = formal_at(schema.inputs, i);
    if (node.in[i] == kAbsent && formal.arity == Arity::kSingle) {
      fail(schema, fmt::format("input '{}' is absent", formal.name), describe(node, in));
    }
  }
}

void check_attributes(const Schema& schema, const Node& node,
                      const std::vector<InferenceInput>& in) {
  const auto twice = std::ranges::adjacent_find(node.attrs, {}, &Attribute::name);
  if (twice != node.attrs.end()) {
    fail(schema, fmt::format("attribute '{}' is given twice", twice->name), describe(node, in));
  }
  for (const Attribute& attr : node.attrs) {
    const auto spec = std::ranges::lower_bound(schema.attrs, attr.name, {}, &AttrSpec::name);
    if (spec == schema.attrs.end() || spec->name != attr.name) {
      fail(schema, fmt::format("has no attribute '{}'", attr.name), describe(node, in));
    }
    if (spec->kind != kind_of(attr)) {
      fail(schema, fmt::format("attribute '{}' has another kind", attr.name), describe(node, in));
    }
  }
  for (const AttrSpec& spec : schema.attrs) {
    if (spec.required && node.attr(spec.name) == nullptr) {
      fail(schema, fmt::format("attribute '{}' is missing", spec.name), describe(node, in));
    }
  }
}

}  // namespace

std::string to_string(const TensorType& type) {
  if (!type.shape) return fmt::format("{}[...]", name_of(type.dtype));
  std::vector<std::string> sizes;
  for (const Dim& dim : *type.shape) sizes.push_back(dim.str());
  return fmt::format("{}[{}]", name_of(type.dtype), fmt::join(sizes, ","));
}

std::string describe(const Node& node, const std::vector<InferenceInput>& in) {
  std::vector<std::string> types;
  types.reserve(in.size());
  for (const InferenceInput& input : in) {
    types.push_back(input.type != nullptr ? to_string(*input.type) : "?");
  }
  return fmt::format("{}({})", node.op, fmt::join(types, ", "));
}

bool contradict(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype) return true;
  if (!a.shape || !b.shape) return false;
  const auto differ = [](const Dim& x, const Dim& y) { return equal(x, y) == Truth::kNo; };
  return a.shape->size() != b.shape->size() ||
         !std::ranges::equal(*a.shape, *b.shape, std::not_fn(differ));
}

const Formal& formal_at(std::span<const Formal> formals, std::size_t index) {
  return formals[std::min(index, formals.size() - 1)];
}

const TypeConstraint* TypeBinding::constraint(std::string_view variable) const {
  const auto found = std::ranges::find(schema_.types, variable, &TypeConstraint::variable);
  return found == schema_.types.end() ? nullptr : &*found;
}

bool TypeBinding::bind(const Formal& formal, DType dtype) {
  if (!accepts(formal, dtype)) return false;
  const bool decides = formal.homogeneous && constraint(formal.type) != nullptr;
  if (decides && !dtype_of(formal)) bound_.emplace_back(formal.type, dtype);
  return true;
}

std::optional<DType> TypeBinding::dtype_of(const Formal& formal) const {
  const auto found = std::ranges::find(bound_, formal.type, &decltype(bound_)::value_type::first);
  if (found != bound_.end()) return found->second;
  const TypeConstraint* allowed = constraint(formal.type);
  if (allowed == nullptr) return concrete_dtype(formal.type);
  if (std::popcount(allowed->dtypes) != 1) return std::nullopt;
  return static_cast<DType>(std::countr_zero(allowed->dtypes));
}

bool TypeBinding::permits(const TypeConstraint& constraint, DType dtype) const {
  const bool leaves_choice = std::popcount(constraint.dtypes) != 1;
  return allows(constraint, dtype) || (rule_ == DTypeRule::kAny && leaves_choice);
}

bool TypeBinding::accepts(const Formal& formal, DType dtype) const {
  const TypeConstraint* allowed = constraint(formal.type);
  if (allowed == nullptr) return concrete_dtype(formal.type).value_or(dtype) == dtype;
  if (!permits(*allowed, dtype)) return false;
  return !formal.homogeneous || dtype_of(formal).value_or(dtype) == dtype;
}

TypeBinding check_node(const Schema& schema, const Node& node,
                       const std::vector<InferenceInput>& in, DTypeRule rule) {
  check_count(schema, node, in);
  check_attributes(schema, node, in);
  TypeBinding binding(schema, rule);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].type == nullptr) continue;
    const Formal& formal = formal_at(schema.inputs, i);
    if (!binding.bind(formal, in[i].type->dtype)) {
      fail(schema,
           fmt::format("input '{}' of type {} cannot be {} here", formal.name, formal.type,
                       name_of(in[i].type->dtype)),
           describe(node, in));
    }
  }
  return binding;
}

const Schema& require_schema(std::string_view op, int opset) {
  const Schema* schema = find_schema(op, opset);
  if (schema != nullptr && !schema->deprecated) return *schema;
  if (schema != nullptr) {
    throw Error("BUG", fmt::format("op '{}' is deprecated at opset {}", op, opset));
  }
  for (int later = opset + 1; later <= kNewestOpset; ++later) {
    if (find_schema(op, later) == nullptr) continue;
    throw Error("BUG",
                fmt::format("op '{}' needs opset {}, the target is opset {}", op, later, opset));
  }
  throw Error("BUG", fmt::format("there is no op '{}' in ai.onnx", op));
}

}  // namespace jaxport::onnx
