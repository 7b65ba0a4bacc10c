// SPDX-License-Identifier: Apache-2.0
#include "target/conduct.h"

#include <algorithm>

namespace jaxport::target {
namespace {

constexpr OpConduct kConducts[] = {
    // sorted by op; others are real functions that round
    {"Abs", Conduct::kValues, false},
    {"Add", Conduct::kWraps, true},
    {"ArgMax", Conduct::kOrders, false},
    {"ArgMin", Conduct::kOrders, false},
    {"BitShift", Conduct::kValues, false},
    {"BitwiseAnd", Conduct::kWraps, false},
    {"BitwiseNot", Conduct::kWraps, false},
    {"BitwiseOr", Conduct::kWraps, false},
    {"BitwiseXor", Conduct::kWraps, false},
    {"Ceil", Conduct::kReal, false},
    {"Clip", Conduct::kOrders, false},
    {"Compress", Conduct::kCopies, false},
    {"Concat", Conduct::kCopies, false},
    {"CumProd", Conduct::kWraps, true},
    {"CumSum", Conduct::kWraps, true},
    {"DepthToSpace", Conduct::kCopies, false},
    {"Div", Conduct::kValues, true},
    {"Einsum", Conduct::kWraps, true},
    {"Equal", Conduct::kOrders, false},
    {"Expand", Conduct::kCopies, false},
    {"Flatten", Conduct::kCopies, false},
    {"Floor", Conduct::kReal, false},
    {"Gather", Conduct::kCopies, false},
    {"GatherElements", Conduct::kCopies, false},
    {"GatherND", Conduct::kCopies, false},
    {"Gemm", Conduct::kWraps, true},
    {"Greater", Conduct::kOrders, false},
    {"GreaterOrEqual", Conduct::kOrders, false},
    {"Identity", Conduct::kCopies, false},
    {"Less", Conduct::kOrders, false},
    {"LessOrEqual", Conduct::kOrders, false},
    {"MatMul", Conduct::kWraps, true},
    {"Max", Conduct::kOrders, false},
    {"MaxPool", Conduct::kOrders, false},
    {"Min", Conduct::kOrders, false},
    {"Mod", Conduct::kValues, false},
    {"Mul", Conduct::kWraps, true},
    {"Neg", Conduct::kWraps, false},
    {"NonZero", Conduct::kValues, false},
    {"OneHot", Conduct::kCopies, false},
    {"Pad", Conduct::kCopies, false},
    {"Pow", Conduct::kValues, true},
    {"Range", Conduct::kValues, true},
    {"ReduceMax", Conduct::kOrders, false},
    {"ReduceMin", Conduct::kOrders, false},
    {"ReduceProd", Conduct::kWraps, true},
    {"ReduceSum", Conduct::kWraps, true},
    {"ReduceSumSquare", Conduct::kWraps, true},
    {"Relu", Conduct::kValues, false},
    {"Reshape", Conduct::kCopies, false},
    {"ReverseSequence", Conduct::kCopies, false},
    {"Round", Conduct::kReal, false},
    {"ScatterElements", Conduct::kValues, true},
    {"ScatterND", Conduct::kValues, true},
    {"Sign", Conduct::kValues, false},
    {"Slice", Conduct::kCopies, false},
    {"SpaceToDepth", Conduct::kCopies, false},
    {"Split", Conduct::kCopies, false},
    {"Squeeze", Conduct::kCopies, false},
    {"Sub", Conduct::kWraps, true},
    {"Sum", Conduct::kWraps, true},
    {"Tile", Conduct::kCopies, false},
    {"TopK", Conduct::kOrders, false},
    {"Transpose", Conduct::kCopies, false},
    {"Trilu", Conduct::kCopies, false},
    {"Unsqueeze", Conduct::kCopies, false},
    {"Where", Conduct::kCopies, false},
};
static_assert(std::ranges::is_sorted(kConducts, {}, &OpConduct::op));

// Narrow ones first; i32 and i64 before unsigned ones, because more ops have them.
constexpr DType kWideDTypes[] = {DType::kU8,  DType::kI8,  DType::kI16, DType::kU16, DType::kI32,
                                 DType::kI64, DType::kU32, DType::kU64, DType::kF32, DType::kF64};

std::optional<Code> cast_if(bool possible) {
  return possible ? std::optional(Code::kCast) : std::nullopt;
}

}  // namespace

OpConduct conduct_of(std::string_view op) {
  const auto* row = std::ranges::lower_bound(kConducts, op, {}, &OpConduct::op);
  return row != std::end(kConducts) && row->op == op ? *row : OpConduct{op, Conduct::kReal, true};
}

std::span<const DType> wide_dtypes() { return kWideDTypes; }

std::optional<Code> code_for(Conduct conduct, DType from, DType to) {
  if (is_float(from)) return cast_if(is_float(to) && holds_exactly(to, from));
  const bool same_width = is_integer(from) && is_integer(to) && bit_width(to) == bit_width(from);
  switch (conduct) {
    case Conduct::kCopies:
      return cast_if(holds_exactly(to, from) || same_width);
    case Conduct::kOrders:
      if (is_unsigned(from) && is_signed(to) && same_width && bit_width(to) >= 32)
        return Code::kBiased;
      return cast_if(holds_exactly(to, from));
    case Conduct::kWraps:
      return cast_if(is_integer(to) && bit_width(to) >= bit_width(from));
    case Conduct::kValues:
      return cast_if(is_integer(to) && holds_exactly(to, from));
    case Conduct::kReal:
      return std::nullopt;
  }
  return std::nullopt;
}

bool is_exact(const OpConduct& conduct, DType from, DType to) {
  if (is_float(from)) return !conduct.rounds;
  switch (conduct.integers) {
    case Conduct::kCopies:
    case Conduct::kOrders:
      return true;
    case Conduct::kWraps:
      return from != DType::kBool && bit_width(from) == bit_width(to);
    default:
      return false;
  }
}

}  // namespace jaxport::target
