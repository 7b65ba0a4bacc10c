// SPDX-License-Identifier: Apache-2.0
#include "target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "jaxport/error.h"
#include "onnx/expr.h"
#include "onnx/schema.h"
#include "target/conduct.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::TensorType;
using onnx::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class TargetTest : public ::testing::Test {
 protected:
  Value input(DType dtype, Dims shape = {4}) {
    return op.input("x" + std::to_string(inputs_++), TensorType{dtype, std::move(shape)});
  }
  // The ops after legalising, which must leave a valid model whose outputs keep their dtypes.
  std::vector<std::string> ops(Target target = Target::kOnnxRuntime) {
    std::vector<DType> before, after;
    for (onnx::ValueId id : model.graph.outputs) before.push_back(dtype(id));
    legalise(model, target);
    for (onnx::ValueId id : model.graph.outputs) after.push_back(dtype(id));
    EXPECT_EQ(before, after);
    onnx::name_values(model);
    onnx::verify(model, "after legalising");
    return ops_of(model.graph);
  }
  static std::vector<std::string> ops_of(const Graph& graph) {
    std::vector<std::string> names;
    for (const Node& node : graph.nodes) names.push_back(node.op);
    return names;
  }
  DType dtype(onnx::ValueId id) const { return model.values[id].type->dtype; }
  // The dtype in which the first node of this op computes.
  DType computed_in(std::string_view name) const {
    for (const Node& node : model.graph.nodes) {
      if (node.op == name) return dtype(node.in[0]);
    }
    ADD_FAILURE() << "no " << name;
    return DType::kString;
  }

  Model model;
  Builder op{model, 23, onnx::DTypeRule::kAny};

 private:
  int inputs_ = 0;
};

TEST_F(TargetTest, what_the_runtime_can_do_is_not_touched) {
  const Value x = input(DType::kF32), n = input(DType::kI32);
  op.output(op.Add(op.Erf(x), x), "y");
  op.output(op.Max(n, n), "z");
  EXPECT_THAT(ops(), ElementsAre("Erf", "Add", "Max"));
}

TEST_F(TargetTest, bf16_is_computed_in_f32) {
  const Value x = input(DType::kBF16);
  op.output(op.Mul(x, x), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "Mul", "Cast"));
  EXPECT_EQ(computed_in("Mul"), DType::kF32);
}

TEST_F(TargetTest, the_specification_alone_allows_bf16) {
  const Value x = input(DType::kBF16);
  op.output(op.Mul(x, x), "y");
  EXPECT_THAT(ops(Target::kOnnx), ElementsAre("Mul"));
}

TEST_F(TargetTest, a_rounded_result_is_widened_from_its_rounded_value) {
  const Value x = input(DType::kBF16);
  op.output(op.Mul(op.Exp(x), x), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "Exp", "Cast", "Cast", "Mul", "Cast"));
}

TEST_F(TargetTest, an_exact_result_stays_wide_for_the_next_op) {
  const Value x = input(DType::kBF16);
  op.output(op.Exp(op.Max(op.Neg(x), x)), "y");
  // The narrow forms of Neg and Max are left for dead code removal.
  EXPECT_THAT(ops(), ElementsAre("Cast", "Neg", "Cast", "Max", "Cast", "Exp", "Cast"));
}

TEST_F(TargetTest, small_constants_are_converted) {
  const Value x = input(DType::kF16);
  op.output(op.Mul(x, op.scalar(0.5, DType::kF16)), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "Mul", "Cast"));
  EXPECT_EQ(computed_in("Mul"), DType::kF32);
}

TEST_F(TargetTest, sums_of_narrow_integers_wrap_in_i32) {
  op.output(op.ReduceSum(input(DType::kI8)), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "ReduceSum", "Cast"));
  EXPECT_EQ(computed_in("ReduceSum"), DType::kI32);
}

TEST_F(TargetTest, products_of_u8_wrap_in_i32) {
  const Value x = input(DType::kU8, {2, 2});
  op.output(op.MatMul(x, x), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "MatMul", "Cast"));
  EXPECT_EQ(computed_in("MatMul"), DType::kI32);
}

TEST_F(TargetTest, the_largest_u16_is_found_in_i32) {
  op.output(op.ReduceMax(input(DType::kU16)), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "ReduceMax", "Cast"));
  EXPECT_EQ(computed_in("ReduceMax"), DType::kI32);
}

