// SPDX-License-Identifier: Apache-2.0
// Pointwise primitives and conversions. Expected values are what JAX gives on CPU.
#include <numeric>

#include "eval_support.h"

namespace jaxport::eval {
namespace {

Tensor i8s(const std::vector<double>& values) { return vec(DType::kI8, values); }
Tensor u8s(const std::vector<double>& values) { return vec(DType::kU8, values); }
Tensor bools(const std::vector<double>& values) { return vec(DType::kBool, values); }

TEST(EvalTable, KnowsPrimitivesByJaxName) {
  for (const char* name : {"add", "dot_general", "scatter-add", "while", "cumlogsumexp"}) {
    EXPECT_TRUE(knows(name)) << name;
  }
  EXPECT_FALSE(knows("Add"));
  EXPECT_FALSE(knows(""));
}

TEST(EvalTable, UnknownPrimitiveIsAnError) {
  EXPECT_EQ(error_of("f32[1] = frobnicate %a", {f32s({1})}),
            "E040: no evaluation for primitive 'frobnicate'");
}

TEST(EvalTable, ErrorNamesTheEquation) {
  try {
    evaluate("f32[1] = frobnicate %a", {f32s({1})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.equation().find("frobnicate"), std::string::npos);
  }
}

TEST(EvalTable, DeclaredTypeMustBeTheComputedOne) {
  EXPECT_EQ(error_of("f32[3] = transpose %a {permutation = (0)}", {f32s({1, 2})}),
            "E041: primitive 'transpose': result 0 is f32[2], declared as f32[3]");
}

TEST(EvalArithmetic, IntegersWrap) {
  expect("i8[3] = add %a %b", {i8s({127, -128, 5}), i8s({1, -1, 2})}, {-128, 127, 7});
  expect("u8[2] = sub %a %b", {u8s({0, 9}), u8s({1, 4})}, {255, 5});
  expect("i8[2] = mul %a %b", {i8s({64, -128}), i8s({4, -1})}, {0, -128});
  expect("i8[2] = neg %a", {i8s({-128, 3})}, {-128, -3});
  expect("i8[2] = abs %a", {i8s({-128, -3})}, {-128, 3});
  const Tensor least = int_scalar(DType::kI64, std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(same_bytes(evaluate("i64[] = neg %a", {least})[0], least));
}

TEST(EvalArithmetic, IntegerDivisionTruncatesAndDefinesZero) {
  expect("i32[5] = div %a %b", {i32s({7, -7, 5, -5, -2147483648.0}), i32s({2, 2, 0, 0, -1})},
         {3, -3, -1, -1, -2147483648.0});
  expect("i32[4] = rem %a %b", {i32s({7, -7, 5, -2147483648.0}), i32s({2, 2, 0, -1})},
         {1, -1, 5, 0});
  expect("u8[2] = div %a %b", {u8s({5, 200}), u8s({0, 3})}, {255, 66});
}

// Long runs are read as they are, short ones from a copy; blocks end anywhere inside of them.
TEST(EvalArithmetic, OperandsRepeatAlongAnyDims) {
  const auto counted = [](DType dtype, Shape shape) {
    std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 97);
    return tensor(dtype, std::move(shape), values);
  };
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI8, DType::kC64}) {
    const Tensor x = counted(dtype, {3, 5, 130});
    for (const Shape& shape : std::vector<Shape>{{},
                                                 {130},
                                                 {5, 1},
                                                 {3, 1, 1},
                                                 {3, 5, 1},
                                                 {3, 1, 130},
                                                 {1, 5, 130},
                                                 {1, 5, 1},
                                                 {3, 5, 130}}) {
      const Tensor y = counted(dtype, shape);
      const std::string type = fmt::format("{}[3,5,130]", name_of(dtype));
      Ints dims(shape.size());
      std::iota(dims.begin(), dims.end(), 3 - std::ssize(shape));
      const Tensor whole = evaluate(
          fmt::format(
              "{} = broadcast_in_dim %a {{broadcast_dimensions = ({}), shape = (3, 5, 130)}}", type,
              fmt::join(dims, ", ")),
          {y})[0];
      for (const char* op : {"mul", "sub"}) {
        const std::string equation = fmt::format("{} = {} %a %b", type, op);
        EXPECT_TRUE(same_bytes(evaluate(equation, {x, y})[0], evaluate(equation, {x, whole})[0]))
            << equation << " of " << fmt::format("({})", fmt::join(shape, ", "));
        EXPECT_TRUE(same_bytes(evaluate(equation, {y, x})[0], evaluate(equation, {whole, x})[0]))
            << equation << " of " << fmt::format("({})", fmt::join(shape, ", "));
      }
    }
  }
}

TEST(EvalArithmetic, EachOperationRoundsToBf16) {
  const Tensor x = vec(DType::kBF16, {256, 1}), y = vec(DType::kBF16, {1, 0.0078125});
  expect("bf16[2] = add %a %b", {x, y}, {256, 1.0078125});
  expect("bf16[2] = mul %a %b",
         {vec(DType::kBF16, {1.0078125, 3}), vec(DType::kBF16, {1.0078125, 3})}, {1.015625, 9});
}

TEST(EvalArithmetic, OverflowOfFloatsIsInfinite) {
  expect("f16[1] = add %a %b", {vec(DType::kF16, {65504}), vec(DType::kF16, {65504})}, {kInf});
  expect("f32[2] = div %a %b", {f32s({1, 0}), f32s({0, 0})}, {kInf, kNaN});
  expect("f32[2] = rem %a %b", {f32s({-5, 5}), f32s({3, 0})}, {-2, kNaN});
}

TEST(EvalArithmetic, MaxAndMinPropagateNaNAndOrderZeros) {
  const Tensor x = f32s({0.0, -0.0, kNaN, 1}), y = f32s({-0.0, 0.0, 1, kNaN});
  expect("f32[4] = max %a %b", {x, y}, {0.0, 0.0, kNaN, kNaN});
  expect("f32[4] = min %a %b", {x, y}, {-0.0, -0.0, kNaN, kNaN});
  expect("bool[2] = max %a %b", {bools({0, 0}), bools({1, 0})}, {1, 0});
}

TEST(EvalArithmetic, SignKeepsZerosAndNaN) {
  expect("f32[4] = sign %a", {f32s({-3, -0.0, kNaN, kInf})}, {-1, -0.0, kNaN, 1});
  expect("i32[3] = sign %a", {i32s({-3, 0, 9})}, {-1, 0, 1});
}

TEST(EvalArithmetic, OperandsBroadcastAsInNumpy) {
  const Tensor column = tensor(DType::kF32, {2, 1}, {10, 20});
  expect("f32[2,3] = add %a %b", {column, f32s({1, 2, 3})}, {11, 12, 13, 21, 22, 23});
  expect("f32[2] = mul %a %b", {f32s({1, 2}), tensor(DType::kF32, {}, {3})}, {3, 6});
  EXPECT_EQ(error_of("f32[3] = add %a %b", {f32s({1, 2, 3}), f32s({1, 2})}),
            "E041: primitive 'add': (2) does not broadcast to (3)");
}

TEST(EvalArithmetic, EmptyAndLongerThanABlock) {
  expect("f32[0,2] = add %a %a", {tensor(DType::kF32, {0, 2}, {})}, {});
  const std::vector<double> ones(1500, 1.0), twos(1500, 2.0);
  expect("f32[1500] = add %a %b", {f32s(ones), f32s(ones)}, twos);
  expect("f32[1500] = add %a %b", {f32s(ones), tensor(DType::kF32, {1}, {1})}, twos);
}

TEST(EvalArithmetic, MixedDtypesAreRefused) {
  EXPECT_EQ(error_of("f32[1] = add %a %b", {f32s({1}), i32s({1})}),
            "E041: primitive 'add': operands of different dtypes");
  EXPECT_EQ(error_of("bool[1] = add %a %a", {bools({1})}),
            "E040: no evaluation of primitive 'add' for bool");
}

TEST(EvalCompare, NaNIsUnequalAndUnordered) {
  const Tensor x = f32s({1, kNaN, 2}), y = f32s({1, kNaN, 1});
  expect("bool[3] = eq %a %b", {x, y}, {1, 0, 0});
  expect("bool[3] = ne %a %b", {x, y}, {0, 1, 1});
  expect("bool[3] = ge %a %b", {x, y}, {1, 0, 1});
  expect("bool[3] = gt %a %b", {x, y}, {0, 0, 1});
  expect("bool[3] = le %a %b", {x, y}, {1, 0, 0});
  expect("bool[3] = lt %a %b", {y, x}, {0, 0, 1});
}

TEST(EvalCompare, TotalOrderPutsMinusZeroFirst) {
  expect("bool[3] = lt_to %a %b", {f32s({-0.0, kInf, -1}), f32s({0.0, kNaN, -2})}, {1, 1, 0});
  expect("bool[2] = le_to %a %b", {f32s({0.0, kNaN}), f32s({-0.0, kNaN})}, {0, 1});
}

TEST(EvalCompare, IsFinite) {
  expect("bool[3] = is_finite %a", {f32s({1, kInf, kNaN})}, {1, 0, 0});
}

TEST(EvalBits, LogicOnBoolsAndIntegers) {
  expect("bool[2] = not %a", {bools({1, 0})}, {0, 1});
  expect("u8[1] = not %a", {u8s({5})}, {250});
  expect("i8[1] = and %a %b", {i8s({-2}), i8s({7})}, {6});
  expect("bool[2] = or %a %b", {bools({1, 0}), bools({0, 0})}, {1, 0});
  expect("bool[2] = xor %a %b", {bools({1, 1}), bools({0, 1})}, {1, 0});
}

TEST(EvalBits, ShiftsBeyondTheWidth) {
  const Tensor by = i8s({1, 8, -1});
  expect("i8[3] = shift_left %a %b", {i8s({1, 1, 1}), by}, {2, 0, 0});
  expect("i8[3] = shift_right_logical %a %b", {i8s({-8, -8, -8}), by}, {124, 0, 0});
  expect("i8[3] = shift_right_arithmetic %a %b", {i8s({-8, -8, 8}), by}, {-4, -1, 0});
}

TEST(EvalBits, CountsLookAtTheRealWidth) {
  expect("i8[3] = clz %a", {i8s({0, 1, -1})}, {8, 7, 0});
  expect("i8[2] = population_count %a", {i8s({-1, 5})}, {8, 2});
}

TEST(EvalSelect, ClampGivesTheUpperBoundLast) {
  expect("f32[4] = clamp %a %b %c",
         {f32s({0, 0, 3, 0}), f32s({-1, 9, 1, kNaN}), f32s({5, 5, 2, 5})}, {0, 5, 2, kNaN});
  expect("f32[2] = clamp %a %b %c",
         {tensor(DType::kF32, {}, {0}), f32s({-1, 9}), tensor(DType::kF32, {}, {1})}, {0, 1});
}

TEST(EvalSelect, SelectNPicksTheCase) {
  expect("f32[3] = select_n %a %b %c", {bools({0, 1, 0}), f32s({1, 2, 3}), f32s({-1, -2, -3})},
         {1, -2, 3});
  expect("i32[2] = select_n %a %b %c %d",
         {tensor(DType::kI32, {}, {2}), i32s({1, 1}), i32s({2, 2}), i32s({3, 4})}, {3, 4});
}

TEST(EvalMath, EdgesOfElementaryFunctions) {
  expect("f32[3] = log %a", {f32s({0, -1, 1})}, {-kInf, kNaN, 0});
  expect("f32[3] = exp %a", {f32s({1000, -kInf, 0})}, {kInf, 0, 1});
  expect("f32[4] = rsqrt %a", {f32s({0, 4, -1, kInf})}, {kInf, 0.5, kNaN, 0});
  expect("f32[3] = logistic %a", {f32s({-1000, 0, 1000})}, {0, 0.5, 1});
  expect("f32[2] = cbrt %a", {f32s({-8, 27})}, {-2, 3});
  expect("f32[2] = tanh %a", {f32s({-kInf, 0})}, {-1, 0});
  expect("f32[2] = exp2 %a", {f32s({3, -1})}, {8, 0.5});
  expect("f32[1] = square %a", {f32s({-3})}, {9});
  expect("f32[2] = expm1 %a", {f32s({1e-10, 0})}, {double{1e-10f}, 0});
  expect("f32[2] = log1p %a", {f32s({1e-10, -1})}, {double{1e-10f}, -kInf});
}

TEST(EvalMath, RoundHasTwoMethods) {
  const Tensor x = f32s({0.5, 1.5, -0.5, 2.5, 0.49999997});
  expect("f32[5] = round %a {rounding_method = #to_nearest_even}", {x}, {0, 2, -0.0, 2, 0});
  expect("f32[5] = round %a {rounding_method = #away_from_zero}", {x}, {1, 2, -1, 3, 0});
}

TEST(EvalMath, Powers) {
  expect("f32[4] = pow %a %b", {f32s({2, -8, 1, kNaN}), f32s({-1, 0.5, kNaN, 0})},
         {0.5, kNaN, 1, 1});
  expect("f32[2] = pow %a %b", {f32s({2.5, -2}), i32s({2, 3})}, {6.25, -8});
  expect("f32[3] = integer_pow %a {y = -2}", {f32s({2, 0, -4})}, {0.25, kInf, 0.0625});
  expect("i32[2] = integer_pow %a {y = 33}", {i32s({2, -1})}, {0, -1});
  expect("f32[1] = integer_pow %a {y = 0}", {f32s({kNaN})}, {1});
}

TEST(EvalMath, SpecialFunctionsAreAccurateInFloat) {
  const auto close = [](std::string_view equation, std::vector<double> x,
                        std::vector<double> want) {
    const std::vector<double> got = values(evaluate(equation, {f32s(x)})[0]);
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(got[i], want[i], 1.2e-7 * std::fabs(want[i])) << equation << " of " << x[i];
    }
  };
  close("f32[2] = erf %a", {0.5, -3}, {0.5204998778130465, -0.9999779095030014});
  close("f32[2] = erfc %a", {0.5, 5}, {0.4795001221869535, 1.5374597944280349e-12});
  close("f32[3] = erf_inv %a", {0.5, -0.9375, 1e-20},
        {0.4769362762044699, -1.317150334986131, 8.862269254527581e-21});
  close("f32[3] = lgamma %a", {0.5, 10, -1.5},
        {0.5723649429247001, 12.801827480081469, 0.8600470153764810});
  close("f32[3] = digamma %a", {0.5, 10, -1.5},
        {-1.9635100260214235, 2.251752589066721, 0.7031566406452432});
}

