// SPDX-License-Identifier: Apache-2.0
// How nodes are rewritten is text: tests/golden/target.
#include "target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jaxport/error.h"
#include "onnx/builder.h"
#include "target/conduct.h"
#include "target/fit.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Model;
using onnx::Value;
using ::testing::HasSubstr;

TEST(Legalise, never_narrows_f64) {
  Model model;
  Builder op(model, 23, onnx::DTypeRule::kAny);
  const Value x = op.input("x", {DType::kF64, Dims{1, 1, 4, 4}});
  op.set_origin({"net.py:3 in f", ""});
  op.output(op.Det(x), "y");
  try {
    legalise(model, Target::kOnnxRuntime);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "E013");
    EXPECT_THAT(error.message(), HasSubstr("ONNX Runtime cannot compute Det(f64[1,1,4,4])"));
    EXPECT_EQ(error.source(), "net.py:3 in f");
  }
}

// Whether a product is rewritten whose first operand is a Transpose of [size, 6, 4], which goes
// wrong in ONNX Runtime when the size is 0.
bool is_guarded(const Dim& size, Target target) {
  Model model;
  Builder op(model, 23);
  const Value x = op.input("x", {DType::kF32, Dims{size, 6, 4}});
  const Value w = op.input("w", {DType::kF32, Dims{6, 4, 5}});
  op.output(op.MatMul(op.Transpose(x, onnx::Args{{"perm", {1, 0, 2}}}), w), "y");
  return avoid_faults(model, target);
}

TEST(AvoidFaults, says_whether_there_is_one) {
  DimScope scope;
  const Dim batch = scope.symbol("B");
  EXPECT_TRUE(is_guarded(batch, Target::kOnnxRuntime));
  EXPECT_FALSE(is_guarded(batch, Target::kOnnx));
  EXPECT_FALSE(is_guarded(batch + Dim(1), Target::kOnnxRuntime));  // is not 0
}

TEST(Runs, follows_the_registry) {
  EXPECT_TRUE(runs(Target::kOnnxRuntime, "Softmax", 23, DType::kF64));
  EXPECT_FALSE(runs(Target::kOnnxRuntime, "Attention", 23, DType::kF64));
  EXPECT_TRUE(runs(Target::kOnnx, "Attention", 23, DType::kF64));
  EXPECT_FALSE(runs(Target::kOnnx, "Attention", 22, DType::kF32));
}

// A kernel that came, or went, in between is not one of the whole range.
TEST(Runs, asks_all_versions) {
  const Target since_124{.oldest = 124}, only_129{.oldest = 129, .newest = 129};
  EXPECT_FALSE(runs(Target::kOnnxRuntime, "Max", 23, DType::kI8));  // from 1.23 on
  EXPECT_TRUE(runs(Target::kOnnxRuntime, "Max", 24, DType::kI8));   // from 1.24 on
  EXPECT_TRUE(runs(since_124, "Max", 23, DType::kI8));
  EXPECT_TRUE(runs(only_129, "MatMul", 23, DType::kF16));
  EXPECT_FALSE(runs(since_124, "MatMul", 23, DType::kF16));
}

// The fusions of the newest opset do not need the newest version.
TEST(Runs, keeps_fusions_by_default) {
  for (std::string_view op : {"Attention", "RMSNormalization", "RotaryEmbedding"}) {
    EXPECT_TRUE(runs(Target::kOnnxRuntime, op, 23, DType::kF32)) << op;
  }
}

TEST(TargetName, says_runtime_and_versions) {
  EXPECT_EQ(target_from_name("onnx"), Target::kOnnx);
  EXPECT_EQ(target_from_name("onnxruntime"), Target::kOnnxRuntime);
  EXPECT_EQ(target_from_name("onnxruntime-web"), (Target{.runtime = Runtime::kOnnxRuntimeWeb}));
  EXPECT_EQ(target_from_name("onnxruntime>=1.28"), (Target{.oldest = 128}));
  EXPECT_EQ(target_from_name("onnxruntime-web==1.20.1"),
            (Target{Runtime::kOnnxRuntimeWeb, 120, 120}));
  EXPECT_EQ(target_from_name("onnxruntime-web>=1.28"),  // between two versions that are known
            (Target{Runtime::kOnnxRuntimeWeb, 128, kOpen}));
  EXPECT_EQ(target_from_name("openvino==2026.4"), (Target{Runtime::kOpenVino, 202604, 202604}));
}

