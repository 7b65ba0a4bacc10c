// SPDX-License-Identifier: Apache-2.0
#include "pass/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/builder.h"

namespace jaxport::pass {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::TensorType;
using onnx::Value;
using ::testing::ElementsAre;

class PassTest : public ::testing::Test {
 protected:
  Value x(Dims shape, DType dtype = DType::kF32) {
    return op.input("x" + std::to_string(inputs++), TensorType{dtype, std::move(shape)});
  }
  // A node without the sharing that Builder::call does.
  Value fresh(std::string_view name, Value in) {
    Node node;
    node.op = name;
    node.in = {in.id()};
    model.values.push_back(model.values[in.id()]);
    model.values.back().name.clear();
    node.out = {static_cast<onnx::ValueId>(model.values.size() - 1)};
    model.graph.nodes.push_back(node);
    return {&op, node.out[0]};
  }
  void make_output(Value value, std::string name) {
    model.values[value.id()].name = std::move(name);
    model.graph.outputs.push_back(value.id());
  }
  // An If whose branches compute what `branch` builds.
  template <class Build>
  Value conditional(Build branch) {
    auto taken = std::make_shared<Graph>(), other = std::make_shared<Graph>();
    for (const auto& graph : {taken, other}) {
      Builder inner(op, *graph);
      inner.output(branch(inner), "");
    }
    return op.If(x({}, DType::kBool), onnx::Args{{"then_branch", taken}, {"else_branch", other}});
  }
  // A Scan over `xs`; `step` gets the states and then the slices and returns new states and slices.
  template <class Step>
  onnx::Values scan(const onnx::Values& states, const onnx::Values& xs, Step step) {
    auto body = std::make_shared<Graph>();
    Builder inner(op, *body);
    onnx::Values arguments, in = states;
    for (const Value& state : states) {
      arguments.push_back(inner.input("", {state.dtype(), state.shape()}));
    }
    for (const Value& each : xs) {
      arguments.push_back(
          inner.input("", {each.dtype(), Dims(each.shape().begin() + 1, each.shape().end())}));
    }
    const onnx::Values results = step(inner, arguments);
    for (const Value& result : results) inner.output(result, "");
    in.insert(in.end(), xs.begin(), xs.end());
    const Ints backwards(results.size() - states.size(), 1);
    return op.call_n("Scan", in, results.size(),
                     {{"body", body},
                      {"num_scan_inputs", std::ssize(xs)},
                      {"scan_output_directions", backwards}});
  }
  const Graph& body_of(const Node& node) const {
    return *std::get<std::shared_ptr<Graph>>(node.attr("body")->value);
  }
  // The ops that are left, after the model was found to be valid.
  std::vector<std::string> ops() {
    Model copy = model;
    onnx::name_values(copy);
    onnx::verify(copy, "after the pass");
    return ops_of(model.graph);
  }
  static std::vector<std::string> ops_of(const Graph& graph) {
    std::vector<std::string> names;
    for (const Node& node : graph.nodes) names.push_back(node.op);
    return names;
  }
  const Graph& branch(const Node& node) {
    return *std::get<std::shared_ptr<Graph>>(node.attr("then_branch")->value);
  }
  const std::string& output_name(std::size_t i) {
    return model.values[model.graph.outputs[i]].name;
  }

