// SPDX-License-Identifier: Apache-2.0
#include "front/params.h"

#include <gtest/gtest.h>

#include <functional>

#include "front/text.h"
#include "jaxport/error.h"

namespace jaxport::front {
namespace {

std::string code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return "no error";
}

TEST(Params, are_read_by_type) {
  Eqn eqn{.primitive = "p",
          .in = {},
          .out = {},
          .attrs = {{"b", {true}},
                    {"d", {0.5}},
                    {"e", {Enum{"clip"}}},
                    {"i", 3},
                    {"l", List{1, Dim(2)}},
                    {"r", Region(std::make_shared<Function>())},
                    {"t", {DType::kF16}}}};
  EXPECT_TRUE(get_bool(eqn, "b"));
  EXPECT_EQ(get_double(eqn, "d"), 0.5);
  EXPECT_EQ(get_double(eqn, "i"), 3.0);
  EXPECT_EQ(get_string(eqn, "e"), "clip");
  EXPECT_EQ(get_int(eqn, "i"), 3);
  EXPECT_EQ(get_ints(eqn, "l"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(get_dims(eqn, "l"), (Dims{1, 2}));
  EXPECT_EQ(get_dtype(eqn, "t"), DType::kF16);
  EXPECT_TRUE(get_region(eqn, "r")->eqns.empty());
  EXPECT_EQ(code_of([&] { get_int(eqn, "missing"); }), "E031");
  EXPECT_EQ(code_of([&] { get_int(eqn, "b"); }), "E031");
  EXPECT_EQ(code_of([&] { get_ints(eqn, "i"); }), "E031");
  EXPECT_EQ(code_of([&] { get_region(eqn, "l"); }), "E031");
}

Eqn equation(const std::string& text) {
  return parse("func @f() {\n" + text + "\nreturn\n}", "t").functions[0].eqns[0];
}

TEST(Params, of_a_convolution) {
  const std::string params =
      "batch_group_count = 1, dimension_numbers = ConvDimensionNumbers{lhs_spec = (0, 2, 1), "
      "rhs_spec = (2, 1, 0), out_spec = (0, 2, 1)}, feature_group_count = 2, lhs_dilation = none, "
      "padding = ((1, 2)), rhs_dilation = (3)";
  const auto conv =
      ConvParams::read(equation("%y: f32[] = conv {" + params + ", window_strides = (2)}"));
  EXPECT_EQ(conv.rhs, (Ints{2, 1, 0}));
  EXPECT_EQ(conv.stride, Ints{2});
  EXPECT_EQ(conv.rhs_dilation, Ints{3});
  EXPECT_EQ(conv.padding[0].high, Dim(2));
  EXPECT_EQ(conv.padding[0].interior, 0);
  EXPECT_EQ(conv.feature_groups, Dim(2));
  for (const std::string bad : {"window_strides = (2, 2)", "window_strides = (0)",
                                "window_strides = 2", "window_strides = (0.5)"}) {
    const Eqn eqn = equation("%y: f32[] = conv {" + params + ", " + bad + "}");
    EXPECT_EQ(code_of([&] { ConvParams::read(eqn); }), "E031") << bad;
  }
}

TEST(Params, are_written_as_they_are_read) {
  const GatherParams gather{{{1}, {0}, {0}, {}, {}, "clip"}, {1, 4}, 7};
  const GatherParams again = GatherParams::read({"gather", {}, {}, gather.attrs()});
  EXPECT_EQ(again.window_dims, gather.window_dims);
  EXPECT_EQ(again.map, gather.map);
  EXPECT_EQ(again.mode, "clip");
  EXPECT_EQ(again.slice_sizes, gather.slice_sizes);
  EXPECT_EQ(again.fill(DType::kI32).int_at(0), 7);
  const PadParams pad{{{1, -2, 3}}};
  EXPECT_EQ(PadParams::read({"pad", {}, {}, pad.attrs()}).config[0].interior, 3);
  const DotParams dot{{2}, {1}, {0}, {0}};
  EXPECT_EQ(DotParams::read({"dot_general", {}, {}, dot.attrs()}).lhs_contract, Ints{2});
}

TEST(Params, set_keeps_the_order) {
  Attrs attrs{{"a", 1}, {"c", 2}};
  set(attrs, "b", true);
  set(attrs, "c", "new");
  EXPECT_EQ(attrs[1].first, "b");
  EXPECT_EQ(find(attrs, "c")->get_if<std::string>()->size(), 3u);
}

TEST(Params, calls_have_a_function) {
  for (const auto& [primitive, region] : calls()) {
    const Eqn eqn = equation("%y: f32[] = " + std::string(primitive));
    EXPECT_EQ(code_of([&, name = region] { get_region(eqn, name); }), "E031") << primitive;
  }
  EXPECT_EQ(find_call("scan"), nullptr);
}

}  // namespace
}  // namespace jaxport::front
