// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jaxport/error.h"
#include "onnx/builder.h"
#include "onnx/expr.h"

namespace jaxport::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OnnxTest : public ::testing::Test {
 protected:
  TensorType f32(Dims shape) { return {DType::kF32, std::move(shape)}; }
  TensorType i64(Dims shape) { return {DType::kI64, std::move(shape)}; }
  Dim symbol(std::string_view name) { return model.dims->symbol(name); }
  Value x(Dims shape) { return op.input("x" + std::to_string(inputs++), f32(std::move(shape))); }
  Value indices(Dims shape) {
    return op.input("i" + std::to_string(inputs++), i64(std::move(shape)));
  }
  std::string finished_text() {
    name_values(model);
    verify(model, "test");
    return print(model);
  }

  Model model;
  Builder op{model, 23};
  int inputs = 0;
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// --- schemas

TEST(SchemaTest, the_newest_schema_that_the_opset_allows_is_in_force) {
  EXPECT_EQ(find_schema("Reshape", 17)->since, 14);
  EXPECT_EQ(find_schema("Reshape", 20)->since, 19);
  EXPECT_EQ(find_schema("Reshape", 23)->since, 23);
}

TEST(SchemaTest, an_op_does_not_exist_before_its_opset) {
  EXPECT_EQ(find_schema("RMSNormalization", 22), nullptr);
  EXPECT_NE(find_schema("RMSNormalization", 23), nullptr);
  EXPECT_EQ(find_schema("Gelu", 19), nullptr);
  EXPECT_NE(find_schema("Gelu", 20), nullptr);
  EXPECT_EQ(find_schema("NoSuchOp", 23), nullptr);
}

TEST(SchemaTest, axes_of_reductions_move_from_attribute_to_input) {
  const auto has_axes_attribute = [](const Schema* schema) {
    return std::ranges::any_of(schema->attrs, [](auto& attr) { return attr.name == "axes"; });
  };
  EXPECT_FALSE(has_axes_attribute(find_schema("ReduceSum", 17)));
  EXPECT_TRUE(has_axes_attribute(find_schema("ReduceMax", 17)));
  EXPECT_FALSE(has_axes_attribute(find_schema("ReduceMax", 18)));
}

TEST(SchemaTest, type_constraints_follow_the_opset) {
  const auto accepts_bool = [](int opset) {
    return allows(find_schema("ReduceMax", opset)->types[0], DType::kBool);
  };
  EXPECT_FALSE(accepts_bool(18));
  EXPECT_TRUE(accepts_bool(20));
}

TEST(SchemaTest, the_ir_version_is_10_until_the_opset_needs_more) {
  EXPECT_EQ(ir_version_for(17), 10);
  EXPECT_EQ(ir_version_for(23), 10);
  EXPECT_EQ(ir_version_for(24), 12);
  EXPECT_EQ(ir_version_for(26), 13);
}

// --- calls that do not fit

TEST_F(OnnxTest, an_unknown_op_is_a_bug) {
  EXPECT_THAT(message_of([&] { op.call("Frobnicate", {x({2})}); }), HasSubstr("Frobnicate"));
}

TEST_F(OnnxTest, an_op_newer_than_the_opset_names_both_opsets) {
  Model old;
  Builder builder(old, 19);
  const Value in = builder.input("x", f32({2}));
  const std::string message = message_of([&] { builder.Gelu(in); });
  EXPECT_THAT(message, HasSubstr("needs opset 20"));
  EXPECT_THAT(message, HasSubstr("opset 19"));
}

TEST_F(OnnxTest, a_missing_input_is_a_bug) {
  EXPECT_THAT(message_of([&] { op.MatMul(x({2, 2})); }), HasSubstr("inputs"));
  EXPECT_THAT(message_of([&] { op.MatMul(Value(), x({2, 2})); }), HasSubstr("'A' is absent"));
}

TEST_F(OnnxTest, attributes_are_checked_by_name_and_kind) {
  const Value in = x({2, 3});
  EXPECT_THAT(message_of([&] {
                op.Softmax(in, onnx::Args{{"axes", 1}});
              }),
              HasSubstr("no attribute 'axes'"));
  EXPECT_THAT(message_of([&] {
                op.Softmax(in, onnx::Args{{"axis", {1}}});
              }),
              HasSubstr("another kind"));
  EXPECT_THAT(message_of([&] { op.Cast(in); }), HasSubstr("'to' is missing"));
  EXPECT_THAT(message_of([&] {
                op.Softmax(in, onnx::Args{{"axis", 0}, {"axis", 1}});
              }),
              HasSubstr("'axis' is given twice"));
}

TEST_F(OnnxTest, operands_of_one_type_variable_must_agree) {
  const std::string message = message_of([&] { op.Add(x({2}), indices({2})); });
  EXPECT_THAT(message, HasSubstr("Add"));
  EXPECT_THAT(message, HasSubstr("f32[2]"));
  EXPECT_THAT(message, HasSubstr("i64[2]"));
}

TEST_F(OnnxTest, a_dtype_outside_of_the_constraint_is_a_bug) {
  EXPECT_THAT(message_of([&] { op.Erf(op.scalar(1, DType::kBool)); }), HasSubstr("bool"));
}

TEST_F(OnnxTest, shapes_that_do_not_fit_are_a_bug) {
  EXPECT_THAT(message_of([&] { op.Add(x({2, 3}), x({2, 4})); }), HasSubstr("3 and 4"));
  EXPECT_THROW(op.MatMul(x({2, 3}), x({4, 5})), Error);
  EXPECT_THROW(op.Reshape(x({2, 3}), op.ints({4, 2})), Error);
  EXPECT_THROW(op.Concat(x({2, 3}), x({3, 3}), onnx::Args{{"axis", 1}}), Error);
  EXPECT_THROW(op.Transpose(x({2, 3}), onnx::Args{{"perm", {0}}}), Error);
}

// --- types of results

TEST_F(OnnxTest, broadcasting_keeps_symbols) {
  const Dim b = symbol("B");
  EXPECT_THAT(op.Add(x({b, 3, 4}), x({3, 1})).shape(), ElementsAre(b, 3, 4));
  EXPECT_THAT(op.Mul(x({1, 4}), x({b, 1})).shape(), ElementsAre(b, 4));
  EXPECT_EQ(op.Less(x({b}), x({b})).dtype(), DType::kBool);
}

TEST_F(OnnxTest, dtypes_come_from_variables_attributes_and_constraints) {
  const Value in = x({2, 3});
  EXPECT_EQ(op.Cast(in, onnx::Args{{"to", DType::kBF16}}).dtype(), DType::kBF16);
  EXPECT_EQ(op.CastLike(in, indices({1})).dtype(), DType::kI64);
  EXPECT_EQ(op.Shape(in).dtype(), DType::kI64);
  EXPECT_EQ(op.ConstantOfShape(op.ints({2})).dtype(), DType::kF32);
  EXPECT_EQ(op.EyeLike(in, onnx::Args{{"dtype", DType::kI32}}).dtype(), DType::kI32);
  EXPECT_EQ(op.IsNaN(in).dtype(), DType::kBool);
  EXPECT_EQ(op.RandomNormal(onnx::Args{{"shape", {2}}}).dtype(), DType::kF32);
}

TEST_F(OnnxTest, reshape_resolves_copies_and_the_rest) {
  const Dim b = symbol("B"), t = symbol("T");
  EXPECT_THAT(op.Reshape(x({b, t, 8}), op.ints({0, -1})).shape(), ElementsAre(b, 8 * t));
  EXPECT_THAT(op.Reshape(x({b, t, 8}), op.ints({0, 0, 2, 4})).shape(), ElementsAre(b, t, 2, 4));
  EXPECT_THAT(op.Reshape(x({2, 0}), op.ints({0, 5}), onnx::Args{{"allowzero", 1}}).shape(),
              ElementsAre(0, 5));
}

TEST_F(OnnxTest, a_shape_computed_at_run_time_is_stated_by_the_caller) {
  const Dim b = symbol("B");
  const Value in = x({b, 6}), target = op.Shape(x({b, 2, 3}));
  EXPECT_THROW(op.Reshape(in, target).shape(), Error);
  EXPECT_THAT(op.call_with_shape("Reshape", {in, target}, {}, {b, 2, 3}).shape(),
              ElementsAre(b, 2, 3));
}

TEST_F(OnnxTest, a_stated_shape_may_not_contradict_inference) {
  EXPECT_THROW(op.call_with_shape("Relu", {x({2, 3})}, {}, {2, 4}), Error);
  EXPECT_THROW(op.call_with_shape("Relu", {x({2, 3})}, {}, {2}), Error);
}

TEST_F(OnnxTest, views_move_sizes) {
  const Dim b = symbol("B");
  const Value in = x({b, 3, 4});
  EXPECT_THAT(op.Transpose(in, onnx::Args{{"perm", {2, 0, 1}}}).shape(), ElementsAre(4, b, 3));
  EXPECT_THAT(op.Transpose(in).shape(), ElementsAre(4, 3, b));
  EXPECT_THAT(op.Unsqueeze(in, op.ints({0, -1})).shape(), ElementsAre(1, b, 3, 4, 1));
  EXPECT_THAT(op.Squeeze(x({b, 1, 4}), op.ints({1})).shape(), ElementsAre(b, 4));
  EXPECT_THAT(op.Flatten(in, onnx::Args{{"axis", 2}}).shape(), ElementsAre(3 * b, 4));
  EXPECT_THAT(op.Expand(in, op.ints({2, 1, 1, 1})).shape(), ElementsAre(2, b, 3, 4));
  EXPECT_THAT(op.Tile(in, op.ints({2, 1, 3})).shape(), ElementsAre(2 * b, 3, 12));
  EXPECT_THAT(op.Concat(in, in, onnx::Args{{"axis", 0}}).shape(), ElementsAre(2 * b, 3, 4));
  EXPECT_THAT(op.Pad(in, op.ints({0, 1, 0, 0, 2, 0})).shape(), ElementsAre(b, 6, 4));
}

TEST_F(OnnxTest, split_gives_each_part_its_size) {
  const Values stated = op.call_n("Split", {x({6, 2}), op.ints({1, 5})}, 2);
  EXPECT_THAT(stated[1].shape(), ElementsAre(5, 2));
  const Values even = op.call_n("Split", {x({7})}, 3, {{"num_outputs", 3}});
  EXPECT_THAT(even[0].shape(), ElementsAre(3));
  EXPECT_THAT(even[2].shape(), ElementsAre(1));
}

TEST_F(OnnxTest, slices_clamp_their_bounds) {
  const auto sliced = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return op.Slice(x({10}), op.ints({start}), op.ints({end}), op.ints({0}), op.ints({step}))
        .shape()[0];
  };
  EXPECT_EQ(sliced(2, 5, 1), Dim(3));
  EXPECT_EQ(sliced(-3, std::numeric_limits<std::int64_t>::max(), 1), Dim(3));
  EXPECT_EQ(sliced(1, 100, 4), Dim(3));
  EXPECT_EQ(sliced(-1, std::numeric_limits<std::int64_t>::min(), -1), Dim(10));
  EXPECT_EQ(sliced(8, 2, -3), Dim(2));
  EXPECT_EQ(sliced(5, 2, 1), Dim());
}