  Model model;
  Builder op{model, 23};
  int inputs = 0;
};

// --- remove_dead_code

TEST_F(PassTest, nodes_and_initializers_nobody_needs_go) {
  const Value in = x({2});
  op.Add(op.Exp(in), op.scalar(1, DType::kF32));
  op.output(op.Relu(in), "y");
  EXPECT_EQ(remove_dead_code(model), 3u);
  EXPECT_THAT(ops(), ElementsAre("Relu"));
  EXPECT_TRUE(model.graph.initializers.empty());
}

TEST_F(PassTest, what_only_a_subgraph_uses_stays) {
  const Value outer = op.Exp(x({2})), scale = op.scalar(3, DType::kF32);
  op.output(conditional([&](Builder& b) { return b.Mul(outer, scale); }), "y");
  EXPECT_EQ(remove_dead_code(model), 0u);
  EXPECT_THAT(ops(), ElementsAre("Exp", "If"));
}

TEST_F(PassTest, dead_nodes_inside_a_subgraph_go) {
  const Value outer = x({2}), unused = op.Exp(outer);
  op.output(conditional([&](Builder& b) {
              b.Neg(unused);
              return b.Relu(outer);
            }),
            "y");
  EXPECT_EQ(remove_dead_code(model), 3u);
  EXPECT_THAT(ops(), ElementsAre("If"));
  EXPECT_THAT(ops_of(branch(model.graph.nodes[0])), ElementsAre("Relu"));
}

// --- merge_equal_nodes

TEST_F(PassTest, equal_nodes_become_one) {
  const Value in = x({2});
  op.output(op.Add(fresh("Relu", in), fresh("Relu", in)), "y");
  EXPECT_EQ(merge_equal_nodes(model), 1u);
  EXPECT_THAT(ops(), ElementsAre("Relu", "Add"));
  EXPECT_EQ(model.graph.nodes[1].in[0], model.graph.nodes[1].in[1]);
}

TEST_F(PassTest, nodes_that_differ_stay) {
  const Value a = x({2}), b = x({2});
  op.output(op.Add(fresh("Relu", a), fresh("Relu", b)), "y");
  op.output(op.Add(op.RandomNormalLike(a), op.RandomNormalLike(a)), "z");
  EXPECT_EQ(merge_equal_nodes(model), 0u);
}

TEST_F(PassTest, merging_keeps_the_names_of_outputs) {
  const Value in = x({2}), first = fresh("Relu", in), second = fresh("Relu", in);
  op.output(op.Exp(first), "y");
  make_output(second, "z");
  EXPECT_EQ(merge_equal_nodes(model), 1u);
  EXPECT_THAT(ops(), ElementsAre("Relu", "Exp"));
  EXPECT_EQ(output_name(1), "z");
}

TEST_F(PassTest, two_equal_outputs_stay_two) {
  const Value in = x({2});
  make_output(fresh("Relu", in), "y");
  make_output(fresh("Relu", in), "z");
  EXPECT_EQ(merge_equal_nodes(model), 0u);
  EXPECT_THAT(ops(), ElementsAre("Relu", "Relu"));
}

TEST_F(PassTest, a_subgraph_uses_the_equal_node_of_the_outer_graph) {
  const Value in = x({2}), outer = op.Exp(in);
  const Value chosen = conditional([&](Builder& b) { return b.Neg(b.Exp(in)); });
  op.output(op.Add(outer, chosen), "y");
  EXPECT_EQ(merge_equal_nodes(model), 2u);
  EXPECT_THAT(ops_of(branch(model.graph.nodes[1])), ElementsAre("Neg"));
  ops();
}

TEST_F(PassTest, branches_do_not_use_each_others_nodes) {
  const Value in = x({2});
  op.output(conditional([&](Builder& b) { return b.Neg(b.Exp(in)); }), "y");
  EXPECT_EQ(merge_equal_nodes(model), 0u);
}

// --- remove_noops

TEST_F(PassTest, ops_that_change_nothing_go) {
  const Dim b = model.dims->symbol("B");
  Value value = op.Identity(x({b, 3}));
  value = op.Cast(value, onnx::Args{{"to", DType::kF32}});
  value = op.Reshape(value, op.ints({-1, 3}));
  value = op.Transpose(value, onnx::Args{{"perm", {0, 1}}});
  value = op.Expand(value, op.ints({1, 3}));
  op.output(op.Relu(value), "y");
  EXPECT_EQ(remove_noops(model), 5u);
  EXPECT_THAT(ops(), ElementsAre("Relu"));
}

TEST_F(PassTest, ops_that_change_something_stay) {
  const Value in = x({2, 2});
  op.output(op.Cast(in, onnx::Args{{"to", DType::kF16}}), "a");
  op.output(op.Transpose(in, onnx::Args{{"perm", {1, 0}}}), "b");
  op.output(op.Reshape(in, op.ints({4})), "c");
  op.output(op.Slice(in, op.ints({-1}), op.ints({-5}), op.ints({0}), op.ints({-1})), "d");
  EXPECT_EQ(remove_noops(model), 0u);
  EXPECT_THAT(ops(), ElementsAre("Cast", "Transpose", "Reshape", "Slice"));
}

TEST_F(PassTest, the_producer_takes_the_name_of_an_output) {
  op.output(op.Reshape(op.Relu(x({2})), op.ints({2})), "y");
  EXPECT_EQ(remove_noops(model), 1u);
  EXPECT_THAT(ops(), ElementsAre("Relu"));
  EXPECT_EQ(output_name(0), "y");
}

TEST_F(PassTest, an_output_that_cannot_be_renamed_stays_as_identity) {
  const Value in = x({2}), both = op.Relu(in);
  op.output(op.Reshape(in, op.ints({2})), "copy");
  op.output(both, "a");
  op.output(both, "b");
  EXPECT_EQ(remove_noops(model), 0u);
  EXPECT_THAT(ops(), ElementsAre("Relu", "Identity", "Identity"));
  EXPECT_EQ(output_name(0), "copy");
}

TEST_F(PassTest, a_branch_that_hands_out_an_outer_value_keeps_its_identity) {
  const Value outer = op.Relu(x({2}));
  op.output(conditional([&](Builder&) { return outer; }), "y");
  EXPECT_EQ(remove_noops(model), 0u);
  EXPECT_THAT(ops_of(branch(model.graph.nodes[1])), ElementsAre("Identity"));
  ops();
}

// --- merge_slices

TEST_F(PassTest, slices_along_different_axes_are_one) {
  const Value rows = op.Slice(x({6, 8, 4}), op.ints({1}), op.ints({5}), op.ints({0}));
  const Value both = op.Slice(rows, op.ints({7}), op.ints({0}), op.ints({-2}), op.ints({-2}));
  op.output(op.Slice(both, op.ints({0}), op.ints({2}), op.ints({2})), "y");
  EXPECT_EQ(merge_slices(model), 2u);
  remove_dead_code(model);
  EXPECT_THAT(ops(), ElementsAre("Slice"));
}

TEST_F(PassTest, slices_along_the_same_axis_stay) {
  const Value rows = op.Slice(x({6, 8}), op.ints({1}), op.ints({5}), op.ints({0}));
  op.output(op.Slice(rows, op.ints({1}), op.ints({3}), op.ints({-2})), "y");
  EXPECT_EQ(merge_slices(model), 0u);
  ops();
}

// --- merge_views

TEST_F(PassTest, transposes_compose) {
  const Value inner = op.Transpose(x({2, 3, 4}), onnx::Args{{"perm", {1, 2, 0}}});
  op.output(op.Transpose(inner, onnx::Args{{"perm", {0, 2, 1}}}), "y");
  EXPECT_EQ(merge_views(model), 1u);
  remove_dead_code(model);
  EXPECT_THAT(ops(), ElementsAre("Transpose"));
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(model.graph.nodes[0].attr("perm")->value),
            (std::vector<std::int64_t>{1, 0, 2}));
}

