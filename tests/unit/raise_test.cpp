// SPDX-License-Identifier: Apache-2.0
#include "raise/engine/raise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "eval/eval.h"
#include "front/text.h"
#include "golden.h"
#include "jaxport/error.h"
#include "raise/engine/ops.h"

namespace jaxport::raise {
namespace {

std::string with_dtype(std::string_view text, std::string_view dtype) {
  std::string result(text);
  for (std::size_t at = 0; (at = result.find("f32", at)) != std::string::npos;) {
    result.replace(at, 3, dtype);
    at += dtype.size();
  }
  return result;
}

Options without(std::string_view rule) {
  Options options;
  options.without.emplace_back(rule);
  return options;
}

Options only(std::string_view rule) {
  Options options;
  for (const Rule& other : all_rules()) {
    if (other.name != rule) options.without.emplace_back(other.name);
  }
  return options;
}

struct Raised {
  axis::Program program;
  std::vector<Remark> remarks;
};
Raised raised(const front::Module& module, const front::Function& function,
              const Options& options = {}) {
  Raised result{axis::build(module, function), {}};
  result.remarks = raise(result.program, options);
  axis::verify(result.program);
  return result;
}
Raised raised(std::string_view text, const Options& options = {}) {
  const front::Module module = front::parse(text, "test.jir");
  return raised(module, module.functions.front(), options);
}

std::vector<std::string> raised_names(const axis::Program& program) {
  std::vector<std::string> names;
  for (const axis::Node* node : axis::topological(program)) {
    if (is_raised(*node)) names.emplace_back(node->name);
  }
  return names;
}

const axis::Node* find_node(const axis::Program& program, std::string_view name) {
  for (const axis::Node* node : axis::topological(program)) {
    if (node->name == name) return node;
  }
  return nullptr;
}

// --- values

Tensor random_tensor(const front::Type& type, const DimBindings& sizes, std::mt19937& engine) {
  Shape shape;
  for (const Dim& dim : type.shape) shape.push_back(evaluate(dim, sizes));
  MutableTensor wide = allocate(DType::kF64, shape);
  std::normal_distribution<double> normal(0.5, 2);
  for (std::int64_t i = 0; i < wide.tensor.size(); ++i) wide.as<double>()[i] = normal(engine);
  return eval::cast(wide.tensor, type.dtype);
}

std::vector<Tensor> random_inputs(const front::Function& function, std::int64_t batch) {
  std::mt19937 engine(7);
  const DimBindings sizes{{"B", batch}, {"T", batch + 2}};
  std::vector<Tensor> inputs;
  for (front::ValueId id : function.params) {
    inputs.push_back(random_tensor(function.type(id), sizes, engine));
  }
  return inputs;
}

// The unit is one rounding of the largest value: the raised form may associate differently.
void expect_near(const std::vector<Tensor>& got, const std::vector<Tensor>& want, double ulps) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].dtype, want[k].dtype);
    ASSERT_EQ(got[k].shape, want[k].shape);
    double largest = 1;
    for (std::int64_t i = 0; i < want[k].size(); ++i) {
      largest = std::max(largest, std::abs(want[k].at(i)));
    }
    const double tolerance = ulps * std::ldexp(largest, -mantissa_bits(want[k].dtype));
    for (std::int64_t i = 0; i < want[k].size(); ++i) {
      if (std::isnan(got[k].at(i)) && std::isnan(want[k].at(i))) continue;
      ASSERT_NEAR(got[k].at(i), want[k].at(i), tolerance) << "element " << i;
    }
  }
}

// Raised and not raised give the same values, at several sizes of the symbolic dims.
void expect_same_values(const front::Module& module, const front::Function& function) {
  const Raised result = raised(module, function);
  for (std::int64_t batch : {1, 2, 5}) {
    SCOPED_TRACE(testing::Message() << function.name << " at B = " << batch);
    const std::vector<Tensor> inputs = random_inputs(function, batch);
    expect_near(axis::evaluate(result.program, inputs, expand), eval::run(function, inputs), 16);
  }
}

// --- every rule

class EachRule : public testing::TestWithParam<Rule> {
 protected:
  const Rule& rule = GetParam();
  const golden::RuleSamples samples = golden::samples_of(rule.name);
};

std::string head(std::string_view function) {
  return std::string(function.substr(0, function.find('(')));
}

TEST_P(EachRule, has_a_sample_and_a_near_miss) {
  EXPECT_EQ(head(samples.sample), "func @" + std::string(rule.name));
  EXPECT_FALSE(samples.near_misses.empty());
  EXPECT_FALSE(rule.roots.empty());
}

TEST_P(EachRule, tells_its_functions_apart_by_name) {
  std::set<std::string> names{head(samples.sample)};
  for (const std::string& text : samples.near_misses) {
    EXPECT_TRUE(names.insert(head(text)).second) << head(text);
  }
}

