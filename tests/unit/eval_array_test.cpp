// SPDX-License-Identifier: Apache-2.0
// Primitives that look at whole arrays: reductions, movement, contraction, indexing, sorting.
#include "eval_support.h"

namespace jaxport::eval {
namespace {

Tensor f32(Shape shape, const std::vector<double>& values) {
  return tensor(DType::kF32, std::move(shape), values);
}
Tensor i32(Shape shape, const std::vector<double>& values) {
  return tensor(DType::kI32, std::move(shape), values);
}
Tensor counted(Shape shape) {
  std::vector<double> numbers(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  return f32(std::move(shape), numbers);
}

TEST(EvalReduce, SumsOverAnyAxes) {
  const Tensor x = counted({2, 3, 2});
  expect("f32[2,3] = reduce_sum %a {axes = (2)}", {x}, {1, 5, 9, 13, 17, 21});
  expect("f32[3] = reduce_sum %a {axes = (2, 0)}", {x}, {14, 22, 30});
  expect("f32[] = reduce_sum %a {axes = (0, 1, 2)}", {x}, {66});
  expect("f32[2,3,2] = reduce_sum %a {axes = ()}", {x}, values(x));
}

TEST(EvalReduce, FloatSumsDoNotLoseSmallTerms) {
  std::vector<double> terms(100001, 1e-4);
  terms[0] = 10000;
  expect("f32[] = reduce_sum %a {axes = (0)}", {f32s(terms)}, {double{10010.0f}});
}

TEST(EvalReduce, EmptyAxesGiveTheIdentity) {
  const Tensor x = f32({2, 0}, {});
  expect("f32[2] = reduce_sum %a {axes = (1)}", {x}, {0, 0});
  expect("f32[2] = reduce_prod %a {axes = (1)}", {x}, {1, 1});
  expect("f32[2] = reduce_max %a {axes = (1)}", {x}, {-kInf, -kInf});
  expect("i8[1] = reduce_max %a {axes = (1)}", {tensor(DType::kI8, {1, 0}, {})}, {-128});
  expect("u8[1] = reduce_min %a {axes = (1)}", {tensor(DType::kU8, {1, 0}, {})}, {255});
  expect("f32[0] = reduce_sum %a {axes = (0)}", {x}, {});
}

TEST(EvalReduce, NaNWinsAndIntegersWrap) {
  expect("f32[] = reduce_max %a {axes = (0)}", {f32s({1, kNaN, 3})}, {kNaN});
  expect("f32[] = reduce_min %a {axes = (0)}", {f32s({1, -kInf, 3})}, {-kInf});
  expect("i8[] = reduce_sum %a {axes = (0)}", {vec(DType::kI8, {100, 100})}, {-56});
  expect("bool[] = reduce_and %a {axes = (0)}", {vec(DType::kBool, {1, 0})}, {0});
  expect("bool[] = reduce_or %a {axes = (0)}", {vec(DType::kBool, {1, 0})}, {1});
  expect("i32[] = reduce_and %a {axes = (0)}", {i32s({7, 12})}, {4});
  expect("i32[] = reduce_xor %a {axes = (0)}", {i32s({7, 12})}, {11});
}

TEST(EvalReduce, ArgmaxTakesTheFirstAndPrefersNaN) {
  expect("i32[] = argmax %a {axes = (0), index_dtype = i32}", {f32s({1, 5, 5})}, {1});
  expect("i32[] = argmin %a {axes = (0), index_dtype = i32}", {f32s({1, kNaN, 0, kNaN})}, {1});
  expect("i32[2] = argmax %a {axes = (0), index_dtype = i32}", {f32({2, 2}, {1, 9, 3, 4})}, {1, 0});
  EXPECT_EQ(error_of("i32[] = argmax %a {axes = (0), index_dtype = i32}", {f32s({})}),
            "E041: primitive 'argmax': the axis is empty");
}

TEST(EvalReduce, RegionsFold) {
  const std::string region =
      "{(%x: f32[], %y: f32[])\n %m: f32[] = max %x %y {}\n %s: f32[] = add %m %y {}\n return %s}";
  expect("f32[2] = reduce %a %b {dimensions = (1), jaxpr = " + region + "}",
         {f32({2, 2}, {1, 2, 3, 4}), f32({}, {0})}, {4, 8 + 2});
}

TEST(EvalReduce, AxesAreChecked) {
  EXPECT_EQ(error_of("f32[] = reduce_sum %a {axes = (1)}", {f32s({1})}),
            "E041: primitive 'reduce_sum': axis 1 is out of range");
  EXPECT_EQ(error_of("f32[] = reduce_sum %a {axes = (0, 0)}", {f32s({1})}),
            "E041: primitive 'reduce_sum': axis 0 appears twice");
}

TEST(EvalCumulative, RunsAlongOneAxis) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect("f32[2,3] = cumsum %a {axis = 1, reverse = false}", {x}, {1, 3, 6, 4, 9, 15});
  expect("f32[2,3] = cumsum %a {axis = 0, reverse = true}", {x}, {5, 7, 9, 4, 5, 6});
  expect("f32[2,3] = cumprod %a {axis = 1, reverse = false}", {x}, {1, 2, 6, 4, 20, 120});
  expect("f32[3] = cummax %a {axis = 0, reverse = false}", {f32s({1, kNaN, 3})}, {1, kNaN, kNaN});
  expect("f32[3] = cummin %a {axis = 0, reverse = true}", {f32s({1, 5, 3})}, {1, 3, 3});
  expect("f32[0] = cumsum %a {axis = 0, reverse = false}", {f32s({})}, {});
}

TEST(EvalCumulative, LogSumExpKeepsInfinities) {
  expect("f32[4] = cumlogsumexp %a {axis = 0, reverse = false}", {f32s({-kInf, -kInf, 1, kInf})},
         {-kInf, -kInf, 1, kInf});
}

TEST(EvalShape, BroadcastInDim) {
  expect("f32[2,2,3] = broadcast_in_dim %a {broadcast_dimensions = (0, 2), shape = (2, 2, 3)}",
         {f32({2, 1}, {1, 2})}, {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2});
  expect("f32[2] = broadcast_in_dim %a {broadcast_dimensions = (), shape = (2)}", {f32({}, {7})},
         {7, 7});
  expect("f32[0,3] = broadcast_in_dim %a {broadcast_dimensions = (1), shape = (0, 3)}",
         {f32s({1, 2, 3})}, {});
}

TEST(EvalShape, ReshapeMayPermuteFirst) {
  const Tensor x = counted({2, 3});
  expect("f32[6] = reshape %a {dimensions = none, new_sizes = (6)}", {x}, {0, 1, 2, 3, 4, 5});
  expect("f32[6] = reshape %a {dimensions = (1, 0), new_sizes = (6)}", {x}, {0, 3, 1, 4, 2, 5});
  expect("f32[2,3] = squeeze %a {dimensions = (1)}", {counted({2, 1, 3})}, values(x));
  EXPECT_EQ(error_of("f32[5] = reshape %a {dimensions = none, new_sizes = (5)}", {x}),
            "E041: primitive 'reshape': (2, 3) does not reshape to (5)");
}

TEST(EvalShape, TransposeRevTile) {
  expect("f32[3,2] = transpose %a {permutation = (1, 0)}", {counted({2, 3})}, {0, 3, 1, 4, 2, 5});
  expect("f32[2,3] = rev %a {dimensions = (1)}", {counted({2, 3})}, {2, 1, 0, 5, 4, 3});
  expect("f32[0] = rev %a {dimensions = (0)}", {f32s({})}, {});
  expect("f32[2,4] = tile %a {reps = (2, 2)}", {f32({1, 2}, {1, 2})}, {1, 2, 1, 2, 1, 2, 1, 2});
}

TEST(EvalShape, JoinAndTakeApart) {
  const Tensor x = f32({2, 1}, {1, 2}), y = f32({2, 2}, {3, 4, 5, 6});
  expect("f32[2,3] = concatenate %a %b {dimension = 1}", {x, y}, {1, 3, 4, 2, 5, 6});
  expect("f32[2,2] = stack %a %b {axis = 1}", {f32s({1, 2}), f32s({3, 4})}, {1, 3, 2, 4});
  const auto split = evaluate("f32[2,1], f32[2,1] = split %a {axis = 1, sizes = (1, 1)}", {y});
  expect_values(split[1], {4, 6});
  const auto rows = evaluate("f32[2], f32[2] = unstack %a {axis = 0}", {y});
  expect_values(rows[1], {5, 6});
  EXPECT_EQ(error_of("f32[2,4] = concatenate %a %b {dimension = 1}", {x, y}),
            "E041: primitive 'concatenate': the result is too large");
}

TEST(EvalShape, PadIsNegativeAndInterior) {
  const Tensor zero = f32({}, {0});
  expect("f32[7] = pad %a %b {padding_config = ((1, 1, 1))}", {f32s({1, 2, 3}), zero},
         {0, 1, 0, 2, 0, 3, 0});
  expect("f32[1] = pad %a %b {padding_config = ((-1, -1, 0))}", {f32s({1, 2, 3}), zero}, {2});
  expect("f32[4] = pad %a %b {padding_config = ((-1, 1, 1))}", {f32s({1, 2, 3}), zero},
         {0, 2, 0, 3});
  expect("f32[3] = pad %a %b {padding_config = ((2, 1, 0))}", {f32s({}), f32({}, {9})}, {9, 9, 9});
  expect("f32[0] = pad %a %b {padding_config = ((-5, 2, 0))}", {f32s({1, 2, 3}), zero}, {});
}

TEST(EvalShape, SliceStaysInside) {
  const std::string slice = "slice %a {limit_indices = (5), start_indices = (1), strides = (2)}";
  expect("f32[2] = " + slice, {f32s({0, 1, 2, 3, 4})}, {1, 3});
  EXPECT_EQ(error_of("f32[3] = " + slice, {f32s({0, 1, 2, 3, 4})}),
            "E041: primitive 'slice': the result has another size than declared");
  const std::string beyond = "slice %a {limit_indices = (6), start_indices = (1), strides = (2)}";
  EXPECT_EQ(error_of("f32[3] = " + beyond, {f32s({0, 1, 2, 3, 4})}),
            "E041: primitive 'slice': the slice ends outside");
}

TEST(EvalShape, IotaCountsAlongItsDim) {
  expect("f32[2,3] = iota {dimension = 1, dtype = f32, shape = (2, 3)}", {}, {0, 1, 2, 0, 1, 2});
  expect("i32[0] = iota {dimension = 0, dtype = i32, shape = (0)}", {}, {});
}

TEST(EvalContract, DotGeneralPutsBatchDimsFirst) {
  const std::string numbers = "{dimension_numbers = (((1), (0)), ((), ()))}";
  expect("f32[2,2] = dot_general %a %b " + numbers, {counted({2, 3}), counted({3, 2})},
         {10, 13, 28, 40});
  expect("f32[2,2,1] = dot_general %a %b {dimension_numbers = (((1), (2)), ((2), (0)))}",
         {counted({2, 2, 2}), counted({2, 1, 2})}, {2, 6, 11, 31});
}

TEST(EvalContract, DotGeneralWidensAndHandlesEmpty) {
  const std::string numbers = "{dimension_numbers = (((0), (0)), ((), ()))}";
  const Tensor bytes = vec(DType::kI8, {100, 100});
  expect("i32[] = dot_general %a %b " + numbers, {bytes, bytes}, {20000});
  expect("f32[] = dot_general %a %b " + numbers, {f32s({}), f32s({})}, {0});
  expect("bool[] = dot_general %a %b " + numbers,
         {vec(DType::kBool, {1, 0}), vec(DType::kBool, {1, 1})}, {1});
  EXPECT_EQ(error_of("f32[] = dot_general %a %b " + numbers, {f32s({1, 2}), f32s({1})}),
            "E041: primitive 'dot_general': contracted dims have different sizes");
}

std::string conv(std::string_view type, std::string_view rest) {
  return fmt::format(
      "{} = conv_general_dilated %a %b {{dimension_numbers = ConvDimensionNumbers{{lhs_spec = (0, "
      "1, 2), rhs_spec = (0, 1, 2), out_spec = (0, 1, 2)}}, {}}}",
      type, rest);
}

TEST(EvalConv, StridesPaddingAndDilation) {
  const Tensor x = f32({1, 1, 5}, {1, 2, 3, 4, 5}), w = f32({1, 1, 2}, {1, 10});
  expect(conv("f32[1,1,3]",
              "batch_group_count = 1, feature_group_count = 1, lhs_dilation = (1), padding = ((1, "
              "0)), rhs_dilation = (1), window_strides = (2)"),
         {x, w}, {10, 32, 54});
  expect(conv("f32[1,1,3]",
              "batch_group_count = 1, feature_group_count = 1, lhs_dilation = (1), padding = ((0, "
              "0)), rhs_dilation = (2), window_strides = (1)"),
         {x, w}, {31, 42, 53});
  expect(conv("f32[1,1,8]",
              "batch_group_count = 1, feature_group_count = 1, lhs_dilation = (2), padding = ((0, "
              "0)), rhs_dilation = (1), window_strides = (1)"),
         {x, w}, {1, 20, 2, 30, 3, 40, 4, 50});
}

TEST(EvalConv, Groups) {
  const std::string rest =
      "lhs_dilation = (1), padding = ((0, 0)), rhs_dilation = (1), window_strides = (1)";
  const Tensor w = f32({2, 1, 1}, {1, 10});
  expect(conv("f32[1,2,2]", "batch_group_count = 1, feature_group_count = 2, " + rest),
         {f32({1, 2, 2}, {1, 2, 3, 4}), w}, {1, 2, 30, 40});
  expect(conv("f32[1,2,2]", "batch_group_count = 2, feature_group_count = 1, " + rest),
         {f32({2, 1, 2}, {1, 2, 3, 4}), w}, {1, 2, 30, 40});
}

TEST(EvalWindow, PoolingIgnoresThePadding) {
  const std::string rest =
      "{base_dilation = (1), padding = ((1, 1)), window_dilation = (1), window_dimensions = (3), "
      "window_strides = (2)}";
  const Tensor x = f32s({-1, -2, -3, -4, -5});
  expect("f32[3] = reduce_window_max %a " + rest, {x}, {-1, -2, -4});
  expect("f32[3] = reduce_window_min %a " + rest, {x}, {-2, -4, -5});
  expect("f32[3] = reduce_window_sum %a " + rest, {x}, {-3, -9, -9});
}

constexpr std::string_view kRowsOf =
    "dimension_numbers = GatherDimensionNumbers{offset_dims = (1), collapsed_slice_dims = (0), "
    "start_index_map = (0), operand_batching_dims = (), start_indices_batching_dims = ()}, "
    "slice_sizes = (1, 2)";

TEST(EvalIndex, GatherModes) {
  const Tensor table = f32({3, 2}, {0, 1, 2, 3, 4, 5}), at = i32({3, 1}, {2, -1, 9});
  const auto gather = [](std::string_view mode) {
    return fmt::format("f32[3,2] = gather %a %b {{{}, {}}}", kRowsOf, mode);
  };
  expect(gather("fill_value = none, mode = #clip"), {table, at}, {4, 5, 0, 1, 4, 5});
  expect(gather("fill_value = none, mode = #promise_in_bounds"), {table, at}, {4, 5, 0, 1, 4, 5});
  expect(gather("fill_value = none, mode = #fill_or_drop"), {table, at},
         {4, 5, kNaN, kNaN, kNaN, kNaN});
  expect(gather("fill_value = 7, mode = #fill_or_drop"), {table, at}, {4, 5, 7, 7, 7, 7});
}

TEST(EvalIndex, GatherWithBatchDims) {
  expect(
      "f32[2,2] = gather %a %b {dimension_numbers = GatherDimensionNumbers{offset_dims = (), "
      "collapsed_slice_dims = (1), start_index_map = (1), operand_batching_dims = (0), "
      "start_indices_batching_dims = (0)}, slice_sizes = (1, 1), fill_value = none, mode = #clip}",
      {f32({2, 3}, {0, 1, 2, 3, 4, 5}), i32({2, 2, 1}, {0, 2, 1, 1})}, {0, 2, 4, 4});
}

std::string scatter(std::string_view name, std::string_view mode) {
  return fmt::format(
      "f32[3] = {} %a %b %c {{dimension_numbers = ScatterDimensionNumbers{{update_window_dims = "
      "(), inserted_window_dims = (0), scatter_dims_to_operand_dims = (0), operand_batching_dims = "
      "(), scatter_indices_batching_dims = ()}}, mode = #{}, update_jaxpr = none}}",
      name, mode);
}

TEST(EvalIndex, ScatterCombinesInOrder) {
  const std::vector<Tensor> operands{f32s({1, 2, 3}), i32({4, 1}, {0, 0, 5, 2}),
                                     f32s({10, 20, 30, 40})};
  expect(scatter("scatter", "fill_or_drop"), operands, {20, 2, 40});
  expect(scatter("scatter", "clip"), operands, {20, 2, 40});
  expect(scatter("scatter-add", "fill_or_drop"), operands, {31, 2, 43});
  expect(scatter("scatter-add", "clip"), operands, {31, 2, 73});
  expect(scatter("scatter-sub", "fill_or_drop"), operands, {-29, 2, -37});
  expect(scatter("scatter-mul", "fill_or_drop"), operands, {200, 2, 120});
  expect(scatter("scatter-max", "promise_in_bounds"), operands, {20, 2, 40});
  expect(scatter("scatter-min", "promise_in_bounds"), operands, {1, 2, 3});
}

TEST(EvalIndex, ScatterOfNothingIsTheOperand) {
  expect(scatter("scatter-add", "clip"), {f32s({1, 2, 3}), i32({0, 1}, {}), f32s({})}, {1, 2, 3});
}

TEST(EvalIndex, DynamicSlicesAreClamped) {
  const Tensor x = f32s({0, 1, 2, 3}), nine = i32({}, {9}), minus = i32({}, {-3});
  expect("f32[2] = dynamic_slice %a %b {slice_sizes = (2)}", {x, nine}, {2, 3});
  expect("f32[2] = dynamic_slice %a %b {slice_sizes = (2)}", {x, minus}, {0, 1});
  expect("f32[4] = dynamic_update_slice %a %b %c", {x, f32s({8, 9}), nine}, {0, 1, 8, 9});
  EXPECT_EQ(error_of("f32[5] = dynamic_slice %a %b {slice_sizes = (5)}", {x, nine}),
            "E041: primitive 'dynamic_slice': the window is larger than the operand");
}

TEST(EvalSort, KeysOrderAllOperands) {
  const auto sorted =
      evaluate("f32[4], i32[4] = sort %a %b {dimension = 0, is_stable = true, num_keys = 1}",
               {f32s({2, kNaN, -kInf, 2}), i32s({0, 1, 2, 3})});
  expect_values(sorted[0], {-kInf, 2, 2, kNaN});
  expect_values(sorted[1], {2, 0, 3, 1});
  expect("f32[2,2] = sort %a {dimension = 0, is_stable = true, num_keys = 1}",
         {f32({2, 2}, {3, 1, 2, 4})}, {2, 1, 3, 4});
  expect("f32[0] = sort %a {dimension = 0, is_stable = true, num_keys = 1}", {f32s({})}, {});
}

TEST(EvalSort, TopKTakesTheFirstOfEqualOnes) {
  const auto top = evaluate("f32[3], i32[3] = top_k %a {axis = 0, k = 3}", {f32s({1, 5, kNaN, 5})});
  expect_values(top[0], {kNaN, 5, 5});
  expect_values(top[1], {2, 1, 3});
}

}  // namespace
}  // namespace jaxport::eval
