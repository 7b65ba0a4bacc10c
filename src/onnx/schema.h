// SPDX-License-Identifier: Apache-2.0
// Operator schemas of ai.onnx for opsets 16 to 26, generated from onnx.defs by
// tools/generate_schemas.py.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "support/dtype.h"

namespace jaxport::onnx {

constexpr int kOldestOpset = 16, kNewestOpset = 26;

enum class Arity : std::uint8_t { kSingle, kOptional, kVariadic };
enum class AttrKind : std::uint8_t {
  kInt,
  kFloat,
  kString,
  kTensor,
  kGraph,
  kInts,
  kFloats,
  kStrings,
  kOther
};

struct Formal {  // one input or output
  std::string_view name;
  std::string_view type;  // a type variable ("T") or a concrete type ("tensor(int64)")
  Arity arity;
  bool homogeneous;        // kVariadic: all of one type
  std::uint8_t min_arity;  // kVariadic
};
struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  bool required;
};
struct TypeConstraint {
  std::string_view variable;
  std::uint32_t dtypes;  // bit i: DType i is allowed; sequence and optional types are left out
};
struct Schema {
  std::string_view op;
  std::uint8_t since;  // opset
  bool deprecated;
  std::span<const Formal> inputs, outputs;
  std::span<const AttrSpec> attrs;  // sorted by name
  std::span<const TypeConstraint> types;
  std::uint16_t min_inputs, max_inputs, min_outputs, max_outputs;
};

// Which dtypes a node may have: those of its schema, or any where the schema leaves a choice. A
// model under construction may use every op in every dtype; src/target/ then makes it legal.
enum class DTypeRule : std::uint8_t { kSchema, kAny };

// The schema of `op` that is in force at `opset`; nullptr when there is none yet.
const Schema* find_schema(std::string_view op, int opset);
bool allows(const TypeConstraint& constraint, DType dtype);

}  // namespace jaxport::onnx