TEST_F(PassTest, transposes_that_cancel_vanish) {
  const Value inner = op.Transpose(x({2, 3, 4}), onnx::Args{{"perm", {1, 2, 0}}});
  op.output(op.Relu(op.Transpose(inner, onnx::Args{{"perm", {2, 0, 1}}})), "y");
  run_all(model);
  EXPECT_THAT(ops(), ElementsAre("Relu"));
}

TEST_F(PassTest, reshapes_compose) {
  const Value inner = op.Unsqueeze(op.Reshape(x({2, 6}), op.ints({3, 4})), op.ints({0}));
  op.output(op.Reshape(inner, op.ints({4, -1})), "y");
  run_all(model);
  EXPECT_THAT(ops(), ElementsAre("Reshape"));
}

TEST_F(PassTest, a_reshape_that_copies_another_size_stays) {
  op.output(op.Reshape(op.Reshape(x({2, 6}), op.ints({3, 4})), op.ints({0, 2, 2})), "y");
  EXPECT_EQ(merge_views(model), 0u);
  const Value same = op.Reshape(x({2, 6}), op.ints({2, 3, 2}));
  op.output(op.Reshape(same, op.ints({0, 2, 3})), "z");
  EXPECT_EQ(merge_views(model), 1u);
  ops();
}

