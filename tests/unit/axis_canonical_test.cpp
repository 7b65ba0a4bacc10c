// SPDX-License-Identifier: Apache-2.0
// The canonical form that the constructors of the graph keep.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "axis/graph/graph.h"
#include "axis_tools.h"

namespace jaxport::axis {
namespace {

// --- one node for equal values

TEST(Sharing, sees_through_transposes_of_a_product) {
  EXPECT_TRUE(outputs_are_one_node(R"(func @f(%x: f32[2,3], %w: f32[3,4]) {
    %a: f32[2,4] = dot_general %x %w {dimension_numbers = (((1), (0)), ((), ()))}
    %xt: f32[3,2] = transpose %x {permutation = (1, 0)}
    %wt: f32[4,3] = transpose %w {permutation = (1, 0)}
    %b: f32[4,2] = dot_general %wt %xt {dimension_numbers = (((1), (0)), ((), ()))}
    return %a %b
  })"));
}

TEST(Sharing, knows_commutative_operations) {
  EXPECT_TRUE(outputs_are_one_node(R"(func @f(%x: f32[2], %y: f32[2]) {
    %a: f32[2] = add %x %y
    %b: f32[2] = add %y %x
    return %a %b
  })"));
  EXPECT_FALSE(outputs_are_one_node(R"(func @f(%x: f32[2], %y: f32[2]) {
    %a: f32[2] = sub %x %y
    %b: f32[2] = sub %y %x
    return %a %b
  })"));
}

TEST(Sharing, orders_two_uses_of_one_value) {
  EXPECT_TRUE(outputs_are_one_node(R"(func @f(%x: f32[3,3]) {
    %l: f32[3,3,1] = reshape %x {dimensions = none, new_sizes = (3, 3, 1)}
    %r: f32[1,3,3] = reshape %x {dimensions = none, new_sizes = (1, 3, 3)}
    %a: f32[3,3,3] = add %l %r
    %b: f32[3,3,3] = add %r %l
    return %a %b
  })"));
}

TEST(Sharing, sees_through_reshapes) {
  EXPECT_TRUE(outputs_are_one_node(R"(func @f(%x: f32[2,6]) {
    %a: f32[2,6] = exp %x
    %y: f32[4,3] = reshape %x {dimensions = none, new_sizes = (4, 3)}
    %b: f32[4,3] = exp %y
    return %a %b
  })"));
}

TEST(Sharing, tells_dtypes_and_parameters_apart) {
  EXPECT_FALSE(outputs_are_one_node(R"(func @f(%x: f32[2]) {
    %a: f32[2] = integer_pow %x {y = 2}
    %b: f32[2] = integer_pow %x {y = 3}
    return %a %b
  })"));
  EXPECT_FALSE(outputs_are_one_node(R"(func @f(%x: f32[3,3]) {
    %t: f32[3,3] = transpose %x {permutation = (1, 0)}
    %a: f32[3,3] = add %x %t
    %b: f32[3,3] = add %x %x
    return %a %b
  })"));
}

TEST(Sharing, keeps_random_draws_apart) {
  EXPECT_FALSE(outputs_are_one_node(R"(func @f(%lo: f32[], %hi: f32[]) {
    %a: f32[2] = rng_uniform %lo %hi {shape = (2)}
    %b: f32[2] = rng_uniform %lo %hi {shape = (2)}
    return %a %b
  })"));
}

// --- canonical forms, each with a case where it must not fire

struct Canonical : testing::Test {
  Scratch s;
  Use x = s.input(0, {4, 3});
  Use y = s.input(1, {4, 3});
  Use i = s.input(2, {4, 3}, DType::kI32);
  Use p = s.input(3, {4, 3}, DType::kBool);
  Use q = s.input(4, {4, 3}, DType::kBool);
  Use z = s.input(5, {4, 3}, DType::kC64);