TEST_F(OnnxTest, a_slice_to_the_end_of_a_symbolic_axis_keeps_it) {
  const Dim t = symbol("T");
  const std::int64_t end = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(op.Slice(x({t}), op.ints({0}), op.ints({end})).shape()[0], t);
  EXPECT_EQ(op.Slice(x({t + 3}), op.ints({2}), op.ints({end})).shape()[0], t + 1);
}

TEST_F(OnnxTest, reductions_drop_or_keep_their_axes) {
  const Dim b = symbol("B");
  const Value in = x({b, 3, 4});
  EXPECT_THAT(op.ReduceSum(in, op.ints({1})).shape(), ElementsAre(b, 1, 4));
  EXPECT_THAT(op.ReduceSum(in, op.ints({-1}), onnx::Args{{"keepdims", 0}}).shape(),
              ElementsAre(b, 3));
  EXPECT_THAT(op.ReduceMax(in, onnx::Args{{"keepdims", 0}}).shape(), ElementsAre());
  EXPECT_THAT(op.ArgMax(in, onnx::Args{{"axis", -1}, {"keepdims", 0}}).shape(), ElementsAre(b, 3));
  const Values top = op.call_n("TopK", {in, op.ints({2})}, 2);
  EXPECT_THAT(top[1].shape(), ElementsAre(b, 3, 2));
  EXPECT_EQ(top[1].dtype(), DType::kI64);
}

