// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "axis/graph/graph.h"
#include "axis/graph/pattern.h"
#include "axis_tools.h"
#include "jaxport/error.h"

namespace jaxport::axis {
namespace {

// --- refine

struct Refine : testing::Test {
  Scratch scratch;
  Graph& graph = scratch.graph;

  Labels labels(const Dims& sizes) {
    Labels made;
    for (const Dim& size : sizes) made.push_back(graph.label(size));
    return made;
  }
  // The sizes that both factorisations are cut into; empty when they do not fit.
  Dims cut(const Dims& a, const Dims& b) {
    const auto refined = refine(graph, std::array{labels(a), labels(b)});
    Dims sizes;
    if (refined) {
      for (Label label : refined->labels) sizes.push_back(graph.size(label));
    }
    return sizes;
  }
};

TEST_F(Refine, cuts_at_leading_factors) {
  EXPECT_EQ(cut({6}, {2, 3}), (Dims{2, 3}));
  EXPECT_EQ(cut({2, 12}, {8, 3}), (Dims{2, 4, 3}));
}

TEST_F(Refine, takes_common_divisors_of_integers) {
  EXPECT_EQ(cut({4, 9}, {6, 6}), Dims{});  // 4 and 6 share 2, then 2 and 3 share nothing
  EXPECT_EQ(cut({8, 9}, {12, 6}), Dims{});
  EXPECT_EQ(cut({4, 15}, {4, 3, 5}), (Dims{4, 3, 5}));
}

TEST_F(Refine, gives_up_without_a_common_factor) { EXPECT_EQ(cut({2, 3}, {3, 2}), Dims{}); }

TEST_F(Refine, divides_symbolic_sizes_exactly) {
  const Dim b = scratch.dims->symbol("B"), t = scratch.dims->symbol("T");
  EXPECT_EQ(cut({b * t}, {b, t}), (Dims{b, t}));
  EXPECT_EQ(cut({b * t * 4}, {t, b * 2, 2}), (Dims{t, b * 2, 2}));
  EXPECT_EQ(cut({b}, {t}), Dims{});
}

TEST_F(Refine, keeps_sizes_of_zero) {
  EXPECT_EQ(cut({0, 3}, {0, 3}), (Dims{0, 3}));
  EXPECT_EQ(cut({0}, {0, 4}), Dims{});
}

// --- views make no nodes

TEST(View, moves_are_patterns_of_the_output) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[2,6]) {
    %a: f32[6,2] = transpose %x {permutation = (1, 0)}
    %b: f32[3,2,1,2] = reshape %a {dimensions = none, new_sizes = (3, 2, 1, 2)}
    %c: f32[5,3,2,1,2] = broadcast_in_dim %b {broadcast_dimensions = (1, 2, 3, 4), shape = (5, 3, 2, 1, 2)}
    %d: f32[5,3,2,2] = squeeze %c {dimensions = (3)}
    %e: f32[5,3,2,4] = tile %d {reps = (1, 1, 1, 2)}
    return %e
  })"),
            "out 0: f32[5,3,2,4] = %0[a (b c) -> d b c (e a)]\n");
}

TEST(View, a_reshape_that_cuts_across_factors_merges_only_its_own_dims) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[B,4,6,5]) {
    %a: f32[B,6,4,5] = reshape %x {dimensions = none, new_sizes = (B, 6, 4, 5)}
    return %a
  })"),
            "%1[(b c) a d] = relayout(%0[a b c d]) f32 a=B b=4 c=6 d=5\n"
            "out 0: f32[B,6,4,5] = %1[(a b) c d -> c a b d]\n");
}

TEST(View, a_reshape_back_finds_the_value_again) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[B,4,6]) {
    %a: f32[B,24] = reshape %x {dimensions = none, new_sizes = (B, 24)}
    %b: f32[4*B,6] = reshape %a {dimensions = none, new_sizes = (4*B, 6)}
    return %b
  })"),
            "out 0: f32[4*B,6] = %0[a b c -> (a b) c]\n");
}

TEST(View, a_reshape_across_factors_and_back_leaves_nothing) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[4,6]) {
    %a: f32[6,4] = reshape %x {dimensions = none, new_sizes = (6, 4)}
    %b: f32[4,6] = reshape %a {dimensions = none, new_sizes = (4, 6)}
    return %b
  })"),
            "out 0: f32[4,6] = %0[a b -> a b]\n");
}

TEST(View, reshape_of_empty_values) {
  expect_same_values(R"(func @f(%x: f32[0,4]) {
    %a: f32[3,0] = reshape %x {dimensions = none, new_sizes = (3, 0)}
    %b: f32[3] = reduce_max %a {axes = (1)}
    return %a %b
  })",
                     {counting({0, 4})});
}

