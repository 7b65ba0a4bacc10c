// SPDX-License-Identifier: Apache-2.0
// What a pass does and what it leaves alone is text: tests/golden/pass.
#include "pass/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "onnx/builder.h"

namespace jaxport::pass {
namespace {

using onnx::Args;
using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::TensorType;
using onnx::Value;
using ::testing::ElementsAre;

// 0, 1, 2, …
Tensor numbers(std::int64_t count) {
  MutableTensor result = allocate(DType::kF32, {count});
  std::iota(result.as<float>(), result.as<float>() + count, 0.0F);
  return result.tensor;
}

// A model with something to do for every pass.
class PassTest : public ::testing::Test {
 protected:
  PassTest() {
    const Value x = op.input("x", TensorType{DType::kF32, Dims{4, 2}});
    views(x);
    slices(x);
    block_moves();
    op.output(op.Identity(op.Add(op.MatMul(x, op.input("w", {DType::kF32, Dims{2, 3}})),
                                 op.input("b", {DType::kF32, Dims{3}}))),
              "gemm");
    copies(x);
    channels();
    tokens();
    loop(x);
    op.output(op.Add(op.input("i", {DType::kI64, Dims{2}}), op.Add(op.ints({1, 2}), op.ints({3}))),
              "folded");
    const Tensor two = scalar(DType::kF32, 2), also_two = scalar(DType::kF32, 2);
    op.output(op.Mul(op.Mul(x, op.weight(whole(two), {}, "")), op.weight(whole(also_two), {}, "")),
              "shared");
    op.output(op.Identity(op.ints({7, 8, 9})), "constant");
    const Value wide = op.input("wide", TensorType{DType::kF32, Dims{500}});
    const auto large = [&] { return op.weight(whole(numbers(500)), {500}, ""); };
    op.output(op.Mul(op.Mul(wide, large()), large()), "shared_weights");
  }

  void views(const Value& x) {
    const Value a = op.Transpose(op.Transpose(x, Args{{"perm", {1, 0}}}), Args{{"perm", {1, 0}}});
    const Value b = op.Reshape(op.Reshape(x, op.ints({8})), op.ints({4, 2}));
    op.output(op.Add(op.Relu(a), op.Relu(b)), "views");
  }
  void slices(const Value& x) {
    const Value rows = op.Slice(x, op.ints({1}), op.ints({3}), op.ints({0}));
    op.output(op.Slice(rows, op.ints({0}), op.ints({1}), op.ints({1})), "slices");
  }
  void block_moves() {
    const Value image = op.input("image", TensorType{DType::kF32, Dims{2, 12, 4, 5}});
    const Value split = op.Reshape(image, op.ints({2, 3, 2, 2, 4, 5}));
    const Value moved = op.Transpose(split, Args{{"perm", {0, 1, 4, 2, 5, 3}}});
    op.output(op.Reshape(moved, op.ints({2, 3, 8, 10})), "block_moves");
  }
  void copies(const Value& x) {
    op.output(op.call("Concat", {op.call("Concat", {x, x}, {{"axis", 1}}), x}, {{"axis", 1}}),
              "copies");
  }
  // The means of blocks, and a scale and a shift for each channel.
  void channels() {
    const Value image = op.input("pixels", TensorType{DType::kF32, Dims{2, 3, 4}});
    op.output(op.ReduceMean(op.Reshape(image, op.ints({2, 3, 2, 2})), op.ints({3}),
                            Args{{"keepdims", 0}}),
              "means");
    const StridedView numbers = whole(materialise({scalar(DType::kF32, 2), 0, {3, 1}, {0, 0}}));
    op.output(op.Add(op.Mul(image, op.weight(numbers, {3, 1}, "")), op.weight(numbers, {3, 1}, "")),
              "channels");
  }
  // More products with a bias than borders.
  void tokens() {
    Value x = op.input("tokens", TensorType{DType::kF32, Dims{2, 5, 4}});
    const Value weight = op.input("weight", {DType::kF32, Dims{4, 4}}),
                bias = op.input("bias", {DType::kF32, Dims{4}});
    for (int i = 0; i < 3; ++i) x = op.Add(op.MatMul(x, weight), bias);
    op.output(x, "layers");
  }
  // Every step computes the same exponential.
  void loop(const Value& x) {
    auto body = std::make_shared<Graph>();
    Builder inner(op, *body);
    const Value row = inner.input("", {DType::kF32, Dims{2}});
    inner.output(inner.Add(row, inner.ReduceSum(inner.Exp(x))), "");
    op.output(op.call_n("Scan", {x}, 1, {{"body", body}, {"num_scan_inputs", 1}})[0], "loop");
  }
  // The ops that are left, after the model was found to be valid.
  std::vector<std::string> ops() {
    onnx::name_values(model);
    onnx::verify(model, "after the passes");
    std::vector<std::string> names;
    for (const Node& node : model.graph.nodes) names.push_back(node.op);
    return names;
  }