TEST(TargetName, unknown_ones_are_refused) {
  for (std::string_view name :
       {"webgpu", "onnxruntime>=", "onnxruntime>=1", "onnxruntime>=1.", "onnxruntime==1.2O",
        "onnxruntime==1.20.1.2", "onnxruntime==1.16", "onnxruntime>=1.16", "onnxruntime==2.0",
        "openvino==2023.1", "onnxruntime>1.20", "onnxruntime 1.20", "onnx>=1.20", "ONNXRuntime",
        ""}) {
    EXPECT_THROW(target_from_name(name), Error) << name;
  }
}

TEST(ForOpset, starts_at_the_oldest_version_that_loads_it) {
  EXPECT_EQ(for_opset(Target::kOnnxRuntime, 19).oldest, 117);
  EXPECT_EQ(for_opset(Target::kOnnxRuntime, 21).oldest, 118);
  EXPECT_EQ(for_opset(Target::kOnnxRuntime, 23).oldest, 123);
  EXPECT_EQ(for_opset({.oldest = 120}, 19).oldest, 120);
  EXPECT_EQ(for_opset(Target::kOnnx, 26), Target::kOnnx);
  EXPECT_THROW(for_opset({.oldest = 120, .newest = 120}, 22), Error);
  EXPECT_THROW(for_opset({.oldest = 120}, 22), Error);
}

TEST(NewestOpset, is_what_every_version_loads) {
  EXPECT_EQ(newest_opset({.oldest = 120, .newest = 120}), 21);
  EXPECT_EQ(newest_opset({.oldest = 123}), 23);
  EXPECT_EQ(newest_opset(Target::kOnnxRuntime), 26);
  EXPECT_EQ(newest_opset(Target::kOnnx), 26);
}

TEST(Requirement, names_the_oldest_runtime) {
  EXPECT_EQ(requirement(Target::kOnnxRuntime, 23), "onnxruntime>=1.23");
  EXPECT_EQ(requirement({.oldest = 128}, 23), "onnxruntime>=1.28");
  EXPECT_EQ(requirement({.oldest = 120, .newest = 120}, 21), "onnxruntime==1.20");
  EXPECT_EQ(requirement(Target::kOnnx, 23), "onnx opset 23");
}

TEST(Legalise, says_which_version_would_do) {
  Model model;
  Builder op(model, 24, onnx::DTypeRule::kAny);
  const Value x = op.input("x", {DType::kF32, Dims{1, 4}}), at = op.input("at", {DType::kI64, {}});
  op.output(op.TensorScatter(x, x, at), "y");
  try {
    legalise(model, {.oldest = 124});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("ONNX Runtime 1.24 cannot compute TensorScatter"));
    EXPECT_THAT(error.what(), HasSubstr("or use target 'onnxruntime>=1.25'"));
  }
}

TEST(Legalise, any_version_need_not_be_the_oldest) {
  Model model;
  Builder op(model, 24, onnx::DTypeRule::kAny);
  const Value x = op.input("x", {DType::kF32, Dims{1, 4}}), at = op.input("at", {DType::kI64, {}});
  op.output(op.TensorScatter(x, x, at), "y");
  EXPECT_EQ(legalise(model, Target::kOnnxRuntime).oldest, 125);
}

// --- which versions load a model

onnx::Node node_of(std::string op, std::string domain, std::vector<onnx::ValueId> in,
                   std::vector<onnx::ValueId> out) {
  onnx::Node node;
  node.op = std::move(op);
  node.domain = std::move(domain);
  node.in = std::move(in);
  node.out = std::move(out);
  return node;
}

// max(x, x), which takes i8 from 1.24 on.
void add_larger(Builder& op, const Value& x, std::string name) {
  op.output(op.Max(x, x), std::move(name));
}

TEST(Fit, looks_into_bodies) {
  Model model;
  Builder op(model, 23);
  const Value x = op.input("x", {DType::kI8, Dims{3}});
  const Value p = op.input("p", {DType::kBool, Dims{}});
  auto taken = std::make_shared<onnx::Graph>(), other = std::make_shared<onnx::Graph>();
  Builder inner(op, *taken), outer(op, *other);
  add_larger(inner, x, "a");
  outer.output(x, "b");
  op.output(op.If(p, onnx::Args{{"then_branch", taken}, {"else_branch", other}}), "y");
  const Fit found = fit(model, Runtime::kOnnxRuntime);
  EXPECT_EQ(found.needed(), 124);
  EXPECT_EQ(found.versions.front().misfits.at(0).what, "opset 23 is too new");
}