TEST(View, equal_parts_are_picks) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[B,6]) {
    %a: f32[B,3] = slice %x {limit_indices = (B, 6), start_indices = (0, 3), strides = none}
    return %a
  })"),
            "%1[a c] = pick[k=1](%0[a (b c)]) f32 a=B b=2 c=3 p:b\n"
            "out 0: f32[B,3] = %1[a b -> a b]\n");
}

TEST(View, strided_parts_are_picks_of_the_other_factor) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[B,6]) {
    %a: f32[B,3] = slice %x {limit_indices = (B, 6), start_indices = (0, 1), strides = (1, 2)}
    return %a
  })"),
            "%1[a b] = pick[k=1](%0[a (b c)]) f32 a=B b=3 c=2 p:c\n"
            "out 0: f32[B,3] = %1[a b -> a b]\n");
}

TEST(View, an_index_into_a_product_is_a_pick_for_each_factor) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[2,3,5]) {
    %a: f32[6,5] = reshape %x {dimensions = none, new_sizes = (6, 5)}
    %b: f32[1,5] = slice %a {limit_indices = (6, 5), start_indices = (5, 0), strides = none}
    return %b
  })"),
            "%1[a c] = pick[k=2](%0[a b c]) f32 a=2 b=3 c=5 p:b\n"
            "%2[b] = pick[k=1](%1[a b]) f32 a=2 b=5 p:a\n"
            "out 0: f32[1,5] = %2[a -> 1 a]\n");
}

TEST(View, other_ranges_are_slices_of_the_leading_factors) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[5,3]) {
    %a: f32[15] = reshape %x {dimensions = none, new_sizes = (15)}
    %b: f32[6] = slice %a {limit_indices = (9), start_indices = (3), strides = none}
    return %b
  })"),
            "%1[b c] = slice[limit=3, start=1, stride=1](%0[a b]) f32 a=5 b=3 c=2 i:a o:c\n"
            "out 0: f32[6] = %1[a b -> (b a)]\n");
}

TEST(View, a_broadcast_is_sliced_by_its_size_alone) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[3]) {
    %a: f32[7,3] = broadcast_in_dim %x {broadcast_dimensions = (1), shape = (7, 3)}
    %b: f32[2,3] = slice %a {limit_indices = (6, 3), start_indices = (1, 0), strides = (3, 1)}
    return %b
  })"),
            "out 0: f32[2,3] = %0[a -> b a]\n");
}

TEST(View, symbolic_indexing_arrives_as_a_gather) {
  const std::string_view text = R"(func @f(%x: f32[B,T,3]) {
    %last: i32[] = dim_as_value {dim = T - 1}
    %i: i32[1] = broadcast_in_dim %last {broadcast_dimensions = (), shape = (1)}
    %a: f32[B,3] = gather %x %i {dimension_numbers = GatherDimensionNumbers {offset_dims = (0, 1),
      collapsed_slice_dims = (1), start_index_map = (1), operand_batching_dims = (),
      start_indices_batching_dims = ()}, fill_value = none, indices_are_sorted = true,
      mode = #promise_in_bounds, slice_sizes = (B, 1, 3), unique_indices = true}
    return %a
  })";
  EXPECT_EQ(nodes_of(text),
            "%1[a c] = slice[limit=T, start=T - 1, stride=1](%0[a b c]) f32 a=B b=T c=3 i:b\n"
            "out 0: f32[B,3] = %1[a b -> a b]\n");
  expect_same_values(text, {counting({2, 4, 3})});
}

TEST(View, a_gather_by_data_stays_positional) {
  const Program program = program_of(R"(func @f(%x: f32[4,3], %i: i32[1]) {
    %a: f32[3] = gather %x %i {dimension_numbers = GatherDimensionNumbers {offset_dims = (0),
      collapsed_slice_dims = (0), start_index_map = (0), operand_batching_dims = (),
      start_indices_batching_dims = ()}, fill_value = none, indices_are_sorted = true,
      mode = #clip, slice_sizes = (1, 3), unique_indices = true}
    return %a
  })");
  EXPECT_EQ(count_of(program, Kind::kPrim), 1);
}

// --- calls and positional primitives

TEST(Build, inlines_calls_and_drops_identities) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[3]) {
    %a: f32[3] = jit %x {jaxpr = { (%y: f32[3])
      %c: f32[] = constant 2.0
      %d: f32[3] = mul %y %c
      return %d
    }, name = "inner"}
    %b: f32[3] = stop_gradient %a
    %e: f32[3] = reduce_precision %b {exponent_bits = 8, mantissa_bits = 23}
    return %e
  })"),
            "%1[] = constant(2) f32\n"
            "%2[a] = mul(%0[a], %1[]) f32 a=3\n"
            "out 0: f32[3] = %2[a -> a]\n");
  EXPECT_NE(nodes_of(R"(func @f(%x: f32[3]) {
    %a: f32[3] = reduce_precision %x {exponent_bits = 5, mantissa_bits = 10}
    return %a
  })"),
            "out 0: f32[3] = %0[a -> a]\n");
}