TEST_F(OnnxTest, reductions_take_axes_as_an_attribute_at_opset_17) {
  Model old;
  Builder builder(old, 17);
  const Value in = builder.input("x", f32({2, 3}));
  EXPECT_THAT(builder.ReduceMax(in, onnx::Args{{"axes", {1}}, {"keepdims", 0}}).shape(),
              ElementsAre(2));
  EXPECT_THAT(builder.ReduceSum(in, builder.ints({0})).shape(), ElementsAre(1, 3));
}

TEST_F(OnnxTest, products_contract_and_broadcast) {
  const Dim b = symbol("B"), t = symbol("T");
  EXPECT_THAT(op.MatMul(x({b, 1, t, 8}), x({5, 8, 3})).shape(), ElementsAre(b, 5, t, 3));
  EXPECT_THAT(op.MatMul(x({8}), x({b, 8, 3})).shape(), ElementsAre(b, 3));
  EXPECT_THAT(op.MatMul(x({8}), x({8})).shape(), ElementsAre());
  EXPECT_THAT(op.Gemm(x({8, b}), x({3, 8}), onnx::Args{{"transA", 1}, {"transB", 1}}).shape(),
              ElementsAre(b, 3));
  EXPECT_THAT(op.Einsum(x({b, t, 8}), x({4, 8}), onnx::Args{{"equation", "bti,hi->bht"}}).shape(),
              ElementsAre(b, 4, t));
  EXPECT_THAT(op.Einsum(x({2, 3}), x({3, 4}), onnx::Args{{"equation", "ij,jk"}}).shape(),
              ElementsAre(2, 4));
}