TEST(EvalMath, SpecialFunctionsAtTheirPoles) {
  expect("f32[4] = erf_inv %a", {f32s({1, -1, 1.5, 0})}, {kInf, -kInf, kNaN, 0});
  expect("f32[4] = digamma %a", {f32s({0, -1, kInf, -kInf})}, {kNaN, kNaN, kInf, kNaN});
  expect("f32[3] = lgamma %a", {f32s({0, -1, -kInf})}, {kInf, kInf, kInf});
}

TEST(EvalMath, NextafterStepsInTheDtype) {
  expect("f32[1] = nextafter %a %b", {f32s({1}), f32s({2})}, {1 + 0x1p-23});
  const Tensor from = vec(DType::kBF16, {1, 0, -1, 1}), to = vec(DType::kBF16, {2, -1, 0, kNaN});
  expect("bf16[4] = nextafter %a %b", {from, to}, {1.0078125, -0x1p-133, -0.99609375, kNaN});
  expect("f16[1] = nextafter %a %b", {vec(DType::kF16, {65504}), vec(DType::kF16, {kInf})}, {kInf});
}

TEST(EvalMath, ComplexNumbers) {
  const Tensor z = evaluate("c64[1] = complex %a %b", {f32s({3}), f32s({4})})[0];
  expect("f32[1] = abs %a", {z}, {5});
  expect("f32[1] = imag %a", {evaluate("c64[1] = conj %a", {z})[0]}, {-4});
  expect("f32[1] = real %a", {evaluate("c64[1] = mul %a %a", {z})[0]}, {-7});
}