TEST(Build, unknown_primitives_are_positional) {
  const Program program = program_of(R"(func @f(%x: f32[3,1,4]) {
    %t: f32[4,1,3] = transpose %x {permutation = (2, 1, 0)}
    %a: f32[4,1,2], %b: i32[4,1,2] = my_primitive %t {k = 2}
    return %a %b
  })");
  EXPECT_EQ(print(program),
            "%0[a b] = input[index=0]() f32 a=3 b=4 \"x\"\n"
            "%1[b a] = relayout(%0[a b]) f32 a=3 b=4\n"
            "%2[c d] = my_primitive[k=2]#0(%1[a b]) f32 a=4 b=3 c=4 d=2\n"
            "%3[c d] = my_primitive[k=2]#1(%1[a b]) i32 a=4 b=3 c=4 d=2\n"
            "out 0: f32[4,1,2] = %2[a b -> a 1 b]\n"
            "out 1: i32[4,1,2] = %3[a b -> a 1 b]\n");
  const Node& first = *program.outputs[0].use.node;
  EXPECT_EQ(first.prim, program.outputs[1].use.node->prim);
  EXPECT_EQ(front::to_string(first.prim->in[0]), "f32[4,1,3]");
}

TEST(Build, bitcasts_to_another_width_are_positional) {
  EXPECT_EQ(count_of(program_of(R"(func @f(%x: f32[3]) {
    %a: u8[3,4] = bitcast_convert_type %x {new_dtype = u8}
    %b: u32[3] = bitcast_convert_type %x {new_dtype = u32}
    return %a %b
  })"),
                     Kind::kPrim),
            1);
}

TEST(Build, names_the_equation_that_does_not_fit) {
  const auto message = [](std::string_view text) -> std::string {
    try {
      program_of(text);
    } catch (const Error& error) {
      return error.code() + ": " + error.message();
    }
    return "no error";
  };
  EXPECT_EQ(message(R"(func @f(%x: f32[3]) {
    %a: f32[3] = transpose %x {permutation = (1)}
    return %a
  })"),
            "E032: primitive 'transpose': axis 1 is out of range");
  EXPECT_EQ(message(R"(func @f(%x: f32[3], %y: f32[4]) {
    %a: f32[3] = add %x %y
    return %a
  })"),
            "E032: sizes 3 and 4 of one dim differ");
  EXPECT_EQ(message(R"(func @f(%x: f32[3], %y: f32[2,3]) {
    %a: f32[2,3] = add %x %y
    return %a
  })"),
            "E032: primitive 'add': an operand has neither the rank of the result nor rank 0");
  EXPECT_EQ(message(R"(func @f(%x: f32[3]) {
    %a: f32[3] = integer_pow %x
    return %a
  })")
                .substr(0, 4),
            "E031");
  EXPECT_EQ(message(R"(func @f(%x: f32[3]) {
    %a: f32[3] = add %x
    return %a
  })"),
            "E032: primitive 'add': the numbers of operands and results do not fit");
  EXPECT_EQ(message(R"(func @f(%x: f32[3]) {
    %a: f32[4] = exp %x
    return %a
  })"),
            "E032: primitive 'exp': a result does not fit its type");
  EXPECT_EQ(message(R"(func @f(%x: f32[6]) {
    %a: f32[5] = reshape %x {dimensions = none, new_sizes = (5)}
    return %a
  })"),
            "E032: primitive 'reshape': the numbers of elements differ");
}

// --- looking down

TEST(Child, invents_the_same_labels_each_time) {
  Scratch s;
  const Use x = s.input(0, {4, 3});
  const Use sum = s.graph.reduce("reduce_sum", x, x.labels[1], DType::kF32);
  const Use again = s.graph.child(sum, 0);
  EXPECT_EQ(again, s.graph.child(sum, 0));
  EXPECT_EQ(again.labels[0], x.labels[0]);
  EXPECT_NE(again.labels[1], x.labels[1]);
  Binding binding;
  EXPECT_TRUE(s.graph.same(x, again, binding));
  EXPECT_EQ(resolve(again.labels[1][0], binding), x.labels[1][0]);
}

TEST(Child, labels_of_the_context_are_never_bound) {
  Scratch s;
  const Use x = s.input(0, {3, 3});
  Use transposed = x;
  std::swap(transposed.labels[0], transposed.labels[1]);
  Binding binding;
  EXPECT_FALSE(s.graph.same(x, transposed, binding));
  EXPECT_TRUE(binding.empty());
}

