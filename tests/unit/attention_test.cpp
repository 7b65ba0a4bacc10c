// SPDX-License-Identifier: Apache-2.0
// Masks and biases of attention at hostile values: rows that are masked everywhere, NaN and
// infinities in masked places, factors that are zero or negative.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "eval/eval.h"
#include "front/text.h"
#include "raise/engine/ops.h"
#include "raise/engine/raise.h"

namespace jaxport::raise {
namespace {

constexpr int kRows = 8, kKeys = 4, kRandomPrograms = 1000;
// Scores that -16384 is added to are rounded to 1e-3.
constexpr double kTolerance = 4e-3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What is done to the scores %qk on their way to %score.
struct Spelling {
  const char* name;
  const char* body;
};

// The constants and masks that a body may use.
std::string program(const std::string& body) {
  const std::string shape = " {broadcast_dimensions = (), shape = (8, 4)}\n";
  std::string text =
      "func @f(%q: f32[8,3], %k: f32[4,3], %v: f32[4,5], %m: bool[8,4], %n: bool[8,4], "
      "%b: f32[8,4], %t: f32[8,1]) {\n"
      "  %qk: f32[8,4] = dot_general %q %k {dimension_numbers = (((1), (1)), ((), ()))}\n"
      "  %row: i32[8,4] = iota {dimension = 0, dtype = i32, shape = (8, 4), sharding = none}\n"
      "  %col: i32[8,4] = iota {dimension = 1, dtype = i32, shape = (8, 4), sharding = none}\n"
      "  %c: bool[8,4] = ge %row %col\n"
      "  %half: f32[] = constant 0.5\n";
  constexpr std::pair<const char*, const char*> kNumbers[] = {
      {"zero", "0.0"},  {"e4", "-16384.0"},        {"e9", "-1e9"},
      {"e30", "-1e30"}, {"low", "-3.4028235e+38"}, {"inf", "-inf"}};
  for (const auto& [name, value] : kNumbers) {
    const std::string id = std::string("%") + name;
    text += "  " + id + "_: f32[] = constant " + value + "\n";
    text += "  " + id + ": f32[8,4] = broadcast_in_dim " + id + "_" + shape;
    for (const char* mask : {"m", "n", "c"}) {  // 0 where the mask holds
      text += "  " + id + mask + ": f32[8,4] = select_n %" + mask + " " + id + " %zero\n";
    }
  }
  return text + body +
         "  %max: f32[8] = reduce_max %score {axes = (1)}\n"
         "  %top: f32[8,1] = broadcast_in_dim %max {broadcast_dimensions = (0), shape = (8, 1)}\n"
         "  %dif: f32[8,4] = sub %score %top\n"
         "  %exp: f32[8,4] = exp %dif\n"
         "  %sum: f32[8] = reduce_sum %exp {axes = (1)}\n"
         "  %all: f32[8,1] = broadcast_in_dim %sum {broadcast_dimensions = (0), shape = (8, 1)}\n"
         "  %p: f32[8,4] = div %exp %all\n"
         "  %out: f32[8,5] = dot_general %p %v {dimension_numbers = (((1), (0)), ((), ()))}\n"
         "  return %out\n}\n";
}

template <typename Value>
Tensor tensor(DType dtype, Shape shape, Value value) {
  MutableTensor wide = allocate(DType::kF64, std::move(shape));
  for (std::int64_t i = 0; i < wide.tensor.size(); ++i) wide.as<double>()[i] = value(i);
  return eval::cast(wide.tensor, dtype);
}

// Row r of the masks: bit 0 and 1 say whether the first and the second mask hide all of it, bit 2
// whether they hide one half each.
bool keeps(std::int64_t row, std::int64_t key, int mask) {
  if ((row & 4) != 0) return (key < kKeys / 2) == (mask == 0) && ((row >> mask) & 1) == 0;
  return ((row >> mask) & 1) == 0 && (row * 7 + key * 5 + mask) % 3 != 0;
}

// `hidden` is the bias where the first mask is false.
std::vector<Tensor> inputs(double hidden) {
  std::mt19937 engine(3);
  std::normal_distribution<double> normal(0, 0.7);
  const auto random = [&](std::int64_t) { return normal(engine); };
  const auto mask = [](int which) {
    return [which](std::int64_t i) { return keeps(i / kKeys, i % kKeys, which) ? 1.0 : 0.0; };
  };
  const auto bias = [&](std::int64_t i) {
    return keeps(i / kKeys, i % kKeys, 0) ? normal(engine) : hidden;
  };
  const auto factor = [](std::int64_t i) { return static_cast<double>(i % 4) - 1; };
  return {
      tensor(DType::kF32, {kRows, 3}, random),       tensor(DType::kF32, {kKeys, 3}, random),
      tensor(DType::kF32, {kKeys, 5}, random),       tensor(DType::kBool, {kRows, kKeys}, mask(0)),
      tensor(DType::kBool, {kRows, kKeys}, mask(1)), tensor(DType::kF32, {kRows, kKeys}, bias),
      tensor(DType::kF32, {kRows, 1}, factor)};
}

class Masks : public testing::TestWithParam<Spelling> {};

bool has_attention(const axis::Program& program) {
  return std::ranges::any_of(axis::topological(program),
                             [](const axis::Node* node) { return is<AttentionOp>(*node); });
}

// At several values of the bias where it is masked. True when the program is raised.
bool expect_same_values(const std::string& body, double low = -1e9) {
  const front::Module module = front::parse(program(body), "test.jir");
  const front::Function& function = module.functions.front();
  axis::Program raised = axis::build(module, function);
  raise(raised, {});
  axis::verify(raised);
  for (double hidden : {0.5, low, -kInfinity, kInfinity, std::nan("")}) {
    SCOPED_TRACE(hidden);
    const std::vector<Tensor> values = inputs(hidden);
    const Tensor got = axis::evaluate(raised, values, expand)[0];
    const Tensor want = eval::run(function, values)[0];
    for (std::int64_t i = 0; i < want.size(); ++i) {
      if (std::isnan(want.at(i))) {
        EXPECT_TRUE(std::isnan(got.at(i))) << "row " << i / 5;
      } else {
        EXPECT_NEAR(got.at(i), want.at(i), kTolerance) << "row " << i / 5;
      }
    }
  }
  return has_attention(raised);
}

TEST_P(Masks, keep_the_values_of_every_row) { expect_same_values(GetParam().body); }

constexpr Spelling kSpellings[] = {
    {"factor_of_a_bias", "%s: f32[8,4] = add %qk %b\n %score: f32[8,4] = mul %s %t\n"},
    {"factor_of_a_difference", "%s: f32[8,4] = sub %b %qk\n %score: f32[8,4] = mul %s %t\n"},
    {"divisor_of_a_bias", "%s: f32[8,4] = add %qk %b\n %score: f32[8,4] = div %s %t\n"},
    {"factor_of_a_shift",
     "%l: f32[8,4] = add %qk %e4\n %s: f32[8,4] = select_n %m %l %qk\n"
     "%score: f32[8,4] = mul %s %t\n"},
    {"factor_of_a_mask", "%s: f32[8,4] = select_n %m %e9 %qk\n %score: f32[8,4] = mul %s %t\n"},
    {"factor_of_minus_infinity",
     "%s: f32[8,4] = select_n %m %inf %qk\n %score: f32[8,4] = mul %s %t\n"},
    {"negative_mask", "%s: f32[8,4] = select_n %m %e9 %qk\n %score: f32[8,4] = neg %s\n"},
    {"bias_in_a_mask", "%s: f32[8,4] = add %qk %b\n %score: f32[8,4] = select_n %n %low %s\n"},
    {"bias_in_minus_infinity",
     "%s: f32[8,4] = add %qk %b\n %score: f32[8,4] = select_n %n %inf %s\n"},
    {"bias_in_its_own_mask",
     "%s: f32[8,4] = add %qk %b\n %score: f32[8,4] = select_n %m %low %s\n"},
    {"bias_in_a_small_mask", "%s: f32[8,4] = add %qk %b\n %score: f32[8,4] = select_n %n %e9 %s\n"},
    {"bias_on_a_mask", "%s: f32[8,4] = select_n %n %low %qk\n %score: f32[8,4] = add %s %b\n"},
    {"bias_on_a_small_mask", "%s: f32[8,4] = select_n %n %e4 %qk\n %score: f32[8,4] = add %s %b\n"},
    {"bias_on_minus_infinity",
     "%s: f32[8,4] = select_n %n %inf %qk\n %score: f32[8,4] = add %s %b\n"},
    {"bias_in_a_causal_mask",
     "%s: f32[8,4] = add %qk %b\n %score: f32[8,4] = select_n %c %inf %s\n"},
    {"bias_on_a_causal_mask", "%s: f32[8,4] = add %qk %infc\n %score: f32[8,4] = add %s %b\n"},
    {"mask_in_a_lower_one",
     "%s: f32[8,4] = select_n %m %e9 %qk\n %score: f32[8,4] = select_n %n %e30 %s\n"},
    {"mask_in_a_higher_one",
     "%s: f32[8,4] = select_n %m %e30 %qk\n %score: f32[8,4] = select_n %n %e9 %s\n"},
    {"mask_in_minus_infinity",
     "%s: f32[8,4] = select_n %m %e9 %qk\n %score: f32[8,4] = select_n %n %inf %s\n"},
    {"lowest_twice", "%s: f32[8,4] = add %qk %lowm\n %score: f32[8,4] = add %s %lown\n"},
    {"e30_twice", "%s: f32[8,4] = add %qk %e30m\n %score: f32[8,4] = add %s %e30n\n"},
    {"lowest_and_infinity", "%s: f32[8,4] = add %qk %lowm\n %score: f32[8,4] = add %s %infn\n"},
    {"e9_and_infinity", "%s: f32[8,4] = add %qk %e9m\n %score: f32[8,4] = add %s %infn\n"},
    {"causal_and_infinity", "%s: f32[8,4] = add %qk %e9c\n %score: f32[8,4] = add %s %infm\n"},
    {"causal_and_lowest", "%s: f32[8,4] = add %qk %lowc\n %score: f32[8,4] = add %s %lowm\n"},
    {"added_in_a_mask", "%s: f32[8,4] = add %qk %e9m\n %score: f32[8,4] = select_n %n %e9 %s\n"},
    {"added_on_a_mask", "%s: f32[8,4] = select_n %n %e9 %qk\n %score: f32[8,4] = add %s %e9m\n"},
    {"lowest_on_a_mask", "%s: f32[8,4] = select_n %n %e9 %qk\n %score: f32[8,4] = add %s %lowm\n"},
};

INSTANTIATE_TEST_SUITE_P(, Masks, testing::ValuesIn(kSpellings),
                         [](const auto& each) { return std::string(each.param.name); });

// A few steps from %qk to %score, at random. Where signs change, large numbers that are added would
// cancel, and the order of the sum would decide what is left: then only -inf is added.
std::string random_body(std::mt19937& engine, bool has_signs) {
  const auto pick = [&](const auto& from) { return std::string(from[engine() % std::size(from)]); };
  constexpr const char* kFills[] = {"e4", "e9", "e30", "low", "inf"};
  constexpr const char* kMasks[] = {"m", "n", "c"};
  const std::size_t steps = 1 + engine() % 4;
  std::string text, from = "%qk";
  for (std::size_t i = 1; i <= steps; ++i) {
    const std::string to = i == steps ? "%score" : "%s" + std::to_string(i);
    text += "  " + to + ": f32[8,4] = ";
    switch (engine() % (has_signs ? 9 : 6)) {
      case 0:
        text += "add " + from + " %b";
        break;
      case 1:
        text += "mul " + from + " %half";
        break;
      case 2:
      case 3:
        text += "add " + from + " %" + (has_signs ? "inf" : pick(kFills)) + pick(kMasks);
        break;
      case 6:
        text += "sub " + from + " %b";
        break;
      case 7:
        text += "mul " + from + " %t";
        break;
      case 8:
        text += "neg " + from;
        break;
      default:
        text += "select_n %" + pick(kMasks) + " %" + pick(kFills) + " " + from;
        break;
    }
    text += "\n";
    from = to;
  }
  return text;
}

TEST(Attention, random_steps_keep_the_values_of_every_row) {
  std::mt19937 engine(11);
  int raised = 0;
  for (int i = 0; i < kRandomPrograms; ++i) {
    const bool has_signs = i % 2 == 0;
    const std::string body = random_body(engine, has_signs);
    raised += expect_same_values(body, has_signs ? 0.25 : -1e9) ? 1 : 0;
    if (HasFailure()) FAIL() << body;
  }
  EXPECT_GT(raised, kRandomPrograms / 3);
}

// A masked score that is not finite does not reach the result.
TEST(Attention, masks_replace_scores_that_are_no_numbers) {
  const front::Module module =
      front::parse(program("  %score: f32[8,4] = select_n %m %inf %qk\n"), "test.jir");
  axis::Program raised = axis::build(module, module.functions.front());
  raise(raised, {});
  for (double value : {kInfinity, std::nan("")}) {
    std::vector<Tensor> values = inputs(0);
    values[1] =
        tensor(DType::kF32, {kKeys, 3}, [&](std::int64_t i) { return i < 3 ? value : 1.0; });
    const Tensor got = axis::evaluate(raised, values, expand)[0];
    const Tensor want = eval::run(module.functions.front(), values)[0];
    for (std::int64_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(std::isnan(got.at(i)), std::isnan(want.at(i))) << "row " << i / 5;
    }
  }
}

}  // namespace
}  // namespace jaxport::raise