// The types of a body are those of each call.
TEST(Fit, looks_into_functions) {
  for (const auto& [dtype, version] : {std::pair(DType::kF32, 123), std::pair(DType::kI8, 124)}) {
    Model model;
    Builder op(model, 23);
    const Value x = op.input("x", {dtype, Dims{3}});
    model.values.resize(model.values.size() + 3);
    const auto last = static_cast<onnx::ValueId>(model.values.size() - 1);
    onnx::Function function{"mine", "larger", {}};
    function.body.inputs = {last - 1};
    function.body.outputs = {last - 2};
    function.body.nodes.push_back(node_of("Max", "", {last - 1, last - 1}, {last - 2}));
    model.functions.push_back(function);
    model.graph.nodes.push_back(node_of("larger", "mine", {x.id()}, {last}));
    EXPECT_EQ(fit(model, Runtime::kOnnxRuntime).needed(), version) << name_of(dtype);
  }
}

TEST(Fit, says_what_it_does_not_know) {
  Model model;
  Builder op(model, 23);
  const Value x = op.input("x", {DType::kI8, Dims{3}});
  model.graph.nodes.push_back(node_of("Gelu", "com.microsoft", {x.id()}, {}));
  const Fit found = fit(model, Runtime::kOnnxRuntime);
  EXPECT_EQ(found.needed(), 123);
  EXPECT_THAT(found.notes,
              ::testing::ElementsAre("1 node of domain 'com.microsoft' was not checked: Gelu"));
}

TEST(Fit, knows_products_of_f64_that_are_merged) {
  for (const auto& [dtype, version] : {std::pair(DType::kF32, 123), std::pair(DType::kF64, 126)}) {
    Model model;
    Builder op(model, 23);
    const Value x = op.input("x", {dtype, Dims{2, 3, 3}});
    op.output(op.MatMul(op.Transpose(x, onnx::Args{{"perm", {0, 2, 1}}}), x), "y");
    EXPECT_EQ(fit(model, Runtime::kOnnxRuntime).needed(), version) << name_of(dtype);
    avoid_faults(model, Target::kOnnxRuntime);
    EXPECT_EQ(fit(model, Runtime::kOnnxRuntime).needed(), 123) << name_of(dtype);
  }
}

// An op that is defined by others loads where those do.
TEST(Fit, knows_ops_without_kernels) {
  for (const auto& [dtype, version] : {std::pair(DType::kF16, 123), std::pair(DType::kBF16, 0)}) {
    Model model;
    Builder op(model, 23, onnx::DTypeRule::kAny);
    op.output(op.Mish(op.input("x", {dtype, Dims{3}})), "y");
    EXPECT_EQ(fit(model, Runtime::kOnnxRuntime).needed(), version) << name_of(dtype);
  }
}

// --- which dtypes may stand in for another

struct FormCase {
  Conduct conduct;
  DType from;
  std::optional<DType> to;
};

class WideFormTest : public ::testing::TestWithParam<FormCase> {};

TEST_P(WideFormTest, is_the_first_that_is_right) {
  const auto& [conduct, from, to] = GetParam();
  const auto form = wide_form(conduct, from, [from = from](DType dtype) { return dtype != from; });
  EXPECT_EQ(form ? std::optional(form->dtype) : std::nullopt, to);
}

INSTANTIATE_TEST_SUITE_P(Rules, WideFormTest,
                         ::testing::Values(FormCase{Conduct::kCopies, DType::kU16, DType::kI16},
                                           FormCase{Conduct::kCopies, DType::kBool, DType::kU8},
                                           FormCase{Conduct::kCopies, DType::kBF16, DType::kF32},
                                           FormCase{Conduct::kCopies, DType::kF64, std::nullopt},
                                           FormCase{Conduct::kOrders, DType::kU16, DType::kI32},
                                           FormCase{Conduct::kOrders, DType::kU32, DType::kI64},
                                           FormCase{Conduct::kOrders, DType::kU64, DType::kI64},
                                           FormCase{Conduct::kOrders, DType::kI32, DType::kI64},
                                           FormCase{Conduct::kWraps, DType::kU32, DType::kI32},
                                           FormCase{Conduct::kWraps, DType::kI64, DType::kU64},
                                           FormCase{Conduct::kValues, DType::kI8, DType::kI16},
                                           FormCase{Conduct::kValues, DType::kU64, std::nullopt},
                                           FormCase{Conduct::kReal, DType::kI32, std::nullopt},
                                           FormCase{Conduct::kReal, DType::kF16, DType::kF32}));

}  // namespace
}  // namespace jaxport::target
