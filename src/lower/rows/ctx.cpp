// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/ctx.h"

#include <fmt/format.h>

#include <algorithm>

#include "jaxport/error.h"
#include "lower/rows/shape_values.h"

namespace jaxport::lower {

Ctx::Ctx(onnx::Builder& builder, ShapeValues& shapes, const front::Eqn& eqn, Values operands,
         std::span<const front::Type> in_types, std::span<const front::Type> out_types)
    : op(builder),
      shapes_(shapes),
      eqn_(eqn),
      operands_(std::move(operands)),
      in_types_(in_types),
      out_types_(out_types) {}

Ctx& Ctx::with_regions(std::size_t count, EmitRegion emit) {
  region_count_ = count;
  emit_region_ = std::move(emit);
  return *this;
}

void Ctx::expect_operands(std::size_t count) const {
  if (operands_.size() == count) return;
  unsupported(fmt::format("needs {} operands, but has {}", count, operands_.size()));
}

void Ctx::unsupported(std::string why) const {
  throw Error("E013", fmt::format("primitive '{}': {}", eqn_.primitive, why))
      .help("rewrite this part with other operations, or ask for it to be supported");
}

template <>
bool Ctx::param<bool>(std::string_view name) const {
  return front::get_bool(eqn_, name);
}
template <>
std::int64_t Ctx::param<std::int64_t>(std::string_view name) const {
  return front::get_int(eqn_, name);
}
template <>
double Ctx::param<double>(std::string_view name) const {
  return front::get_double(eqn_, name);
}
template <>
std::string Ctx::param<std::string>(std::string_view name) const {
  return front::get_string(eqn_, name);
}
template <>
DType Ctx::param<DType>(std::string_view name) const {
  return front::get_dtype(eqn_, name);
}
template <>
Ints Ctx::param<Ints>(std::string_view name) const {
  return front::get_ints(eqn_, name);
}
template <>
Dims Ctx::param<Dims>(std::string_view name) const {
  return front::get_dims(eqn_, name);
}

Value Ctx::shape(const Dims& dims) { return shapes_.shape(dims); }
Value Ctx::dim(const Dim& dim) { return shapes_.dim(dim); }
Value Ctx::number(const Dim& dim) { return shapes_.number(dim); }
Value Ctx::reshape(Value x, const Dims& dims) { return shapes_.reshape(x, dims); }
Value Ctx::expand(Value x, const Dims& dims) { return shapes_.expand(x, dims); }

Value Ctx::transpose(Value x, const Ints& perm) {
  return std::ranges::is_sorted(perm) ? x : op.Transpose(x, onnx::Args{{"perm", perm}});
}

}  // namespace jaxport::lower