TEST_F(PassTest, views_that_restore_the_shape_vanish) {
  const Dim b = model.dims->symbol("B");
  const Value inner = op.Unsqueeze(x({b, 3}), op.ints({1}));
  op.output(op.Relu(op.Squeeze(inner, op.ints({1}))), "y");
  run_all(model);
  EXPECT_THAT(ops(), ElementsAre("Relu"));
}

TEST_F(PassTest, casts_through_a_wider_type_are_direct) {
  const Value wide = op.Cast(x({2}, DType::kF16), onnx::Args{{"to", DType::kF64}});
  op.output(op.Cast(wide, onnx::Args{{"to", DType::kF32}}), "y");
  const Value number = op.Cast(x({2}, DType::kBool), onnx::Args{{"to", DType::kF32}});
  op.output(op.Cast(number, onnx::Args{{"to", DType::kI32}}), "z");
  EXPECT_EQ(merge_views(model), 2u);
  remove_dead_code(model);
  EXPECT_THAT(ops(), ElementsAre("Cast", "Cast"));
}

TEST_F(PassTest, casts_that_lose_something_stay) {
  const Value narrow = op.Cast(x({2}), onnx::Args{{"to", DType::kF16}});
  op.output(op.Cast(narrow, onnx::Args{{"to", DType::kF32}}), "a");
  const Value whole = op.Cast(x({2}), onnx::Args{{"to", DType::kI32}});
  op.output(op.Cast(whole, onnx::Args{{"to", DType::kF32}}), "b");
  const Value rounded = op.Cast(x({2}, DType::kI32), onnx::Args{{"to", DType::kF32}});
  op.output(op.Cast(rounded, onnx::Args{{"to", DType::kF64}}), "c");
  const Value saturated = op.Cast(x({2}, DType::kI32), onnx::Args{{"to", DType::kF64}});
  op.output(op.Cast(saturated, onnx::Args{{"to", DType::kI8}}), "d");
  EXPECT_EQ(merge_views(model), 0u);
}

// --- make_gemms

TEST_F(PassTest, a_product_of_matrices_and_a_vector_are_one_gemm) {
  const Value product = op.MatMul(x({4, 2}), x({2, 3}));
  op.output(op.Add(x({3}), product), "y");
  EXPECT_EQ(make_gemms(model), 1u);
  EXPECT_THAT(ops(), ElementsAre("Gemm"));
}

TEST_F(PassTest, other_products_are_no_gemm) {
  op.output(op.Add(op.MatMul(x({5, 4, 2}), x({2, 3})), x({3})), "batched");
  op.output(op.Add(op.MatMul(x({4, 2}), x({2, 3})), x({4, 3})), "a matrix");
  const Value twice = op.MatMul(x({4, 2}), x({2, 3}));
  op.output(op.Mul(op.Add(twice, x({3})), twice), "used twice");
  const Value outer = op.MatMul(x({4, 2}), x({2, 3})), bias = x({3});
  op.output(conditional([&](Builder& b) { return b.Add(outer, bias); }), "of an outer graph");
  EXPECT_EQ(make_gemms(model), 0u);
  ops();
}

// --- fold_constants

