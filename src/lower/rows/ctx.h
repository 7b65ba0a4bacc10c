// SPDX-License-Identifier: Apache-2.0
// What a lowering sees: operands as ONNX values, parameters by type, the builder.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "front/params.h"
#include "onnx/expr.h"

namespace jaxport::lower {

using onnx::Value;
using onnx::Values;

class ShapeValues;  // runtime values of symbolic dims (lower/rows/shape_values.h)

// Result of a lowering: one value or several.
struct Results {
  Values values;
  Results(Value v) : values{v} {}              // NOLINT: a lowering returns what the builder gives
  Results(Values v) : values(std::move(v)) {}  // NOLINT
};

// Emits a region of the primitive, see Ctx::region.
using EmitRegion = std::function<Values(std::size_t, onnx::Builder&, const Values&)>;

class Ctx {
 public:
  Ctx(onnx::Builder& builder, ShapeValues& shapes, const front::Eqn& eqn, Values operands,
      std::span<const front::Type> in_types, std::span<const front::Type> out_types);
  // A primitive of control flow.
  Ctx& with_regions(std::size_t count, EmitRegion emit);

  onnx::Builder& op;

  // --- operands. A pointwise primitive gets broadcastable operands in any layout; a positional one
  // gets them in jaxpr order with all unit dims (or in the order its Row asks for).
  template <std::size_t N>
  std::array<Value, N> in() const {
    expect_operands(N);
    std::array<Value, N> values;
    for (std::size_t i = 0; i < N; ++i) values[i] = operands_[i];
    return values;
  }
  const Values& operands() const { return operands_; }
  const Value& in(std::size_t i) const { return operands_[i]; }
  // Types as in the jaxpr. For pointwise primitives only the dtypes mean anything.
  const front::Type& in_type(std::size_t i) const { return in_types_[i]; }
  const front::Type& out_type(std::size_t i = 0) const { return out_types_[i]; }
  std::size_t result_count() const { return out_types_.size(); }

  // --- parameters: param<bool>("reverse"), param<std::int64_t>("axis"), param<Ints>("axes"),
  // param<Dims>("shape"), param<DType>("new_dtype"), param<std::string>("mode") (strings and
  // enums). E031 when missing or of another type.
  template <class T>
  T param(std::string_view name) const;  // defined in ctx.cpp for these types
  bool has(std::string_view name) const { return front::has(eqn_, name); }
  const front::Eqn& eqn() const { return eqn_; }  // for the records of front/params.h

  // --- values
  Value constant(Tensor tensor) { return op.constant(std::move(tensor)); }
  Value ints(const std::vector<std::int64_t>& values) { return op.ints(values); }
  Value shape(const Dims& dims);             // i64[rank]; computed at run time where symbolic
  Value dim(const Dim& dim);                 // i64[1]
  Value number(const Dim& dim);              // i64
  Value reshape(Value x, const Dims& dims);  // no node when the shape is already that
  Value expand(Value x, const Dims& dims);   // no node when the shape is already that
  Value transpose(Value x, const std::vector<std::int64_t>& perm);  // no node for the identity

  // --- regions of control flow (axis/translate/region.h). Emits the nodes of region `i` into the
  // graph of `builder`, which is op or inside of it; arguments and results have all dims in jaxpr
  // order.
  std::size_t region_count() const { return region_count_; }
  Values region(std::size_t i, onnx::Builder& builder, const Values& arguments) const {
    return emit_region_(i, builder, arguments);
  }

  // Fails the lowering with a reason for the user: E013 "primitive 'conv…' …: <why>".
  [[noreturn]] void unsupported(std::string why) const;

 private:
  void expect_operands(std::size_t count) const;
  ShapeValues& shapes_;
  const front::Eqn& eqn_;
  Values operands_;
  std::span<const front::Type> in_types_, out_types_;
  std::size_t region_count_ = 0;
  EmitRegion emit_region_;
};

template <>
bool Ctx::param<bool>(std::string_view name) const;
template <>
std::int64_t Ctx::param<std::int64_t>(std::string_view name) const;
template <>
double Ctx::param<double>(std::string_view name) const;
template <>
std::string Ctx::param<std::string>(std::string_view name) const;
template <>
DType Ctx::param<DType>(std::string_view name) const;
template <>
Ints Ctx::param<Ints>(std::string_view name) const;
template <>
Dims Ctx::param<Dims>(std::string_view name) const;

// How a positional primitive wants its operands laid out, as permutations of jaxpr dims; empty = as
// in the jaxpr.
struct Order {
  std::vector<Ints> in;   // one for each operand, or empty
  std::vector<Ints> out;  // the order in which the lowering delivers its results
};

struct Row {
  std::string_view primitive;
  Results (*lower)(Ctx&);
  int since_opset = 0;  // the newest row that the target opset allows wins
  Order (*order)(const front::Eqn&, std::span<const front::Type> in,
                 std::span<const front::Type> out) = nullptr;  // kPrim only
  // For a kPrim that makes dim i of its result from dim i of its first operand, and has only
  // scalars beside it: the attributes for the dims of both in another order.
  front::Attrs (*reordered)(const front::Eqn&, const Ints& order) = nullptr;
};

// One ONNX op with the operands as they are: {"exp", same<"Exp">}.
template <std::size_t N>
struct OpName {
  char text[N];
  constexpr OpName(const char (&s)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }  // NOLINT
};
template <OpName Op>
Results same(Ctx& c) {
  return c.op.call(Op.text, c.operands());
}

// The families; each file of lower/rows/ defines one. Rows are sorted by primitive, then by falling
// since_opset.
std::span<const Row> math_rows();
std::span<const Row> bits_rows();
std::span<const Row> precision_rows();
std::span<const Row> compare_rows();
std::span<const Row> activation_rows();
std::span<const Row> control_rows();
std::span<const Row> conv_rows();
std::span<const Row> window_rows();
std::span<const Row> gather_rows();
std::span<const Row> index_rows();
std::span<const Row> integer_rows();
std::span<const Row> cumulative_rows();
std::span<const Row> fourier_rows();
std::span<const Row> scatter_rows();
std::span<const Row> select_window_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> search_rows();
std::span<const Row> sort_rows();
std::span<const Row> shape_rows();

// The row for a primitive at an opset, or nullptr.
const Row* find_row(std::string_view primitive, int opset);

}  // namespace jaxport::lower