TEST_F(TargetTest, the_order_of_u64_is_kept_by_a_bias) {
  const Value k = op.ints({2});
  op.output(op.call_n("TopK", {input(DType::kU64), k}, 2)[0], "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "Add", "TopK", "Add", "Cast"));
}

// --- kernels that are wrong for large numbers

TEST_F(TargetTest, i64_that_may_be_large_is_compared_by_other_ops) {
  const Value x = input(DType::kI64), y = input(DType::kI64);
  op.output(op.Max(x, y), "z");
  EXPECT_THAT(ops(), ElementsAre("Greater", "Where", "Identity"));
}

TEST_F(TargetTest, i64_that_is_known_to_be_small_keeps_its_op) {
  const Value index = op.Cast(input(DType::kI32), onnx::Args{{"to", DType::kI64}});
  const Value last = op.Sub(op.Shape(input(DType::kF32)), op.ints({1}));
  op.output(op.Clip(index, op.scalar(0, DType::kI64), op.Squeeze(last)), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "Shape", "Sub", "Squeeze", "Clip"));
}

TEST_F(TargetTest, the_specification_has_no_flaws) {
  const Value x = input(DType::kI64), y = input(DType::kI64);
  op.output(op.Max(x, y), "z");
  EXPECT_THAT(ops(Target::kOnnx), ElementsAre("Max"));
}

TEST_F(TargetTest, the_largest_u32_is_found_in_f64) {
  op.output(op.ReduceMax(input(DType::kU32)), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "ReduceMax", "Cast"));
  EXPECT_EQ(computed_in("ReduceMax"), DType::kF64);
}

TEST_F(TargetTest, the_largest_i64_is_found_by_its_place) {
  op.output(op.ReduceMax(input(DType::kI64, {2, 3}), op.ints({1}), onnx::Args{{"keepdims", 0}}),
            "y");
  EXPECT_THAT(ops(), ElementsAre("ArgMax", "GatherElements", "Squeeze", "Identity"));
}

TEST_F(TargetTest, i32_is_summed_in_i64) {
  op.output(op.ReduceSum(input(DType::kI32)), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "ReduceSum", "Cast"));
  EXPECT_EQ(computed_in("ReduceSum"), DType::kI64);
}

TEST_F(TargetTest, counts_are_summed_as_they_are) {
  op.output(op.ReduceSum(op.Cast(input(DType::kBool), onnx::Args{{"to", DType::kI32}})), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "ReduceSum"));
}

TEST_F(TargetTest, i64_is_summed_in_two_halves) {
  op.output(op.ReduceSum(input(DType::kI64)), "y");
  const auto names = ops();
  EXPECT_EQ(std::ranges::count(names, "ReduceSum"), 2);
}

TEST_F(TargetTest, remainders_of_i64_are_what_division_leaves) {
  const Value x = input(DType::kI64), y = input(DType::kI64);
  op.output(op.Mod(x, y, onnx::Args{{"fmod", 1}}), "r");
  op.output(op.Mod(x, y), "m");
  EXPECT_THAT(ops(), ElementsAre("Div", "Mul", "Sub", "Identity", "Mod"));
}

TEST_F(TargetTest, integers_are_multiplied_by_a_scan) {
  op.output(op.ReduceProd(input(DType::kI32, {2, 3}), op.ints({0}), onnx::Args{{"keepdims", 0}}),
            "y");
  EXPECT_THAT(ops(), ElementsAre("Shape", "Gather", "Expand", "Scan", "Identity"));
}

TEST_F(TargetTest, truth_values_move_as_bytes) {
  const Value p = input(DType::kBool), q = input(DType::kBool);
  op.output(op.Where(p, p, q), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "Cast", "Where", "Cast"));
  EXPECT_EQ(dtype(model.graph.nodes[2].in[0]), DType::kBool);  // the condition stays
  EXPECT_EQ(dtype(model.graph.nodes[2].in[1]), DType::kU8);
}

TEST_F(TargetTest, indices_are_widened_alone) {
  op.output(op.Gather(input(DType::kF32), input(DType::kU8)), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "Gather"));
}

TEST_F(TargetTest, variables_of_one_kernel_are_widened_together) {
  const Value x = input(DType::kBF16, {1, 2, 4, 8});
  op.output(op.Attention(x, x, x), "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "Attention", "Cast"));
}

TEST_F(TargetTest, a_scatter_that_adds_narrow_floats_is_widened) {
  const Value x = input(DType::kF16), at = input(DType::kI64);
  op.output(op.ScatterElements(x, at, x), "y");
  op.output(op.ScatterElements(x, at, x, onnx::Args{{"reduction", "add"}}), "z");
  EXPECT_THAT(ops(), ElementsAre("ScatterElements", "Cast", "ScatterElements", "Cast"));
}

TEST_F(TargetTest, f64_functions_are_composed_of_f64_ops) {
  op.output(op.Tan(input(DType::kF64)), "y");
  EXPECT_THAT(ops(), UnorderedElementsAre("Sin", "Cos", "Div", "Identity"));
}

TEST_F(TargetTest, f64_is_never_narrowed) {
  const Value x = input(DType::kF64, {1, 1, 4, 4});
  op.set_origin({"net.py:3 in f", ""});
  op.output(op.Det(x), "y");
  try {
    legalise(model, Target::kOnnxRuntime);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "E013");
    EXPECT_THAT(error.message(), HasSubstr("ONNX Runtime cannot compute Det(f64[1,1,4,4])"));
    EXPECT_EQ(error.source(), "net.py:3 in f");
  }
}