TEST_F(PassTest, movements_and_arithmetic_of_indices_are_folded) {
  const Value rows = op.Expand(op.Reshape(op.ints({3, 5}), op.ints({2, 1})), op.ints({2, 2}));
  const Value columns =
      op.Cast(op.constant(int_scalar(DType::kI32, 1)), onnx::Args{{"to", DType::kI64}});
  const Value both =
      op.Concat(op.Mul(rows, columns), op.Sub(rows, columns), onnx::Args{{"axis", -1}});
  op.output(op.Add(op.Transpose(both, onnx::Args{{"perm", {1, 0}}}), x({4, 2}, DType::kI64)), "y");
  EXPECT_EQ(fold_constants(model), 7u);
  EXPECT_THAT(ops(), ElementsAre("Add"));
  const Tensor folded = materialise(model.graph.initializers.back().view);
  EXPECT_THAT(folded.as<std::int64_t>(), ElementsAre(3, 5, 3, 5, 2, 4, 2, 4));
}

TEST_F(PassTest, what_is_large_or_rounds_or_wraps_is_not_folded) {
  op.output(op.Neg(op.Expand(op.ints({1}), op.ints({2000}))), "large");
  const Value half = op.scalar(0.5, DType::kF32);
  op.output(op.Neg(op.Cast(half, onnx::Args{{"to", DType::kI32}})), "rounded");
  const Value most = op.constant(int_scalar(DType::kI32, 0x7fffffff));
  op.output(op.Neg(op.Add(most, most)), "wrapped");
  op.output(op.Reshape(op.ints({1, 2}), op.ints({2, 1})), "an output");
  EXPECT_EQ(fold_constants(model), 0u);
}

TEST_F(PassTest, a_constant_of_the_outer_graph_is_folded_inside) {
  const Value outer = op.ints({1, 2});
  const Value in = x({2}, DType::kI64);
  op.output(conditional([&](Builder& b) { return b.Add(in, b.Add(outer, outer)); }), "y");
  EXPECT_EQ(fold_constants(model), 2u);
  ops();
}

// --- remove_dead_code in subgraphs, hoist_invariants, share_constants

TEST_F(PassTest, a_carry_that_leads_nowhere_goes_with_its_result) {
  const Value xs = x({5, 2});
  // The counter counts itself; the second result collects it.
  const onnx::Values results =
      scan({op.constant(scalar(DType::kI32, 0)), x({2})}, {xs}, [](Builder& b, const auto& in) {
        return onnx::Values{b.Add(in[0], b.scalar(1, DType::kI32)), b.Add(in[1], in[2]), in[0],
                            b.Neg(in[2])};
      });
  make_output(results[1], "sum");
  make_output(results[3], "negative");
  EXPECT_EQ(remove_dead_code(model), 6u);  // two results, two nodes, two constants
  EXPECT_THAT(ops(), ElementsAre("Scan"));
  const Node& node = model.graph.nodes[0];
  EXPECT_EQ(node.in.size(), 2u);
  EXPECT_EQ(node.out.size(), 2u);
  EXPECT_THAT(ops_of(body_of(node)), ElementsAre("Add", "Neg"));
  EXPECT_EQ(std::get<Ints>(node.attr("scan_output_directions")->value), Ints({1}));
}

TEST_F(PassTest, a_carry_that_a_needed_one_reads_stays) {
  const onnx::Values results = scan({x({2}), x({2})}, {x({5, 2})}, [](Builder& b, const auto& in) {
    return onnx::Values{b.Add(in[0], in[2]), b.Add(in[1], in[0])};
  });
  make_output(results[1], "sum");
  EXPECT_EQ(remove_dead_code(model), 0u);
  EXPECT_THAT(ops(), ElementsAre("Scan"));
}

TEST_F(PassTest, a_result_of_if_that_nobody_needs_goes) {
  const Value in = x({2});
  auto taken = std::make_shared<Graph>(), other = std::make_shared<Graph>();
  for (const auto& graph : {taken, other}) {
    Builder inner(op, *graph);
    inner.output(inner.Neg(in), "");
    inner.output(inner.Exp(in), "");
  }
  const onnx::Values results =
      op.call_n("If", {x({}, DType::kBool)}, 2, {{"then_branch", taken}, {"else_branch", other}});
  make_output(results[1], "y");
  remove_dead_code(model);
  EXPECT_THAT(ops(), ElementsAre("If"));
  EXPECT_THAT(ops_of(*taken), ElementsAre("Exp"));
  EXPECT_THAT(ops_of(*other), ElementsAre("Exp"));
}