TEST_F(OnnxTest, indexing_follows_the_indices) {
  const Value data = x({5, 6, 7}), at = indices({2, 3});
  EXPECT_THAT(op.Gather(data, at, onnx::Args{{"axis", 1}}).shape(), ElementsAre(5, 2, 3, 7));
  EXPECT_THAT(op.GatherND(data, indices({4, 2})).shape(), ElementsAre(4, 7));
  EXPECT_THAT(op.GatherElements(x({9, 9}), at).shape(), ElementsAre(2, 3));
  EXPECT_THAT(op.ScatterND(data, indices({4, 1}), x({4, 6, 7})).shape(), ElementsAre(5, 6, 7));
  EXPECT_THAT(op.OneHot(at, op.scalar(9, DType::kI64), x({2})).shape(), ElementsAre(2, 3, 9));
}

TEST_F(OnnxTest, windows_give_sizes_of_convolutions_and_pools) {
  const Dim b = symbol("B");
  const Value image = x({b, 3, 15, 16}), kernel = x({8, 3, 3, 3});
  EXPECT_THAT(op.Conv(image, kernel).shape(), ElementsAre(b, 8, 13, 14));
  EXPECT_THAT(
      op.Conv(image, kernel, onnx::Args{{"strides", {2, 2}}, {"pads", {1, 1, 1, 1}}}).shape(),
      ElementsAre(b, 8, 8, 8));
  EXPECT_THAT(
      op.Conv(image, kernel, onnx::Args{{"auto_pad", "SAME_UPPER"}, {"strides", {2, 2}}}).shape(),
      ElementsAre(b, 8, 8, 8));
  EXPECT_THAT(op.ConvTranspose(image, x({3, 4, 2, 2}), onnx::Args{{"strides", {2, 2}}}).shape(),
              ElementsAre(b, 4, 30, 32));
  EXPECT_THAT(op.MaxPool(image, onnx::Args{{"kernel_shape", {2, 2}}, {"strides", {2, 2}}}).shape(),
              ElementsAre(b, 3, 7, 8));
  EXPECT_THAT(op.GlobalAveragePool(image).shape(), ElementsAre(b, 3, 1, 1));
}