  Canonical() {
    for (Use* use : {&y, &i, &p, &q, &z}) use->labels = x.labels;
  }
};

TEST_F(Canonical, neutral_constants_disappear) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(s.f32("add", {x, s.number(0)}), x);
  EXPECT_EQ(s.f32("add", {s.number(0), x}), x);
  EXPECT_EQ(s.f32("sub", {x, s.number(0)}), x);
  EXPECT_EQ(s.f32("mul", {s.number(1), x}), x);
  EXPECT_EQ(s.f32("div", {x, s.number(1)}), x);
  EXPECT_EQ(s.f32("max", {s.number(-infinity), x}), x);
  EXPECT_EQ(s.f32("min", {x, s.number(infinity)}), x);
  EXPECT_EQ(s.boolean("and", {s.truth(true), p}), p);
  EXPECT_EQ(s.boolean("or", {p, s.truth(false)}), p);
  EXPECT_EQ(s.graph.scalar_value(s.boolean("and", {p, s.truth(false)})), 0.0);
  EXPECT_EQ(s.graph.scalar_value(s.boolean("or", {s.truth(true), p})), 1.0);
}

TEST_F(Canonical, other_constants_stay) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_NE(s.f32("sub", {s.number(0), x}), x);
  EXPECT_NE(s.f32("div", {s.number(1), x}), x);
  EXPECT_NE(s.f32("max", {s.number(infinity), x}), x);
  EXPECT_NE(s.f32("mul", {x, s.number(0)}).node->kind, Kind::kConstant);  // NaN * 0
  EXPECT_NE(s.f32("sub", {x, x}).node->kind, Kind::kConstant);            // inf - inf
  const Use one = s.graph.scalar(1, DType::kI32);
  EXPECT_NE(s.graph.pointwise("and", {i, one}, DType::kI32), i);  // bits, not truth
}

TEST_F(Canonical, products_of_a_value_with_itself_are_powers) {
  const Use square = s.f32("mul", {x, x});
  EXPECT_TRUE(square.node->is(Kind::kPointwise, "integer_pow"));
  EXPECT_EQ(square, s.f32("square", {x}));
  const Use cube = s.f32("mul", {x, square});
  EXPECT_EQ(*cube.node->attr("y")->get_if<std::int64_t>(), 3);
  // The fourth power rounds differently.
  EXPECT_EQ(s.f32("mul", {x, cube}).node->name, "mul");
  EXPECT_EQ(s.f32("mul", {x, y}).node->name, "mul");
}

TEST_F(Canonical, transposed_operands_are_not_a_square) {
  Use square_matrix = s.input(6, {3, 3});
  Use transposed = square_matrix;
  std::swap(transposed.labels[0], transposed.labels[1]);
  EXPECT_EQ(s.f32("mul", {square_matrix, transposed}).node->name, "mul");
}

TEST_F(Canonical, conversions_there_and_back) {
  const Use half = s.input(7, {4}, DType::kBF16);
  EXPECT_EQ(s.as(s.as(half, DType::kF32), DType::kBF16), half);
  EXPECT_EQ(s.as(s.as(i, DType::kI64), DType::kI32), i);
  EXPECT_NE(s.as(s.as(x, DType::kBF16), DType::kF32), x);        // loses bits
  EXPECT_NE(s.as(s.as(half, DType::kF16), DType::kBF16), half);  // loses range
  EXPECT_NE(s.as(s.as(i, DType::kF32), DType::kI32), i);         // loses bits
  EXPECT_EQ(s.as(x, DType::kF32), x);
}

TEST_F(Canonical, bools_survive_every_conversion) {
  const Use as_float = s.as(p, DType::kF32);
  EXPECT_EQ(s.as(as_float, DType::kBool), p);
  EXPECT_EQ(s.as(as_float, DType::kI32), s.as(p, DType::kI32));
  EXPECT_EQ(s.boolean("ne", {as_float, s.number(0)}), p);
  EXPECT_EQ(s.boolean("gt", {as_float, s.number(0)}), p);
  EXPECT_EQ(s.boolean("eq", {s.number(0), as_float}), s.boolean("not", {p}));
  EXPECT_EQ(s.boolean("ne", {x, s.number(0)}).node->name, "ne");
  EXPECT_EQ(s.boolean("gt", {as_float, s.number(1)}).node->name, "gt");
}