TEST_F(TargetTest, what_a_subgraph_takes_from_outside_is_widened_outside) {
  const Value x = input(DType::kBF16);
  auto taken = std::make_shared<Graph>(), other = std::make_shared<Graph>();
  for (const auto& graph : {taken, other}) {
    Builder inner(op, *graph);
    inner.output(inner.Exp(x), "");
  }
  op.output(
      op.If(input(DType::kBool, {}), onnx::Args{{"then_branch", taken}, {"else_branch", other}}),
      "y");
  EXPECT_THAT(ops(), ElementsAre("Cast", "If"));
  EXPECT_THAT(ops_of(*taken), ElementsAre("Exp", "Cast"));
}

// --- what ONNX Runtime's own rewrites break

class FaultTest : public TargetTest {
 protected:
  static Value scaled(const Value& value, double by) { return value * by; }
  // How many elements the constant of the product has that gives `value`.
  std::int64_t constant_size(const Value& value) const {
    for (const Node& node : model.graph.nodes) {
      if (node.out[0] == value.id()) return model.values[node.in[1]].type->shape->size() ? 4 : 1;
    }
    return 0;
  }
  const Value x = input(DType::kF32, {4, 4}), y = input(DType::kF32, {4, 4});
};

TEST_F(FaultTest, a_scale_on_ways_of_different_length_is_kept_apart) {
  const Value s = scaled(x, 0.01), t = scaled(s, 0.5);
  op.output(op.MatMul(op.MatMul(t, y), s), "z");
  EXPECT_TRUE(avoid_faults(model, Target::kOnnxRuntime));
  EXPECT_EQ(constant_size(s), 4);
  EXPECT_EQ(constant_size(t), 1);
}

TEST_F(FaultTest, scales_on_ways_of_equal_length_are_merged) {
  const Value s = scaled(x, 0.01);
  op.output(op.MatMul(op.MatMul(s, y), s), "z");
  EXPECT_FALSE(avoid_faults(model, Target::kOnnxRuntime));
}

TEST_F(FaultTest, extreme_scales_matter_beside_products_only) {
  const Value alone = scaled(x, 1e30), beside = scaled(op.MatMul(x, y), 1e30);
  op.output(op.Exp(alone), "e");
  op.output(beside, "z");
  EXPECT_TRUE(avoid_faults(model, Target::kOnnxRuntime));
  EXPECT_EQ(constant_size(alone), 1);
  EXPECT_EQ(constant_size(beside), 4);
}

TEST_F(FaultTest, a_cast_comes_before_a_transpose_that_moves_the_first_dim) {
  const Value narrow = input(DType::kF16, {2, 5, 4});
  const auto multiply = [&](std::vector<std::int64_t> perm, const Value& by) {
    const Value turned = op.Transpose(narrow, onnx::Args{{"perm", std::move(perm)}});
    return op.MatMul(op.Cast(turned, onnx::Args{{"to", DType::kF32}}), by);
  };
  op.output(multiply({1, 0, 2}, y), "z");
  EXPECT_FALSE(avoid_faults(model, Target::kOnnx));
  EXPECT_TRUE(avoid_faults(model, Target::kOnnxRuntime));
  // The first Transpose is dead.
  EXPECT_THAT(ops_of(model.graph), ElementsAre("Transpose", "Cast", "Transpose", "MatMul"));
}

TEST_F(FaultTest, a_cast_stays_where_the_ranks_are_equal) {
  const Value narrow = input(DType::kF16, {2, 5, 4});
  const Value turned = op.Transpose(narrow, onnx::Args{{"perm", {1, 0, 2}}});
  const Value wide = op.Cast(turned, onnx::Args{{"to", DType::kF32}});
  op.output(op.MatMul(wide, input(DType::kF32, {1, 4, 3})), "z");
  EXPECT_FALSE(avoid_faults(model, Target::kOnnxRuntime));
}