TEST_F(OnnxTest, attention_keeps_query_length_and_value_size) {
  const Dim b = symbol("B"), t = symbol("T");
  const Value q = x({b, 8, t, 64}), k = x({b, 2, 10, 64}), v = x({b, 2, 10, 32});
  EXPECT_THAT(op.Attention(q, k, v).shape(), ElementsAre(b, 8, t, 32));
  EXPECT_THAT(op.Attention(x({b, t, 64}), x({b, t, 64}), x({b, t, 64}),
                           onnx::Args{{"q_num_heads", 4}, {"kv_num_heads", 4}})
                  .shape(),
              ElementsAre(b, t, 64));
}

TEST_F(OnnxTest, sizes_that_depend_on_data_stay_unknown) {
  EXPECT_EQ(op.NonZero(x({3, 4})).dtype(), DType::kI64);
  EXPECT_THROW(op.NonZero(x({3, 4})).shape(), Error);
}

TEST_F(OnnxTest, control_flow_has_the_types_of_its_subgraphs) {
  const Dim b = symbol("B");
  const Value in = x({b, 3});
  auto body = std::make_shared<Graph>();
  Builder inner(op, *body);
  const Value state = inner.input("", f32({3})), slice = inner.input("", f32({3}));
  const Value next = inner.Add(state, slice);
  inner.output(next, "");
  inner.output(inner.Cast(next, onnx::Args{{"to", DType::kF16}}), "");
  const Values results =
      op.call_n("Scan", {x({3}), in}, 2, {{"body", body}, {"num_scan_inputs", 1}});
  EXPECT_THAT(results[0].shape(), ElementsAre(3));
  EXPECT_THAT(results[1].shape(), ElementsAre(b, 3));
  EXPECT_EQ(results[1].dtype(), DType::kF16);
}

// --- arithmetic

TEST_F(OnnxTest, arithmetic_is_the_same_as_calls) {
  const Value a = x({2, 3}), b = x({3});
  EXPECT_EQ(a * 0.5 + b, op.Add(op.Mul(a, op.scalar(0.5, DType::kF32)), b));
  EXPECT_EQ(where(a < b, -a, 1 / b),
            op.Where(op.Less(a, b), op.Neg(a), op.Div(op.scalar(1, DType::kF32), b)));
  const double coefficients[] = {3, 2, 1};
  EXPECT_EQ(polynomial(coefficients, b), (3 * b + 2) * b + 1);
  EXPECT_EQ(cast(a, DType::kF32), a);
}

TEST_F(OnnxTest, whole_numbers_in_arithmetic_are_exact) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  const Value i = indices({3});
  EXPECT_EQ(i + large, op.Add(i, op.constant(int_scalar(DType::kI64, large))));
}

TEST_F(OnnxTest, arithmetic_with_a_value_of_a_subgraph_belongs_to_the_subgraph) {
  const Value outside = x({3});
  Graph body;
  Builder inner(op, body);
  const Value inside = inner.input("", f32({3}));
  const Value sum = outside + inside;
  EXPECT_EQ(&sum.builder(), &inner);
  EXPECT_EQ(body.nodes.size(), 1u);
  EXPECT_EQ(&where(outside > 0, inside, outside).builder(), &inner);
  EXPECT_EQ(&clip(outside, inner.input("", f32({})), 1).builder(), &inner);
}

// --- sharing

TEST_F(OnnxTest, equal_calls_are_one_node) {
  const Value in = x({2, 3});
  EXPECT_EQ(op.Softmax(in, onnx::Args{{"axis", 1}}), op.Softmax(in, onnx::Args{{"axis", 1}}));
  EXPECT_NE(op.Softmax(in, onnx::Args{{"axis", 1}}).id(),
            op.Softmax(in, onnx::Args{{"axis", 0}}).id());
  EXPECT_EQ(model.graph.nodes.size(), 2u);
}