TEST_F(Canonical, products_of_bools_are_conjunctions) {
  const Use product = s.f32("mul", {s.as(p, DType::kF32), s.as(q, DType::kF32)});
  EXPECT_EQ(product, s.as(s.boolean("and", {p, q}), DType::kF32));
  EXPECT_EQ(s.f32("mul", {s.as(p, DType::kF32), x}).node->name, "mul");
}

TEST_F(Canonical, negated_comparisons) {
  const Use j = s.graph.scalar(2, DType::kI32);
  EXPECT_EQ(s.boolean("not", {s.boolean("lt", {i, j})}), s.boolean("ge", {i, j}));
  EXPECT_EQ(s.boolean("not", {s.boolean("eq", {x, y})}), s.boolean("ne", {x, y}));
  EXPECT_EQ(s.boolean("not", {s.boolean("not", {p})}), p);
  EXPECT_EQ(s.boolean("not", {s.boolean("lt", {x, y})}).node->name, "not");  // NaN
}

TEST_F(Canonical, selects_with_known_branches) {
  const Use zero = s.number(0), one = s.number(1);
  EXPECT_EQ(s.f32("select_n", {s.truth(false), x, y}), x);
  EXPECT_EQ(s.f32("select_n", {s.truth(true), x, y}), y);
  EXPECT_EQ(s.f32("select_n", {p, x, x}), x);
  EXPECT_EQ(s.f32("select_n", {p, zero, one}), s.as(p, DType::kF32));
  EXPECT_EQ(s.boolean("select_n", {p, s.truth(false), s.truth(true)}), p);
  EXPECT_EQ(s.boolean("select_n", {p, s.truth(true), s.truth(false)}), s.boolean("not", {p}));
  EXPECT_EQ(s.boolean("select_n", {p, s.truth(false), q}), s.boolean("and", {p, q}));
  EXPECT_EQ(s.boolean("select_n", {p, q, s.truth(true)}), s.boolean("or", {p, q}));
  EXPECT_EQ(s.f32("select_n", {s.boolean("not", {p}), x, y}), s.f32("select_n", {p, y, x}));
  EXPECT_EQ(s.f32("select_n", {p, one, zero}).node->name, "select_n");
  EXPECT_EQ(s.f32("select_n", {p, zero, x}).node->name, "select_n");
}

TEST_F(Canonical, meaningless_parameters_are_dropped) {
  const Use plain = s.f32("exp", {x});
  EXPECT_EQ(s.graph.pointwise("exp", {x}, DType::kF32, {{"accuracy", front::Attr{front::None{}}}}),
            plain);
}

// --- reductions and products

TEST(Reduce, of_a_reduce_is_one_reduce) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[2,3,4]) {
    %a: f32[2,3] = reduce_max %x {axes = (2)}
    %b: f32[3] = reduce_max %a {axes = (0)}
    return %b
  })"),
            "%1[b] = reduce_max(%0[a b c]) f32 a=2 b=3 c=4\n"
            "out 0: f32[3] = %1[a -> a]\n");
  EXPECT_EQ(count_of(program_of(R"(func @f(%x: f32[2,3,4]) {
    %a: f32[2,3] = reduce_max %x {axes = (2)}
    %b: f32[3] = reduce_sum %a {axes = (0)}
    return %b
  })"),
                     Kind::kReduce),
            2);
}

std::string reduce_broadcast(std::string_view name, std::string_view dtype) {
  return fmt::format(R"(func @f(%x: {0}[3]) {{
    %a: {0}[3,5] = broadcast_in_dim %x {{broadcast_dimensions = (0), shape = (3, 5)}}
    %b: {0}[3] = {1} %a {{axes = (1)}}
    return %b
  }})",
                     dtype, name);
}

