// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "jaxport/error.h"
#include "lower/layout/layout.h"
#include "lower/rows/ctx.h"
#include "lower/rows/shape_values.h"
#include "onnx/builder.h"

namespace jaxport::lower {
namespace {

AxisPiece whole_axis(int axis, std::int64_t size) { return {axis, 1, size}; }

std::string kinds(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) text += step.perm.empty() ? 'R' : 'T';
  return text;
}

std::string kinds(const Layout& from, const Layout& to) {
  auto steps = conversion(from, to);
  return steps ? kinds(*steps) : "none";
}

TEST(Layout, an_equal_layout_costs_nothing) {
  const Layout layout{{whole_axis(0, 2)}, {whole_axis(1, 3)}};
  EXPECT_EQ(kinds(layout, layout), "");
}

TEST(Layout, regrouping_is_one_reshape) {
  const Layout apart{{whole_axis(0, 2)}, {whole_axis(1, 3)}},
      together{{whole_axis(0, 2), whole_axis(1, 3)}};
  EXPECT_EQ(kinds(apart, together), "R");
  EXPECT_EQ(kinds(together, apart), "R");
}

TEST(Layout, reordering_is_one_transpose) {
  const Layout a{{whole_axis(0, 2)}, {whole_axis(1, 3)}, {whole_axis(2, 5)}};
  const Layout b{{whole_axis(2, 5)}, {whole_axis(0, 2)}, {whole_axis(1, 3)}};
  EXPECT_EQ(kinds(a, b), "T");
}

TEST(Layout, heads_out_of_a_merged_dim_need_a_reshape_first) {
  const Layout merged_heads{{whole_axis(0, 7)}, {whole_axis(1, 4), whole_axis(2, 8)}};
  const Layout heads_first{{whole_axis(1, 4)}, {whole_axis(0, 7)}, {whole_axis(2, 8)}};
  EXPECT_EQ(kinds(merged_heads, heads_first), "RT");
  EXPECT_EQ(kinds(heads_first, merged_heads), "TR");
}

TEST(Layout, a_unit_dim_travels_with_the_transpose) {
  const Layout from{{}, {whole_axis(0, 3)}, {whole_axis(1, 5)}},
      to{{whole_axis(1, 5)}, {}, {whole_axis(0, 3)}};
  EXPECT_EQ(kinds(from, to), "T");
}

TEST(Layout, an_axis_is_split_by_pieces) {
  const AxisPiece outer{0, 4, 3}, inner{0, 1, 4};
  EXPECT_EQ(kinds({{whole_axis(0, 12)}}, {{outer}, {inner}}), "R");
  EXPECT_EQ(kinds({{whole_axis(0, 12)}}, {{inner}, {outer}}), "RT");
}

TEST(Layout, different_pieces_have_no_conversion) {
  EXPECT_EQ(kinds({{whole_axis(0, 12)}}, {{whole_axis(1, 12)}}), "none");
}

TEST(Layout, symbolic_axes_split_where_they_divide) {
  DimScope scope;
  const Dim b = scope.symbol("B");
  const AxisPiece both{0, 1, b * 4}, outer{0, 4, b}, inner{0, 1, 4};
  EXPECT_EQ(kinds({{both}}, {{inner}, {outer}}), "RT");
  const AxisPiece odd{0, 3, b}, three{0, 1, 3};
  EXPECT_EQ(kinds({{both}}, {{odd}, {three}}), "none");
}

// Applies steps to the flat index sequence of a small array and compares with the target's own
// enumeration.
class Movement {
 public:
  explicit Movement(std::vector<std::int64_t> axis_sizes) : axis_sizes_(std::move(axis_sizes)) {}

  // For each position of the layout, row-major, the index of the element in the value's axes.
  std::vector<std::int64_t> enumerate(const Layout& layout) const {
    std::vector<std::int64_t> result{0};
    for (const PhysicalDim& dim : layout) {
      for (const AxisPiece& piece : dim) {
        std::vector<std::int64_t> next;
        for (std::int64_t base : result) {
          for (std::int64_t i = 0; i < piece.size.value(); ++i) {
            next.push_back(base + i * piece.stride.value() * axis_stride(piece.axis));
          }
        }
        result = std::move(next);
      }
    }
    return result;
  }