TEST_F(OnnxTest, random_calls_are_not_shared) {
  const Args args{{"shape", {2, 3}}};
  EXPECT_NE(op.RandomNormal(args).id(), op.RandomNormal(args).id());
}

TEST_F(OnnxTest, small_constants_are_shared_by_content) {
  EXPECT_EQ(op.ints({1, 2}), op.ints({1, 2}));
  EXPECT_NE(op.ints({1, 2}).id(), op.ints({2, 1}).id());
  EXPECT_NE(op.scalar(1, DType::kF32).id(), op.scalar(1, DType::kF16).id());
  const Tensor large = allocate(DType::kF32, {300}).tensor;
  const Tensor also_large = allocate(DType::kF32, {300}).tensor;
  EXPECT_NE(op.constant(large).id(), op.constant(also_large).id());
}

TEST_F(OnnxTest, a_subgraph_captures_the_weight_of_the_main_graph) {
  const StridedView weight{materialise({scalar(DType::kF32, 2), 0, {500}, {0}}), 0, {500}, {1}};
  Graph body;
  Builder inner(op, body);
  const Value outer = op.weight(weight, {500}, "w");
  EXPECT_EQ(inner.weight(weight, {500}, "w"), outer);
  EXPECT_NE(inner.weight(weight, {10, 50}, "w"), outer);
  EXPECT_EQ(model.graph.initializers.size(), 2u);
  EXPECT_TRUE(body.initializers.empty());
}

TEST_F(OnnxTest, constants_of_different_names_stay_apart) {
  const Tensor zero = scalar(DType::kF32, 0);
  const Value first = op.constant(zero, "a.bias");
  EXPECT_NE(first.id(), op.constant(zero, "b.bias").id());
  EXPECT_EQ(first, op.constant(zero));
}

TEST_F(OnnxTest, the_content_of_small_constants_is_known) {
  EXPECT_EQ(op.known(op.ints({4, 5}))->int_at(1), 5);
  EXPECT_EQ(op.known(x({2})), nullptr);
}

// --- outputs and names

TEST_F(OnnxTest, an_output_that_has_no_node_of_its_own_gets_an_identity) {
  const Value in = x({2}), sum = op.Add(in, in);
  op.output(sum, "first");
  op.output(sum, "second");
  op.output(in, "third");
  const std::string text = finished_text();
  EXPECT_THAT(text, HasSubstr("first = Add (x0, x0)"));
  EXPECT_THAT(text, HasSubstr("second = Identity (first)"));
  EXPECT_THAT(text, HasSubstr("third = Identity (x0)"));
}

TEST_F(OnnxTest, names_follow_scope_and_op) {
  op.set_origin({"model.py:1 in f", "blocks.3.attn"});
  const Value sum = op.Add(x({2}), x({2}));
  op.output(op.Add(op.Add(sum, sum), op.scalar(0.5, DType::kF32)), "y");
  name_values(model);
  EXPECT_EQ(model.graph.nodes[0].name, "blocks.3.attn/Add");
  EXPECT_EQ(model.values[sum.id()].name, "blocks.3.attn/Add");
  EXPECT_EQ(model.graph.nodes[2].name, "blocks.3.attn/Add_2");
  EXPECT_EQ(model.values[model.graph.nodes[2].out[0]].name, "y");
  EXPECT_EQ(model.values[model.graph.initializers[0].value].name, "f32_0.5");
}

TEST_F(OnnxTest, generated_names_give_way_to_chosen_ones) {
  const Value in = op.input("Relu", f32({2}));
  const Value weight = op.constant(scalar(DType::kF32, 2), "Relu");
  op.output(op.Mul(op.Relu(in), weight), "Relu_1");
  finished_text();
  EXPECT_EQ(model.values[in.id()].name, "Relu");
  EXPECT_EQ(model.graph.nodes[0].name, "Relu_3");
  EXPECT_EQ(model.values[weight.id()].name, "Relu_2");
}

TEST_F(OnnxTest, scopes_lose_characters_that_runtimes_refuse) {
  op.set_origin({"", "vmap(f) [x]"});
  op.Relu(x({2}));
  name_values(model);
  EXPECT_EQ(model.graph.nodes[0].name, "vmap_f___x_/Relu");
}