TEST(Reduce, over_a_broadcast_needs_no_reduction) {
  EXPECT_EQ(nodes_of(reduce_broadcast("reduce_max", "f32")), "out 0: f32[3] = %0[a -> a]\n");
  EXPECT_EQ(nodes_of(reduce_broadcast("reduce_sum", "f32")),
            "%1[] = constant(5) f32\n"
            "%2[a] = mul(%0[a], %1[]) f32 a=3\n"
            "out 0: f32[3] = %2[a -> a]\n");
  EXPECT_EQ(nodes_of(reduce_broadcast("reduce_prod", "i32")),
            "%1[a] = integer_pow[y=5](%0[a]) i32 a=3\n"
            "out 0: i32[3] = %1[a -> a]\n");
  EXPECT_EQ(count_of(program_of(reduce_broadcast("reduce_xor", "i32")), Kind::kReduce), 1);
}

TEST(Reduce, over_a_symbolic_broadcast_is_real) {
  const std::string_view text = R"(func @f(%x: f32[3], %y: f32[B]) {
    %a: f32[3,B] = broadcast_in_dim %x {broadcast_dimensions = (0), shape = (3, B)}
    %b: f32[3] = reduce_sum %a {axes = (1)}
    return %b
  })";
  EXPECT_EQ(count_of(program_of(text), Kind::kReduce), 1);
  expect_same_values(text, {counting({3}), counting({4})});
}

TEST(Contract, sums_labels_of_one_side_first) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[2,3], %y: f32[2]) {
    %a: f32[2,3] = broadcast_in_dim %y {broadcast_dimensions = (0), shape = (2, 3)}
    %b: f32[2] = dot_general %x %a {dimension_numbers = (((1), (1)), ((0), (0)))}
    return %b
  })"),
            "%2[a] = reduce_sum(%0[a b]) f32 a=2 b=3\n"
            "%3[a] = mul(%1[a], %2[a]) f32 a=2\n"
            "out 0: f32[2] = %3[a -> a]\n");
}

TEST(Contract, sums_narrow_integers_in_the_result_dtype) {
  const std::string_view text = R"(func @f(%x: i8[3], %y: i8[]) {
    %a: i8[3] = broadcast_in_dim %y {broadcast_dimensions = (), shape = (3)}
    %b: i32[] = dot_general %x %a {dimension_numbers = (((0), (0)), ((), ())),
      precision = none, preferred_element_type = i32}
    return %b
  })";
  const Tensor x = eval::cast(floats({3}, {100, 100, 100}), DType::kI8);
  expect_same_values(text, {x, int_scalar(DType::kI8, 100)});
}

TEST(Contract, merges_labels_that_are_summed_together) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[B,6], %w: f32[6,4]) {
    %a: f32[B,2,3] = reshape %x {dimensions = none, new_sizes = (B, 2, 3)}
    %b: f32[2,3,4] = reshape %w {dimensions = none, new_sizes = (2, 3, 4)}
    %c: f32[B,4] = dot_general %a %b {dimension_numbers = (((1, 2), (0, 1)), ((), ()))}
    return %c
  })"),
            "%2[a c] = contract(%0[a b], %1[b c]) f32 a=B b=6 c=4\n"
            "out 0: f32[B,4] = %2[a b -> a b]\n");
}

// --- taking apart and joining

TEST(Move, equal_pieces_are_a_stack) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[3], %y: f32[3]) {
    %a: f32[6] = concatenate %x %y {dimension = 0}
    return %a
  })"),
            "%2[a b] = stack(%0[a], %1[a]) f32 a=3 b=2 p:b\n"
            "out 0: f32[6] = %2[a b -> (b a)]\n");
}

