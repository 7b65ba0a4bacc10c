// SPDX-License-Identifier: Apache-2.0
// The types of equations: what each primitive accepts, and what it refuses.
#include "front/infer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "front/text.h"
#include "jaxport/error.h"

namespace jaxport::front {
namespace {

using Words = std::vector<std::string>;

std::string verdict(const std::string& primitive, const Words& operands, const std::string& params,
                    const Words& results) {
  std::string signature, uses, declared;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    signature += (i == 0 ? "%x" : ", %x") + std::to_string(i) + ": " + operands[i];
    uses += " %x" + std::to_string(i);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    declared += (i == 0 ? "%y" : ", %y") + std::to_string(i) + ": " + results[i];
  }
  const std::string text = "func @f(" + signature + ") { " + declared + " = " + primitive + uses +
                           " {" + params + "} return %y0 }";
  try {
    verify(parse(text, "t.jir"));
  } catch (const Error& error) {
    return error.code() + ": " + error.message();
  }
  return "fits";
}

struct Sample {
  std::string primitive;
  Words operands;
  std::string params;
  Words results, wrong;  // wrong: results that the operands do not give
};

const std::string kGather =
    "dimension_numbers = G{offset_dims = (1), collapsed_slice_dims = (0), start_index_map = (0), "
    "operand_batching_dims = (), start_indices_batching_dims = ()}, slice_sizes = (1, 3)";
const std::string kScatter =
    "dimension_numbers = S{update_window_dims = (1), inserted_window_dims = (0), "
    "scatter_dims_to_operand_dims = (0), operand_batching_dims = (), "
    "scatter_indices_batching_dims = ()}";
const std::string kConv =
    "batch_group_count = 1, dimension_numbers = C{lhs_spec = (0, 3, 1, 2), rhs_spec = (3, 2, 0, "
    "1), out_spec = (0, 3, 1, 2)}, feature_group_count = 1, padding = ((1, 1), (0, 0)), "
    "window_strides = (2, 1)";
const std::string kWindow =
    "padding = ((0, 0), (1, 1)), window_dimensions = (2, 3), window_strides = (2, 1)";
const std::string kAdd = "jaxpr = { (%a: f32[], %b: f32[]) %c: f32[] = add %a %b return %c }";

// One for each primitive that is not elementwise.
const Sample kSamples[] = {
    {"argmax", {"f32[2,3]"}, "axes = (1), index_dtype = i32", {"i32[2]"}, {"i32[3]"}},
    {"argmin", {"f32[2,3]"}, "axes = (1), index_dtype = i32", {"i32[2]"}, {"i64[2]"}},
    {"broadcast_in_dim", {"f32[3]"}, "broadcast_dimensions = (1)", {"f32[2,3]"}, {"f32[2,4]"}},
    {"concatenate", {"f32[2,3]", "f32[B,3]"}, "dimension = 0", {"f32[B + 2,3]"}, {"f32[B,3]"}},
    {"conv_general_dilated",
     {"f32[1,8,8,3]", "f32[3,3,3,4]"},
     kConv,
     {"f32[1,4,6,4]"},
     {"f32[1,4,6,3]"}},
    {"cumlogsumexp", {"f32[2,3]"}, "axis = 1, reverse = false", {"f32[2,3]"}, {"f32[3,2]"}},
    {"cummax", {"f32[2,3]"}, "axis = 1, reverse = false", {"f32[2,3]"}, {"f32[2]"}},
    {"cummin", {"f32[2,3]"}, "axis = 1, reverse = false", {"f32[2,3]"}, {"f64[2,3]"}},
    {"cumprod", {"f32[2,3]"}, "axis = 1, reverse = false", {"f32[2,3]"}, {"f32[2,4]"}},
    {"cumsum", {"f32[2,3]"}, "axis = 1, reverse = false", {"f32[2,3]"}, {"f32[]"}},
    {"dot_general",
     {"f32[B,2,3]", "f32[B,3,5]"},
     "dimension_numbers = (((2), (1)), ((0), (0)))",
     {"f32[B,2,5]"},
     {"f32[B,5,2]"}},
    {"dynamic_slice",
     {"f32[4,3]", "i32[]", "i32[]"},
     "slice_sizes = (2, 3)",
     {"f32[2,3]"},
     {"f32[3,3]"}},
    {"dynamic_update_slice", {"f32[4]", "f32[2]", "i32[]"}, "", {"f32[4]"}, {"f32[2]"}},
    {"expand_dims", {"f32[2,3]"}, "dimensions = (0, 2)", {"f32[1,2,1,3]"}, {"f32[1,1,2,3]"}},
    {"fft", {"f32[2,8]"}, "fft_lengths = (8), fft_type = #rfft", {"c64[2,5]"}, {"c64[2,8]"}},
    {"gather", {"f32[7,3]", "i32[5,1]"}, kGather, {"f32[5,3]"}, {"f32[3,5]"}},
    {"iota", {}, "dimension = 0, dtype = i32, shape = (4)", {"i32[4]"}, {"f32[4]"}},
    {"pad", {"f32[4]", "f32[]"}, "padding_config = ((1, -2, 1))", {"f32[6]"}, {"f32[7]"}},
    {"reduce", {"f32[2,3]", "f32[]"}, "dimensions = (0), " + kAdd, {"f32[3]"}, {"f32[2]"}},
    {"reduce_and", {"bool[2,3]"}, "axes = (0)", {"bool[3]"}, {"bool[2]"}},
    {"reduce_max", {"f32[2,3]"}, "axes = (0)", {"f32[3]"}, {"f32[1,3]"}},
    {"reduce_min", {"f32[2,3]"}, "axes = (0, 1)", {"f32[]"}, {"f32[1]"}},
    {"reduce_or", {"bool[2,3]"}, "axes = ()", {"bool[2,3]"}, {"bool[]"}},
    {"reduce_prod", {"f32[2,3]"}, "axes = (0)", {"f32[3]"}, {"f64[3]"}},
    {"reduce_sum", {"f32[2,B]"}, "axes = (0)", {"f32[B]"}, {"f32[B + 1]"}},
    {"reduce_window", {"f32[4,5]", "f32[]"}, kWindow + ", " + kAdd, {"f32[2,5]"}, {"f32[2,4]"}},
    {"reduce_window_max", {"f32[4,5]"}, kWindow, {"f32[2,5]"}, {"f32[4,5]"}},
    {"reduce_window_min", {"f32[4,B]"}, kWindow, {"f32[2,B]"}, {"f32[2,B + 1]"}},
    {"reduce_window_sum", {"f32[4,2]"}, kWindow, {"f32[2,2]"}, {"f32[1,2]"}},
    {"reduce_xor", {"i32[2,3]"}, "axes = (0)", {"i32[3]"}, {"i32[2]"}},
    {"reshape",
     {"f32[B,6]"},
     "dimensions = none, new_sizes = (B, 2, 3)",
     {"f32[B,2,3]"},
     {"f32[B,6]"}},
    {"rev", {"f32[2,3]"}, "dimensions = (0)", {"f32[2,3]"}, {"f32[3,2]"}},
    {"scatter", {"f32[7,3]", "i32[5,1]", "f32[5,3]"}, kScatter, {"f32[7,3]"}, {"f32[5,3]"}},
    {"scatter-add", {"f32[7,3]", "i32[5,1]", "f32[5,2]"}, kScatter, {"f32[7,3]"}, {"f32[7,2]"}},
    {"scatter-max", {"f32[7,3]", "i32[5,1]", "f32[5,3]"}, kScatter, {"f32[7,3]"}, {"i32[7,3]"}},
    {"scatter-min", {"f32[7,3]", "i32[5,1]", "f32[5,3]"}, kScatter, {"f32[7,3]"}, {"f32[3]"}},
    {"scatter-mul", {"f32[7,3]", "i32[5,1]", "f32[5,3]"}, kScatter, {"f32[7,3]"}, {"f32[]"}},
    {"scatter-sub", {"f32[7,3]", "i32[5,1]", "f32[5,3]"}, kScatter, {"f32[7,3]"}, {"f32[8,3]"}},
    {"select_and_scatter_add", {"f32[2,5]", "f32[4,5]"}, kWindow, {"f32[4,5]"}, {"f32[2,5]"}},
    {"slice",
     {"f32[7,B]"},
     "limit_indices = (7, B), start_indices = (1, 0), strides = (2, 1)",
     {"f32[3,B]"},
     {"f32[4,B]"}},
    {"sort",
     {"f32[2,3]", "i32[2,3]"},
     "dimension = 1, num_keys = 1",
     {"f32[2,3]", "i32[2,3]"},
     {"i32[2,3]", "f32[2,3]"}},
    {"split", {"f32[5]"}, "axis = 0, sizes = (2, 3)", {"f32[2]", "f32[3]"}, {"f32[3]", "f32[2]"}},
    {"squeeze", {"f32[1,3]"}, "dimensions = (0)", {"f32[3]"}, {"f32[1,3]"}},
    {"stack", {"f32[3]", "f32[3]"}, "axis = 1", {"f32[3,2]"}, {"f32[2,3]"}},
    {"tile", {"f32[2,B]"}, "reps = (3, 2)", {"f32[6,2*B]"}, {"f32[6,B]"}},
    {"top_k", {"f32[2,9]"}, "axis = 1, k = 4", {"f32[2,4]", "i32[2,4]"}, {"f32[2,4]", "i32[2,9]"}},
    {"transpose", {"f32[2,B,3]"}, "permutation = (2, 0, 1)", {"f32[3,2,B]"}, {"f32[2,B,3]"}},
    {"unstack", {"f32[2,3]"}, "axis = 0", {"f32[3]", "f32[3]"}, {"f32[3]", "f32[2]"}},
};

std::set<std::string_view> primitives_of(std::span<const InferenceRow> rows) {
  std::set<std::string_view> names;
  for (const InferenceRow& row : rows) names.insert(row.primitive);
  return names;
}

TEST(Infer, every_sample_fits_and_another_result_does_not) {
  for (const Sample& s : kSamples) {
    EXPECT_EQ(verdict(s.primitive, s.operands, s.params, s.results), "fits") << s.primitive;
    const std::string wrong = verdict(s.primitive, s.operands, s.params, s.wrong);
    EXPECT_TRUE(wrong.starts_with("E032: primitive '" + s.primitive)) << wrong;
  }
}

TEST(Infer, every_primitive_of_the_tables_has_a_sample) {
  std::set<std::string_view> known;
  for (const auto& rows : {index_types(), reduce_types(), shape_types(), window_types()}) {
    known.merge(primitives_of(rows));
  }
  std::set<std::string_view> sampled;
  for (const Sample& sample : kSamples) sampled.insert(sample.primitive);
  EXPECT_EQ(known, sampled);
}

// Some number of operands of some dtype fits each of them; another shape of the result never does.
TEST(Infer, elementwise_primitives_keep_the_shape) {
  for (const std::string_view name : primitives_of(pointwise_types())) {
    const std::string primitive(name);
    bool fits = false;
    for (std::size_t operands = 1; operands <= 3; ++operands) {
      for (const char* dtype : {"f32", "bool", "c64"}) {
        const Words in(operands, "f32[B,3]");
        fits |= verdict(primitive, in, "", {std::string(dtype) + "[B,3]"}) == "fits";
        for (const char* shape : {"[B,4]", "[B]", "[]", "[B,3,1]", "[B + 1,3]"}) {
          EXPECT_NE(verdict(primitive, in, "", {dtype + std::string(shape)}), "fits") << primitive;
        }
      }
    }
    EXPECT_TRUE(fits || primitive == "select_n") << primitive;
  }
  EXPECT_EQ(verdict("select_n", {"bool[]", "f32[3]", "f32[3]"}, "", {"f32[3]"}), "fits");
}

TEST(Infer, elementwise_operands_fit_each_other) {
  EXPECT_EQ(verdict("add", {"f32[B,3]", "f32[]"}, "", {"f32[B,3]"}), "fits");
  EXPECT_EQ(verdict("add", {"f32[1,3]", "f32[B,1]"}, "", {"f32[B,3]"}), "fits");
  EXPECT_EQ(verdict("add", {"f32[floordiv(mod(T, 2) + T, 2)]", "f32[floordiv(T + 1, 2)]"}, "",
                    {"f32[floordiv(T + 1, 2)]"}),
            "fits");
  EXPECT_EQ(verdict("add", {"f32[max(B, T)]", "f32[T]"}, "", {"f32[T]"}),
            "E032: primitive 'add': sizes max(B, T) and T of one dim differ");
  EXPECT_EQ(verdict("add", {"f32[B]", "f32[T]"}, "", {"f32[B]"}),
            "E032: primitive 'add': sizes B and T of one dim differ");
  EXPECT_EQ(verdict("add", {"f32[B - 1]", "f32[5]"}, "", {"f32[5]"}),
            "E032: primitive 'add': sizes B - 1 and 5 of one dim differ");
  EXPECT_EQ(verdict("add", {"f32[3]", "f32[4]"}, "", {"f32[3]"}),
            "E032: primitive 'add': sizes 3 and 4 of one dim differ");
  EXPECT_EQ(verdict("add", {"f32[3]", "f32[1,3]"}, "", {"f32[1,3]"}),
            "E032: primitive 'add': the ranks of the operands differ");
  EXPECT_EQ(verdict("add", {"f32[3]", "i32[3]"}, "", {"f32[3]"}),
            "E032: primitive 'add': operands of dtypes f32 and i32 do not fit");
  EXPECT_EQ(verdict("pow", {"f32[3]", "i32[]"}, "", {"f32[3]"}), "fits");
  EXPECT_EQ(verdict("mul", {"bf16[3]", "bf16[3]"}, "out_dtype = f32", {"f32[3]"}), "fits");
  EXPECT_EQ(verdict("select_n", {"f32[]", "f32[3]", "f32[3]"}, "", {"f32[3]"}),
            "E032: primitive 'select_n': the first operand has to be bool or i32");
}

TEST(Infer, parameters_fit_the_operands) {
  const std::string dot = "dimension_numbers = (((1), (0)), ((), ()))";
  EXPECT_EQ(verdict("dot_general", {"f32[2,3]", "f32[4,5]"}, dot, {"f32[2,5]"}),
            "E032: primitive 'dot_general': sizes 3 and 4 of one dim differ");
  EXPECT_EQ(verdict("reshape", {"f32[2,3]"}, "", {"f32[2,4]"}),
            "E032: primitive 'reshape': the numbers of elements differ");
  EXPECT_EQ(verdict("reshape", {"f32[B,B,6]"}, "", {"f32[B,6]"}), "fits");
  EXPECT_EQ(verdict("transpose", {"f32[2,3]"}, "permutation = (0, 2)", {"f32[2,3]"}),
            "E032: primitive 'transpose': axis 2 is out of range");
  EXPECT_EQ(verdict("transpose", {"f32[2,3]"}, "permutation = (0, 0)", {"f32[2,3]"}),
            "E032: primitive 'transpose': axis 0 appears twice");
  EXPECT_EQ(verdict("top_k", {"f32[3]"}, "axis = 0, k = 4", {"f32[4]", "i32[4]"}),
            "E032: primitive 'top_k': 'k' is not a number of elements of the axis");
  EXPECT_EQ(verdict("slice", {"f32[3]"}, "limit_indices = (4), start_indices = (0)", {"f32[4]"}),
            "E032: primitive 'slice': a range leaves its dim");
  EXPECT_EQ(verdict("reduce_sum", {"f32[3]"}, "", {"f32[]"}),
            "E031: primitive 'reduce_sum' has no parameter 'axes'");
}

TEST(Infer, primitives_that_nobody_knows_pass) {
  EXPECT_EQ(verdict("route", {"f32[3]"}, "", {"i32[9,9]"}), "fits");
}

TEST(Infer, equations_of_bodies_are_checked) {
  EXPECT_EQ(verdict("jit", {"f32[3]"}, "jaxpr = { (%a: f32[3]) %b: f32[4] = exp %a return %b }",
                    {"f32[4]"}),
            "E032: primitive 'exp': the result is declared as f32[4], but is f32[3]");
}

}  // namespace
}  // namespace jaxport::front