TEST_F(OnnxTest, further_results_are_numbered) {
  const Values parts = op.call_n("Split", {x({6}), op.ints({1, 5})}, 2);
  name_values(model);
  EXPECT_EQ(model.values[parts[1].id()].name, "Split:1");
}

// --- text and numbers

TEST_F(OnnxTest, text_quotes_names_that_are_no_identifiers) {
  const Value in = op.input("in put", f32({symbol("B") * 2 + 1, 3}));
  op.output(op.Clip(in, Value(), op.scalar(6, DType::kF32)), "y");
  const std::string text = finished_text();
  EXPECT_THAT(text, HasSubstr(R"((float["2*B + 1",3] "in put") => (float["2*B + 1",3] y))"));
  EXPECT_THAT(text, HasSubstr(R"(y = Clip ("in put", "", f32_6))"));
  EXPECT_THAT(text, HasSubstr("float f32_6 = {6}"));
}

TEST_F(OnnxTest, text_leaves_large_initializers_out) {
  op.output(op.Add(x({100}), op.constant(allocate(DType::kF32, {100}).tensor, "w")), "y");
  EXPECT_THAT(finished_text(), HasSubstr("float[100] w  # left out: 400 bytes"));
}

TEST_F(OnnxTest, stats_count_ops_and_bytes) {
  const Value in = x({3});
  op.output(
      op.Add(op.Relu(in), op.Mul(op.Relu(in), op.constant(allocate(DType::kF32, {3}).tensor))),
      "y");
  const Stats counted = stats(model);
  EXPECT_EQ(counted.nodes, 3u);
  EXPECT_EQ(counted.ops[0].first, "Add");
  EXPECT_EQ(counted.parameters, 3u);
  EXPECT_EQ(counted.initializer_bytes, 12u);
}

// --- verify

class VerifyTest : public OnnxTest {
 protected:
  void SetUp() override {
    const Value in = x({2, 3});
    op.output(op.Exp(op.Relu(in)), "y");
    name_values(model);
    ASSERT_NO_THROW(verify(model, "setup"));
  }
  std::string complaint() {
    return message_of([this] { verify(model, "after a pass"); });
  }
};

TEST_F(VerifyTest, wrong_order_is_found) {
  std::swap(model.graph.nodes[0], model.graph.nodes[1]);
  EXPECT_THAT(complaint(), HasSubstr("not defined before"));
}

TEST_F(VerifyTest, a_name_taken_twice_is_found) {
  model.values[model.graph.nodes[0].out[0]].name = "y";
  EXPECT_THAT(complaint(), HasSubstr("two values are called 'y'"));
}

TEST_F(VerifyTest, a_missing_name_is_found) {
  model.values[model.graph.nodes[0].out[0]].name = "";
  EXPECT_THAT(complaint(), HasSubstr("no name"));
}

TEST_F(VerifyTest, an_op_newer_than_the_declared_opset_is_found) {
  model.graph.nodes[0].op = "Swish";
  EXPECT_THAT(complaint(), HasSubstr("needs opset 24"));
}

TEST_F(VerifyTest, a_declared_type_that_contradicts_is_found) {
  model.values[model.graph.nodes[0].out[0]].type = f32({2, 4});
  EXPECT_THAT(complaint(), HasSubstr("declared as f32[2,4], but is f32[2,3]"));
}

TEST_F(VerifyTest, an_output_nobody_computes_is_found) {
  model.graph.nodes.pop_back();
  EXPECT_THAT(complaint(), HasSubstr("output is not defined"));
}

TEST_F(VerifyTest, a_domain_that_is_not_imported_is_found) {
  model.graph.nodes[0].domain = "com.example";
  EXPECT_THAT(complaint(), HasSubstr("'com.example' is not imported"));
}

TEST_F(VerifyTest, the_stage_is_named) {
  model.graph.nodes.pop_back();
  EXPECT_THAT(complaint(), HasSubstr("after a pass"));
}

}  // namespace
}  // namespace jaxport::onnx