TEST(Move, a_value_joined_with_itself_is_a_broadcast) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[3]) {
    %a: f32[6] = concatenate %x %x {dimension = 0}
    return %a
  })"),
            "out 0: f32[6] = %0[a -> (b a)]\n");
}

TEST(Move, halves_joined_again_are_the_value) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[B,6]) {
    %a: f32[B,3], %b: f32[B,3] = split %x {axis = 1, sizes = (3, 3)}
    %c: f32[B,6] = concatenate %a %b {dimension = 1}
    return %c
  })"),
            "out 0: f32[B,6] = %0[a (b c) -> a (b c)]\n");
  EXPECT_NE(nodes_of(R"(func @f(%x: f32[B,6]) {
    %a: f32[B,3], %b: f32[B,3] = split %x {axis = 1, sizes = (3, 3)}
    %c: f32[B,6] = concatenate %b %a {dimension = 1}
    return %c
  })"),
            "out 0: f32[B,6] = %0[a (b c) -> a (b c)]\n");
}

TEST(Move, unequal_pieces_joined_again_are_the_value) {
  EXPECT_EQ(nodes_of(R"(func @f(%x: f32[B,6]) {
    %a: f32[B,1], %b: f32[B,2], %c: f32[B,3] = split %x {axis = 1, sizes = (1, 2, 3)}
    %d: f32[B,6] = concatenate %a %b %c {dimension = 1}
    return %d
  })"),
            "out 0: f32[B,6] = %0[a b -> a b]\n");
  EXPECT_EQ(count_of(program_of(R"(func @f(%x: f32[B,6]) {
    %a: f32[B,1], %b: f32[B,2], %c: f32[B,3] = split %x {axis = 1, sizes = (1, 2, 3)}
    %d: f32[B,6] = concatenate %a %c %b {dimension = 1}
    return %d
  })"),
                     Kind::kConcat),
            1);
}

TEST(Move, a_part_of_a_join_is_the_piece) {
  const Program part = program_of(R"(func @f(%x: f32[B,2], %y: f32[B,3]) {
    %a: f32[B,5] = concatenate %x %y {dimension = 1}
    %b: f32[B,3] = slice %a {limit_indices = (B, 5), start_indices = (0, 2), strides = none}
    return %b
  })");
  EXPECT_EQ(part.outputs[0].use.node->path, "y");
  EXPECT_EQ(count_of(program_of(R"(func @f(%x: f32[B,2], %y: f32[B,3]) {
    %a: f32[B,5] = concatenate %x %y {dimension = 1}
    %b: f32[B,3] = slice %a {limit_indices = (B, 4), start_indices = (0, 1), strides = none}
    return %b
  })"),
                     Kind::kConcat),
            1);
}

TEST(Move, an_index_of_a_stack_is_the_operand) {
  const Program part = program_of(R"(func @f(%x: f32[B], %y: f32[B]) {
    %a: f32[B,2] = stack %x %y {axis = 1}
    %b: f32[B], %c: f32[B] = unstack %a {axis = 1}
    return %c
  })");
  EXPECT_EQ(part.outputs[0].use.node->path, "y");
}

TEST(Move, slices_of_slices_are_one_slice) {
  const Program program = program_of(R"(func @f(%x: f32[7]) {
    %a: f32[5] = slice %x {limit_indices = (6), start_indices = (1), strides = none}
    %b: f32[3] = slice %a {limit_indices = (4), start_indices = (1), strides = none}
    return %b
  })");
  EXPECT_EQ(count_of(program, Kind::kSlice), 1);
}

TEST(Move, pieces_of_symbolic_size) {
  const std::string_view text = R"(func @f(%x: f32[B,3], %y: f32[T,3]) {
    %a: f32[B+T,3] = concatenate %x %y {dimension = 0}
    %b: f32[2*B+2*T,3] = concatenate %a %a {dimension = 0}
    %c: f32[T,3] = slice %a {limit_indices = (B+T, 3), start_indices = (B, 0), strides = none}
    return %a %b %c
  })";
  EXPECT_EQ(program_of(text).outputs[2].use.node->kind, Kind::kInput);
  expect_same_values(text, {counting({2, 3}), counting({4, 3})});
}