  Model model;
  Builder op{model, 23};
};

TEST_F(PassTest, every_pass_says_whether_it_changed_something) {
  // Nodes become equal when constants are shared, and dead when others take their place.
  // What makes one short op of several has nothing to do here: tests/golden/pass has its cases.
  for (const Pass& pass : pipeline()) {
    const std::string_view name = pass.name;
    const bool is_short = name == "make_means" || name == "make_one_hots" ||
                          name == "make_short_reductions" || name == "multiply_before_gathering";
    const std::size_t changes = pass.run(model);
    if (!is_short) {
      EXPECT_GT(changes, 0u) << pass.name;
    }
  }
  run_all(model);
  for (const Pass& pass : pipeline()) EXPECT_EQ(pass.run(model), 0u) << pass.name;
}

TEST_F(PassTest, the_pipeline_ends_when_nothing_changes) {
  run_all(model);
  EXPECT_THAT(ops(),
              ElementsAre("Relu", "Add", "Slice", "DepthToSpace", "Gemm", "Concat", "AveragePool",
                          "BatchNormalization", "Reshape", "Gemm", "Gemm", "Gemm", "Reshape", "Exp",
                          "ReduceSum", "Scan", "Add", "Mul", "Mul", "Mul", "Mul"));
}

TEST(ShareConstants, large_ones_stay) {
  Model model;
  Builder op(model, 23);
  const Tensor large = materialise({scalar(DType::kF32, 2), 0, {500}, {0}});
  const Value a = op.weight(whole(large), {500}, ""), b = op.weight(whole(large), {500}, "");
  op.output(op.Mul(a, b), "y");
  EXPECT_EQ(share_constants(model), 0u);
}

class ShareLargeWeights : public ::testing::Test {
 protected:
  // How many weights of a model with these go.
  std::size_t shared(const StridedView& a, const StridedView& b, Shape b_shape = {20, 30}) {
    Builder op(model, 23);
    const Value first = op.weight(a, {20, 30}, "first");
    op.output(op.Add(op.ReduceMax(first), op.ReduceMax(op.weight(b, b_shape, "second"))), "y");
    const std::size_t changes = share_large_weights(model);
    onnx::name_values(model);
    onnx::verify(model, "after the pass");
    EXPECT_EQ(model.graph.initializers.size() + changes, 2U);
    return changes;
  }
  static StridedView all() { return whole(numbers(600)); }
  static StridedView transposed() { return {numbers(600), 0, {20, 30}, {1, 20}}; }
  static StridedView reversed() { return {numbers(600), 599, {600}, {-1}}; }

  Model model;
};

TEST_F(ShareLargeWeights, equal_bytes_at_other_addresses) { EXPECT_EQ(shared(all(), all()), 1U); }
TEST_F(ShareLargeWeights, views_of_equal_bytes) {
  EXPECT_EQ(shared(transposed(), transposed()), 1U);
}
TEST_F(ShareLargeWeights, views_that_go_backwards) {
  EXPECT_EQ(shared(reversed(), reversed()), 1U);
}
TEST_F(ShareLargeWeights, equal_elements_of_other_bytes) {
  EXPECT_EQ(shared(transposed(), whole(materialise(transposed()))), 1U);
}
TEST_F(ShareLargeWeights, another_order_is_another_weight) {
  EXPECT_EQ(shared(all(), transposed()), 0U);
}
TEST_F(ShareLargeWeights, another_shape_is_another_weight) {
  EXPECT_EQ(shared(all(), all(), {30, 20}), 0U);
}
TEST_F(ShareLargeWeights, one_element_that_no_sample_looks_at) {
  for (const std::int64_t at : {1, 2, 41, 300, 598}) {
    model = {};
    MutableTensor other = allocate(DType::kF32, {600});
    std::ranges::copy(numbers(600).as<float>(), other.as<float>());
    other.as<float>()[at] = -1;
    EXPECT_EQ(shared(all(), whole(other.tensor)), 0U) << at;
  }
}

}  // namespace
}  // namespace jaxport::pass