 private:
  std::int64_t axis_stride(std::int32_t axis) const {
    return std::accumulate(axis_sizes_.begin() + axis + 1, axis_sizes_.end(), std::int64_t{1},
                           std::multiplies<>());
  }
  std::vector<std::int64_t> axis_sizes_;
};

std::vector<std::int64_t> transposed(const std::vector<std::int64_t>& data, const Dims& shape,
                                     const std::vector<std::int64_t>& perm) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i].value();
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t from : perm) {
    std::vector<std::int64_t> next;
    for (std::int64_t base : offsets) {
      for (std::int64_t i = 0; i < shape[static_cast<std::size_t>(from)].value(); ++i) {
        next.push_back(base + i * strides[static_cast<std::size_t>(from)]);
      }
    }
    offsets = std::move(next);
  }
  std::vector<std::int64_t> result;
  result.reserve(offsets.size());
  for (std::int64_t offset : offsets) result.push_back(data[static_cast<std::size_t>(offset)]);
  return result;
}

TEST(Layout, every_conversion_moves_the_elements_where_the_target_has_them) {
  std::mt19937 random(7);
  const Movement value({12, 6, 5});
  const AxisPieces fine{{0, 6, 2}, {0, 2, 3}, {0, 1, 2}, {1, 3, 2}, {1, 1, 3}, {2, 1, 5}};
  auto random_layout = [&] {
    auto pieces = fine;
    std::shuffle(pieces.begin(), pieces.end(), random);
    Layout layout(1);
    for (const AxisPiece& piece : pieces) {
      if (random() % 2 == 0) layout.emplace_back();
      layout.back().push_back(piece);
    }
    return merged(layout);
  };
  for (int i = 0; i < 500; ++i) {
    const Layout from = random_layout(), to = random_layout();
    auto steps = conversion(from, to);
    ASSERT_TRUE(steps);
    auto data = value.enumerate(from);
    Dims shape = sizes_of(from);
    for (const Step& step : *steps) {
      if (!step.perm.empty()) data = transposed(data, shape, step.perm);
      shape = sizes_of(step.after);
      EXPECT_EQ(data, value.enumerate(step.after));
    }
    EXPECT_EQ(data, value.enumerate(to));
    if (!steps->empty()) {
      EXPECT_EQ(sizes_of(steps->back().after), sizes_of(to));
    }
  }
}

class ShapeValuesTest : public testing::Test {
 protected:
  ShapeValuesTest() : builder_(model_, 23), shapes_(builder_) {
    batch_ = model_.dims->symbol("B");
    time_ = model_.dims->symbol("T");
  }
  void add_input(const Dims& shape) {
    shapes_.add_input(builder_.input("x", {DType::kF32, shape}), shape);
  }
  std::string ops() const {
    std::string text;
    for (const auto& node : model_.graph.nodes) text += node.op + " ";
    return text;
  }
  onnx::Model model_;
  onnx::Builder builder_;
  ShapeValues shapes_;
  Dim batch_, time_;
};

TEST_F(ShapeValuesTest, a_static_shape_is_a_constant) {
  add_input({batch_, 4});
  shapes_.shape({2, 3});
  EXPECT_EQ(ops(), "");
}

TEST_F(ShapeValuesTest, an_expression_is_computed_once) {
  add_input({batch_, time_});
  shapes_.dim(batch_ * time_ + 1);
  const std::string once = ops();
  shapes_.dim(batch_ * time_ + 1);
  EXPECT_EQ(ops(), once);
  EXPECT_EQ(once, "Shape Shape Mul Add ");
}

TEST_F(ShapeValuesTest, a_symbol_is_solved_from_a_linear_size) {
  add_input({batch_, time_ * 2 + 1});
  shapes_.dim(time_);
  EXPECT_EQ(ops(), "Shape Sub Div ");
}

TEST_F(ShapeValuesTest, a_symbol_that_no_input_has_is_an_error) {
  add_input({batch_, 4});
  try {
    shapes_.dim(time_);
    FAIL() << "expected E021";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "E021");
  }
}

TEST_F(ShapeValuesTest, a_reshape_copies_equal_dims_and_infers_one) {
  add_input({batch_, time_, 6});
  const Value x(&builder_, 0);
  const Value y = shapes_.reshape(x, {batch_, time_ * 2, 3});
  EXPECT_EQ(ops(), "Reshape ");
  EXPECT_EQ(y.shape(), (Dims{batch_, time_ * 2, 3}));
}

TEST(Table, newer_rows_need_their_opset) {
  EXPECT_EQ(find_row("gelu_tanh", 19), nullptr);
  EXPECT_NE(find_row("gelu_tanh", 20), nullptr);
  EXPECT_NE(find_row("tanh", 17), nullptr);
  EXPECT_EQ(find_row("no_such_primitive", 23), nullptr);
}

}  // namespace
}  // namespace jaxport::lower