TEST(Child, of_a_product_axis_is_a_product) {
  Scratch s;
  Use x = s.input(0, {6});
  x.labels = {{s.graph.label(2), s.graph.label(3)}};
  const Use y = s.f32("exp", {x});
  EXPECT_EQ(y.labels, x.labels);
  EXPECT_EQ(y.node->sizes, Dims{6});
  EXPECT_EQ(s.graph.child(y, 0), x);
}

// --- rebuilding

TEST(Rebuild, replaces_nodes_and_remakes_their_users) {
  Program program = program_of(R"(func @f(%x: f32[4,6]) {
    %a: f32[4,6] = exp %x
    %b: f32[24] = reshape %a {dimensions = none, new_sizes = (24)}
    %c: f32[24] = cumsum %b {axis = 0, reverse = false}
    %d: f32[] = reduce_sum %c {axes = (0)}
    return %c %d
  })");
  const Rewrite rewrite = [](Graph& graph, const Use& use, const UseCounts& uses) -> Use {
    if (!use.node->is(Kind::kPointwise, "exp")) return {};
    EXPECT_EQ(uses[use.node], 1u);
    return graph.pointwise("expm1", {graph.child(use, 0)}, DType::kF32);
  };
  EXPECT_TRUE(rebuild(program, rewrite));
  verify(program);
  EXPECT_FALSE(rebuild(program, rewrite));
  const Tensor x = counting({4, 6});
  const auto results = evaluate(program, std::array{x}, nullptr);
  EXPECT_FLOAT_EQ(static_cast<float>(results[0].at(2)), std::expm1(1.0f) + std::expm1(2.0f));
}

TEST(Rebuild, gives_positional_operands_back_their_axes) {
  Program program = program_of(R"(func @f(%x: f32[4]) {
    %a: f32[4] = exp %x
    %b: f32[4] = cumsum %a {axis = 0, reverse = false}
    return %b
  })");
  rebuild(program, [](Graph& graph, const Use& use, const UseCounts&) -> Use {
    return use.node->is(Kind::kPointwise, "exp") ? graph.scalar(2, DType::kF32) : Use{};
  });
  verify(program);
  const Tensor x = counting({4});
  EXPECT_EQ(evaluate(program, std::array{x}, nullptr)[0].at(3), 8);
}

TEST(Rebuild, a_sum_over_a_value_that_no_longer_varies_keeps_its_count) {
  Program program = program_of(R"(func @f(%x: f32[4]) {
    %a: f32[4] = exp %x
    %b: f32[] = reduce_sum %a {axes = (0)}
    return %b
  })");
  rebuild(program, [](Graph& graph, const Use& use, const UseCounts&) -> Use {
    return use.node->is(Kind::kPointwise, "exp") ? graph.scalar(2, DType::kF32) : Use{};
  });
  const Tensor x = counting({4});
  EXPECT_EQ(evaluate(program, std::array{x}, nullptr)[0].at(0), 8);
}

TEST(Rebuild, counts_uses_by_edges_and_outputs) {
  Program program = program_of(R"(func @f(%x: f32[4]) {
    %a: f32[4] = exp %x
    %b: f32[4] = sub %a %a
    return %a %b
  })");
  std::uint32_t uses_of_exp = 0;
  rebuild(program, [&](Graph&, const Use& use, const UseCounts& uses) -> Use {
    if (use.node->is(Kind::kPointwise, "exp")) uses_of_exp = uses[use.node];
    return {};
  });
  EXPECT_EQ(uses_of_exp, 3u);
}

// --- macros

Use expand_softmax(Graph& graph, const Use& use) {
  const Use e = graph.pointwise("exp", {graph.child(use, 0)}, DType::kF32);
  const Use sum = graph.reduce("reduce_sum", e, graph.role(use, "s"), DType::kF32);
  return graph.pointwise("div", {e, sum}, DType::kF32);
}

TEST(Macro, is_evaluated_by_its_expansion) {
  Program program = program_of(R"(func @f(%x: f32[2,2]) {
    %a: f32[2,2] = exp %x
    return %a
  })");
  rebuild(program, [](Graph& graph, const Use& use, const UseCounts&) -> Use {
    if (!use.node->is(Kind::kPointwise, "exp")) return {};
    const Use x = graph.child(use, 0);
    return graph.macro("softmax", {x}, x.flat(), DType::kF32, {{"s", x.labels[0]}});
  });
  verify(program);
  const Tensor x = floats({2, 2}, {0, 0, 0, std::log(3.0f)});
  const auto results = evaluate(program, std::array{x}, expand_softmax);
  EXPECT_FLOAT_EQ(static_cast<float>(results[0].at(0)), 0.5f);
  EXPECT_FLOAT_EQ(static_cast<float>(results[0].at(3)), 0.75f);
  EXPECT_THROW(evaluate(program, std::array{x}, nullptr), Error);
}

}  // namespace
}  // namespace jaxport::axis