TEST(EvalConvert, FloatToIntegerSaturates) {
  const Tensor x = f32s({kNaN, kInf, -kInf, 300.7, -200.2, -1.5});
  expect("i8[6] = convert_element_type %a {new_dtype = i8}", {x}, {0, 127, -128, 127, -128, -1});
  expect("u8[6] = convert_element_type %a {new_dtype = u8}", {x}, {0, 255, 0, 255, 0, 0});
  expect("bool[6] = convert_element_type %a {new_dtype = bool}", {x}, {1, 1, 1, 1, 1, 1});
  const Tensor wide =
      evaluate("i64[1] = convert_element_type %a {new_dtype = i64}", {f32s({1e20})})[0];
  EXPECT_EQ(wide.int_at(0), std::numeric_limits<std::int64_t>::max());
}

TEST(EvalConvert, IntegersWrapAndFloatsRoundThroughF32) {
  expect_values(cast(i32s({300, -1, -200}), DType::kI8), {44, -1, 56});
  expect_values(cast(vec(DType::kF64, {1 + 0x1p-8 + 0x1p-40}), DType::kBF16), {1});
  expect_values(cast(f32s({65519, 65520}), DType::kF16), {65504, kInf});
  expect_values(cast(f32s({448, 464, 465}), DType::kF8E4M3FN), {448, 448, kNaN});
  expect_values(cast(i32s({9, -9}), DType::kI4), {-7, 7});
}