// x turned as `perm` says, times y.
class EmptyProductTest : public FaultTest {
 protected:
  bool is_guarded(const Dims& shape, std::vector<std::int64_t> perm, const Dims& by) {
    const Value given = input(DType::kF32, shape);
    const Value turned = op.Transpose(given, onnx::Args{{"perm", std::move(perm)}});
    const Value product = op.MatMul(scaled(turned, 0.5), input(DType::kF32, by));
    op.output(product, "z" + std::to_string(model.graph.outputs.size()));
    const bool changed = avoid_faults(model, Target::kOnnxRuntime);
    onnx::name_values(model);
    onnx::verify(model, "after the faults were avoided");
    return changed;
  }
  DimScope scope;
  const Dim batch = scope.symbol("B");
};

TEST_F(EmptyProductTest, a_product_whose_first_dim_is_merged_into_it_stands_in_an_if) {
  EXPECT_TRUE(is_guarded({batch, 6, 4}, {1, 0, 2}, {6, 4, 5}));
  EXPECT_THAT(ops_of(model.graph), ElementsAre("Transpose", "Mul", "Shape", "Cast", "If"));
}

TEST_F(EmptyProductTest, both_orders_of_the_matrix_are_merged) {
  EXPECT_TRUE(is_guarded({batch, 6, 2, 4}, {1, 2, 3, 0}, {6, 2, batch, 5}));
}

TEST_F(EmptyProductTest, other_orders_are_not_merged) {
  EXPECT_FALSE(is_guarded({batch, 6, 4}, {2, 0, 1}, {4, 6, 5}));
  EXPECT_FALSE(is_guarded({batch, 6, 4}, {0, 2, 1}, {batch, 6, 5}));
}

TEST_F(EmptyProductTest, neither_are_operands_of_different_rank) {
  EXPECT_FALSE(is_guarded({batch, 6, 4}, {1, 0, 2}, {4, 5}));
}

TEST_F(EmptyProductTest, a_size_of_at_least_one_needs_no_guard) {
  EXPECT_FALSE(is_guarded({3, 6, 4}, {1, 0, 2}, {6, 4, 5}));
  EXPECT_FALSE(is_guarded({batch + Dim(1), 6, 4}, {1, 0, 2}, {6, 4, 5}));
}

TEST(Runs, follows_the_registry) {
  EXPECT_TRUE(runs(Target::kOnnxRuntime, "Softmax", 23, DType::kF64));
  EXPECT_FALSE(runs(Target::kOnnxRuntime, "Attention", 23, DType::kF64));
  EXPECT_TRUE(runs(Target::kOnnx, "Attention", 23, DType::kF64));
  EXPECT_FALSE(runs(Target::kOnnx, "Attention", 22, DType::kF32));
}

TEST(TargetName, unknown_ones_are_refused) {
  EXPECT_EQ(target_from_name("onnx"), Target::kOnnx);
  EXPECT_THROW(target_from_name("webgpu"), Error);
}

// --- which dtypes may stand in for another

struct FormCase {
  Conduct conduct;
  DType from;
  std::optional<DType> to;
};

class WideFormTest : public ::testing::TestWithParam<FormCase> {};

TEST_P(WideFormTest, is_the_first_that_is_right) {
  const auto& [conduct, from, to] = GetParam();
  const auto form = wide_form(conduct, from, [from = from](DType dtype) { return dtype != from; });
  EXPECT_EQ(form ? std::optional(form->dtype) : std::nullopt, to);
}

INSTANTIATE_TEST_SUITE_P(Rules, WideFormTest,
                         ::testing::Values(FormCase{Conduct::kCopies, DType::kU16, DType::kI16},
                                           FormCase{Conduct::kCopies, DType::kBool, DType::kU8},
                                           FormCase{Conduct::kCopies, DType::kBF16, DType::kF32},
                                           FormCase{Conduct::kCopies, DType::kF64, std::nullopt},
                                           FormCase{Conduct::kOrders, DType::kU16, DType::kI32},
                                           FormCase{Conduct::kOrders, DType::kU32, DType::kI64},
                                           FormCase{Conduct::kOrders, DType::kU64, DType::kI64},
                                           FormCase{Conduct::kOrders, DType::kI32, DType::kI64},
                                           FormCase{Conduct::kWraps, DType::kU32, DType::kI32},
                                           FormCase{Conduct::kWraps, DType::kI64, DType::kU64},
                                           FormCase{Conduct::kValues, DType::kI8, DType::kI16},
                                           FormCase{Conduct::kValues, DType::kU64, std::nullopt},
                                           FormCase{Conduct::kReal, DType::kI32, std::nullopt},
                                           FormCase{Conduct::kReal, DType::kF16, DType::kF32}));

}  // namespace
}  // namespace jaxport::target