TEST_P(EachRule, raises_its_sample) {
  const Raised with = raised(samples.sample);
  EXPECT_FALSE(raised_names(with.program).empty());
  EXPECT_TRUE(with.remarks.empty()) << with.remarks.front().rule << with.remarks.front().reason;
  EXPECT_NE(axis::print(with.program),
            axis::print(raised(samples.sample, without(rule.name)).program))
      << "another rule does it";
}

TEST_P(EachRule, keeps_the_values_of_its_sample_in_every_dtype) {
  for (std::string_view dtype : {"f32", "f64", "f16", "bf16"}) {
    SCOPED_TRACE(dtype);
    const front::Module module = front::parse(with_dtype(samples.sample, dtype), "sample.jir");
    expect_same_values(module, module.functions.front());
  }
}

template <class Op>
void expect_made_as_read(const axis::Use& use) {
  if (!is<Op>(*use.node)) return;
  EXPECT_EQ(make(read<Op>(use), use.flat()), use) << use.node->name;
}
template <class... Op>
void expect_each_made_as_read(const axis::Use& use, std::type_identity<std::tuple<Op...>>) {
  (expect_made_as_read<Op>(use), ...);
}

TEST_P(EachRule, makes_ops_as_they_are_read) {
  const Raised result = raised(samples.sample);
  for (const axis::Node* node : axis::topological(result.program)) {
    expect_each_made_as_read(node->graph->self(node), std::type_identity<AllOps>{});
  }
}

TEST_P(EachRule, leaves_its_near_misses_and_says_why) {
  for (const std::string& text : samples.near_misses) {
    SCOPED_TRACE(text);
    const Raised with = raised(text);
    EXPECT_EQ(axis::print(with.program), axis::print(raised(text, without(rule.name)).program));
    EXPECT_TRUE(std::ranges::any_of(with.remarks, [&](const Remark& remark) {
      return remark.rule == rule.name && !remark.reason.empty();
    }));
  }
}

TEST_P(EachRule, keeps_the_values_of_its_near_misses) {
  for (const std::string& text : samples.near_misses) {
    const front::Module module = front::parse(text, "near_miss.jir");
    expect_same_values(module, module.functions.front());
  }
}

INSTANTIATE_TEST_SUITE_P(, EachRule, testing::ValuesIn(all_rules().begin(), all_rules().end()),
                         [](const auto& rule) { return std::string(rule.param.name); });

TEST(Raise, each_file_of_samples_belongs_to_a_rule) {
  std::vector<std::string> files, rules;
  for (const auto& file : golden::files_of("raise/rules")) files.push_back(file.stem().string());
  for (const Rule& rule : all_rules()) rules.emplace_back(rule.name);
  std::ranges::sort(rules);
  EXPECT_EQ(files, rules);
}

// --- the engine

std::string sample_of(std::string_view rule) { return golden::samples_of(rule).sample; }

TEST(Raise, unknown_rule_is_an_error_that_lists_the_known_ones) {
  try {
    raised(sample_of("softmax"), without("softmx"));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "E060");
    EXPECT_NE(error.help().find("log_softmax"), std::string::npos);
  }
}

TEST(Raise, nothing_is_raised_when_it_is_disabled) {
  Options options;
  options.enabled = false;
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(raised_names(raised(sample_of(rule.name), options).program).empty());
  }
}

TEST(Raise, one_rule_alone_raises_its_own_sample) {
  for (std::string_view name : {"softmax", "log_softmax", "layer_norm", "rms_norm", "gelu_tanh"}) {
    const Raised result = raised(sample_of(name), only(name));
    EXPECT_EQ(raised_names(result.program).size(), 1u) << name;
  }
}

TEST(Raise, rule_names_are_unique) {
  std::vector<std::string_view> names;
  for (const Rule& rule : all_rules()) names.push_back(rule.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(Raise, the_clamp_of_a_variance_is_no_relu) {
  EXPECT_EQ(raised_names(raised(sample_of("layer_norm")).program),
            std::vector<std::string>{"norm"});
}

TEST(Raise, scale_and_bias_become_operands_of_the_norm) {
  const Raised result = raised(sample_of("norm_bias"));
  const axis::Node* node = find_node(result.program, "norm");
  ASSERT_NE(node, nullptr);
  const auto norm = read<NormOp>(*node);
  EXPECT_TRUE(norm.center && norm.scale && norm.bias);
  EXPECT_EQ(norm.eps, 0.001);
}

// --- spellings: each function of tests/golden/raise keeps its values

class EachSpelling : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(EachSpelling, keeps_its_values) {
  const front::Module module = front::parse(golden::text_of(GetParam()), GetParam().string());
  for (const front::Function& function : module.functions) expect_same_values(module, function);
}

INSTANTIATE_TEST_SUITE_P(, EachSpelling, testing::ValuesIn(golden::files_of("raise")),
                         [](const auto& file) { return file.param.stem().string(); });

}  // namespace
}  // namespace jaxport::raise