TEST(EvalConvert, ComplexToRealKeepsTheRealPart) {
  const Tensor z = evaluate("c64[1] = complex %a %b", {f32s({-3.5}), f32s({4})})[0];
  expect_values(cast(z, DType::kI32), {-3});
  expect_values(evaluate("f64[1] = real %a", {cast(f32s({2}), DType::kC128)})[0], {2});
}

TEST(EvalConvert, SameDtypeSharesTheBytes) {
  const Tensor x = f32s({1, 2});
  EXPECT_EQ(cast(x, DType::kF32).data, x.data);
}

TEST(EvalConvert, BitcastMayAddADim) {
  expect("u32[1] = bitcast_convert_type %a {new_dtype = u32}", {f32s({1})}, {0x3f800000});
  expect("u8[1,4] = bitcast_convert_type %a {new_dtype = u8}", {f32s({1})}, {0, 0, 0x80, 0x3f});
  EXPECT_EQ(error_of("u8[1] = bitcast_convert_type %a {new_dtype = u8}", {f32s({1})}),
            "E041: primitive 'bitcast_convert_type': operand and result have different sizes");
}

TEST(EvalConvert, ReducePrecisionFlushesSubnormals) {
  const Tensor x = f32s({1 + 0x1p-9 + 0x1p-12, 1e-8, 70000, 65519, kNaN});
  expect("f32[5] = reduce_precision %a {exponent_bits = 5, mantissa_bits = 10}", {x},
         {1 + 0x1p-9, 0, kInf, 65504, kNaN});
  expect("f32[1] = reduce_precision %a {exponent_bits = 8, mantissa_bits = 23}", {f32s({0.1})},
         {double{0.1f}});
}

}  // namespace
}  // namespace jaxport::eval