TEST_F(PassTest, what_every_step_computes_alike_leaves_the_loop) {
  const Value outer = x({2}), xs = x({5, 2});
  const onnx::Values results = scan({x({2})}, {xs}, [&](Builder& b, const auto& in) {
    const Value scaled = b.Mul(b.Exp(outer), b.scalar(2, DType::kF32));
    return onnx::Values{b.Add(in[0], scaled), b.Mul(in[1], scaled)};
  });
  op.output(results[0], "y");
  op.output(results[1], "ys");
  EXPECT_EQ(hoist_invariants(model), 2u);
  EXPECT_THAT(ops(), ElementsAre("Exp", "Mul", "Scan"));
  EXPECT_THAT(ops_of(body_of(model.graph.nodes[2])), ElementsAre("Add", "Mul"));
}

TEST_F(PassTest, outputs_of_a_body_and_branches_stay_where_they_are) {
  const Value outer = x({2});
  const onnx::Values results = scan({x({2})}, {x({5, 2})}, [&](Builder& b, const auto& in) {
    return onnx::Values{b.Add(in[0], in[1]), b.Exp(outer)};
  });
  op.output(results[0], "y");
  op.output(results[1], "ys");
  op.output(conditional([&](Builder& b) { return b.Neg(b.Sin(outer)); }), "z");
  EXPECT_EQ(hoist_invariants(model), 0u);
  EXPECT_THAT(ops(), ElementsAre("Scan", "If"));
}

TEST_F(PassTest, equal_small_constants_become_one) {
  const Tensor two = scalar(DType::kF32, 2), also_two = scalar(DType::kF32, 2);
  const Value a = op.weight(whole(two), {}, ""), b = op.weight(whole(also_two), {}, "w");
  op.output(op.Mul(op.Mul(x({2}), a), b), "y");
  EXPECT_EQ(share_constants(model), 1u);
  ops();
  EXPECT_EQ(model.graph.initializers.size(), 1u);
  EXPECT_EQ(model.values[model.graph.initializers[0].value].name, "w");
}

TEST_F(PassTest, large_or_differently_named_constants_stay) {
  const Tensor two = scalar(DType::kF32, 2);
  const Tensor large = materialise({two, 0, {500}, {0}});
  const Value a = op.weight(whole(two), {}, "a"), b = op.weight(whole(two), {}, "b");
  const Value c = op.weight(whole(large), {500}, ""), d = op.weight(whole(large), {500}, "");
  op.output(op.Add(op.Mul(a, b), op.Mul(c, d)), "y");
  EXPECT_EQ(share_constants(model), 0u);
}

TEST_F(PassTest, a_subgraph_uses_the_constant_of_the_outer_graph) {
  const Value in = x({2});
  const Value outer = op.Mul(in, op.scalar(2, DType::kF32));
  op.output(conditional([&](Builder& b) { return b.Add(outer, b.scalar(2, DType::kF32)); }), "y");
  EXPECT_EQ(share_constants(model), 2u);
  ops();
}

// --- pipeline

TEST_F(PassTest, the_pipeline_ends_when_nothing_changes) {
  const Value in = x({4, 2});
  const Value a =
      op.Transpose(op.Transpose(in, onnx::Args{{"perm", {1, 0}}}), onnx::Args{{"perm", {1, 0}}});
  const Value b = op.Reshape(op.Reshape(in, op.ints({8})), op.ints({4, 2}));
  op.output(op.Add(fresh("Relu", a), fresh("Relu", b)), "y");
  run_all(model);
  EXPECT_THAT(ops(), ElementsAre("Relu", "Add"));
  for (const Pass& pass : pipeline()) EXPECT_EQ(pass.run(model), 0u) << pass.name;
}

}  // namespace
}  // namespace jaxport::pass