// --- constants

Use constant_of(Scratch& s, const Tensor& tensor) { return s.graph.constant(tensor); }

TEST(Constant, uniform_integers_are_broadcast_scalars) {
  Scratch s;
  const Tensor ones = eval::cast(floats({2, 2}, {1, 1, 1, 1}), DType::kI32);
  EXPECT_EQ(s.graph.scalar_value(constant_of(s, ones)), 1.0);
  EXPECT_EQ(constant_of(s, floats({2, 2}, {1, 1, 1, 1})).labels.size(), 2);  // weights stay
  const Tensor mixed = eval::cast(floats({2, 2}, {1, 1, 1, 0}), DType::kI32);
  EXPECT_EQ(constant_of(s, mixed).labels.size(), 2);
}

TEST(Constant, progressions_are_iotas) {
  Scratch s;
  const Tensor odd = eval::cast(floats({3}, {1, 3, 5}), DType::kI32);
  const Use use = constant_of(s, odd);
  EXPECT_EQ(use.node->name, "add");
  const Tensor primes = eval::cast(floats({3}, {2, 3, 5}), DType::kI32);
  EXPECT_EQ(constant_of(s, primes).node->kind, Kind::kConstant);
  EXPECT_EQ(constant_of(s, floats({3}, {0, 1, 2})).node->kind, Kind::kConstant);
}

TEST(Constant, equal_small_constants_are_one_node) {
  Scratch s;
  EXPECT_EQ(constant_of(s, floats({2}, {1, 2})).node, constant_of(s, floats({2}, {1, 2})).node);
  EXPECT_NE(constant_of(s, floats({2}, {1, 2})).node, constant_of(s, floats({2}, {1, 3})).node);
  const Tensor large = counting({2000});
  EXPECT_EQ(constant_of(s, large).node, constant_of(s, large).node);
  EXPECT_NE(constant_of(s, large).node, constant_of(s, counting({2000})).node);
}

TEST(Constant, small_arithmetic_is_folded) {
  Scratch s;
  const Use a = constant_of(s, floats({2}, {1, 2}));
  const Use sum = s.f32("add", {a, s.number(3)});
  ASSERT_EQ(sum.node->kind, Kind::kConstant);
  EXPECT_EQ(sum.node->data.at(1), 5);
  EXPECT_EQ(s.f32("add", {a, s.input(0, {})}).node->name, "add");
}

TEST(Constant, large_weights_stay_untouched) {
  Scratch s;
  const Use weight = s.graph.constant(counting({300, 300}), "dense.kernel");
  EXPECT_EQ(weight.node->path, "dense.kernel");
  EXPECT_EQ(s.as(weight, DType::kF64).node->name, "convert_element_type");
  EXPECT_EQ(s.graph.reduce("reduce_sum", weight, weight.flat(), DType::kF32).node->kind,
            Kind::kReduce);
  // One row of it is small.
  EXPECT_EQ(s.graph.pick(weight, weight.labels[0][0], 1).node->data.at(0), 300);
}

TEST(Constant, a_running_sum_of_ones_is_an_iota) {
  EXPECT_EQ(nodes_of(R"(func @f() {
    %one: i32[] = constant 1
    %a: i32[4] = broadcast_in_dim %one {broadcast_dimensions = (), shape = (4)}
    %b: i32[4] = cumsum %a {axis = 0, reverse = false}
    return %b
  })"),
            "%0[] = constant(1) i32\n"
            "%1[a] = iota() i32 a=4\n"
            "%2[a] = add(%1[a], %0[]) i32 a=4\n"
            "out 0: i32[4] = %2[a -> a]\n");
}

}  // namespace
}  // namespace jaxport::axis
