// SPDX-License-Identifier: Apache-2.0
// What `jaxport check` and `jaxport diff` find, and how tables look.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "inspect/diff.h"
#include "inspect/table.h"
#include "tool/check.h"
#include "tool/progress.h"
#include "wire_sample.h"

namespace jaxport::tool {
namespace {

using inspect::Align;
using inspect::aligned;
using inspect::Difference;
using inspect::differences;
using inspect::with_separators;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using wire::floats;
using wire::Sketch;

const onnx::TensorType kVector{DType::kF32, Dims{3}};

// y = Exp(x)
Sketch exp_model(std::int64_t opset = 23) {
  Sketch s(opset);
  const auto x = s.input("x", kVector), y = s.value("y", kVector);
  s.node("Exp", {x}, {y}).name = "exp";
  s.output(y);
  return s;
}

std::vector<std::string> problems(const Sketch& s) { return check(s.model).problems; }

TEST(Check, good_model_has_no_problem) { EXPECT_THAT(problems(exp_model()), IsEmpty()); }

TEST(Check, all_problems_are_listed) {
  Sketch s;
  const auto x = s.input("x", kVector), y = s.value("y", kVector), z = s.value("z", kVector);
  s.node("Exp", {x, x}, {y});
  s.node("Softmax", {y}, {z}).attrs = {{"axes", std::int64_t{1}}};
  s.node("NoSuchOp", {y}, {});
  s.output(z);
  EXPECT_THAT(problems(s),
              ElementsAre("node 0 (Exp): Exp (opset 13): takes 1 to 1 inputs, not 2",
                          "node 1 (Softmax): Softmax (opset 13): has no attribute 'axes'",
                          "node 2 (NoSuchOp): there is no op 'NoSuchOp' in ai.onnx"));
}

TEST(Check, op_newer_than_the_opset) {
  Sketch s(22);
  const auto x = s.input("x", kVector), y = s.value("y", kVector);
  s.node("RMSNormalization", {x, x}, {y});
  s.output(y);
  EXPECT_THAT(problems(s), Contains(HasSubstr("needs opset 23")));
}

TEST(Check, dtypes_that_an_op_does_not_take) {
  Sketch s;
  const onnx::TensorType ints{DType::kI32, Dims{3}};
  const auto x = s.input("x", ints), y = s.value("y", ints);
  s.node("Exp", {x}, {y});
  s.output(y);
  EXPECT_THAT(problems(s), ElementsAre(HasSubstr("cannot be i32 here")));
}

TEST(Check, declared_types_that_contradict_the_op) {
  Sketch s = exp_model();
  s.model.values[1].type = onnx::TensorType{DType::kF32, Dims{4}};
  EXPECT_THAT(problems(s), ElementsAre("node 'exp' (Exp): result 'y' is declared as f32[4], "
                                       "but is f32[3]"));
}

TEST(Check, value_that_is_not_defined) {
  Sketch s = exp_model();
  s.model.graph.nodes[0].in[0] = s.value("lost", kVector);
  EXPECT_THAT(problems(s), ElementsAre("node 'exp' (Exp): value 'lost' is not defined anywhere"));
}

TEST(Check, nodes_out_of_order) {
  Sketch s;
  const auto x = s.input("x", kVector), h = s.value("h", kVector), y = s.value("y", kVector);
  s.node("Exp", {h}, {y});
  s.node("Log", {x}, {h});
  s.output(y);
  EXPECT_THAT(problems(s), ElementsAre("node 0 (Exp): value 'h' is used before it is defined"));
}

TEST(Check, names_defined_twice) {
  Sketch s = exp_model();
  s.node("Log", s.model.graph.inputs, s.model.graph.outputs).name = "exp";
  EXPECT_THAT(problems(s), ElementsAre("node 'exp' (Log): an earlier node has the same name",
                                       "node 'exp' (Log): value 'y' is defined twice"));
}

TEST(Check, subgraphs_are_checked_where_they_stand) {
  Sketch s;
  const auto flag = s.input("flag", {DType::kBool, Dims{}}), r = s.value("r", kVector);
  const auto lost = s.value("lost");
  s.node("If", {flag}, {r}).attrs = {{"else_branch", wire::branch(s, "else", "Add", lost)},
                                     {"then_branch", wire::branch(s, "then", "Mul", flag)}};
  s.output(r);
  EXPECT_THAT(problems(s),
              Contains("node 0 (If), else_branch: node 'else_op' (Add): value 'lost' is not "
                       "defined anywhere"));
}

TEST(Check, headers) {
  Sketch s = exp_model();
  s.model.opsets.clear();
  s.model.graph.name.clear();
  s.model.ir_version = 0;
  EXPECT_THAT(problems(s), ElementsAre("IR version 0 is not valid", "the graph has no name",
                                       "the model imports no opset",
                                       "node 'exp' (Exp): domain 'ai.onnx' is not imported"));
}

TEST(Check, sequences_are_a_note) {
  Sketch s = exp_model();
  s.model.values[0].type.reset();
  EXPECT_THAT(check(s.model).problems, IsEmpty());
  EXPECT_THAT(check(s.model).notes, ElementsAre("input 'x' is no tensor"));
}

TEST(Check, opsets_without_schemas_are_a_note) {
  const Findings findings = check(exp_model(15).model);
  EXPECT_THAT(findings.problems, IsEmpty());
  EXPECT_THAT(findings.notes, ElementsAre(HasSubstr("operators were not checked")));
}

std::vector<std::string> lines(const std::vector<Difference>& found) {
  std::vector<std::string> result;
  result.reserve(found.size());
  for (const auto& [what, lhs, rhs] : found) {
    result.push_back(fmt::format("{}: {} | {}", what, lhs, rhs));
  }
  return result;
}

TEST(Diff, model_is_the_same_as_itself) {
  EXPECT_THAT(differences(wire::rich_model(), wire::rich_model()), IsEmpty());
}

TEST(Diff, versions_and_metadata) {
  onnx::Model a = exp_model(23).model, b = exp_model(22).model;
  a.metadata = {{"k", "1"}, {"only", "left"}};
  b.metadata = {{"k", "2"}};
  b.ir_version = 9;
  EXPECT_THAT(lines(differences(a, b)), ElementsAre("ir version: 10 | 9", "opset ai.onnx: 23 | 22",
                                                    "metadata k: 1 | 2", "metadata only: left | "));
}

TEST(Diff, borders) {
  onnx::Model a = exp_model().model, b = exp_model().model;
  b.values[0].type = onnx::TensorType{DType::kF16, Dims{3}};
  EXPECT_THAT(lines(differences(a, b)), ElementsAre("input 0: x f32[3] | x f16[3]"));
}

TEST(Diff, initializers_by_type_and_content) {
  Sketch a = exp_model(), b = exp_model();
  a.initializer("w", floats({2, 3}));
  a.initializer("v", floats({2}));
  b.initializer("w", floats({3, 2}));
  b.initializer("v", wire::counting(DType::kF32, {2}));
  const auto found = differences(a.model, b.model);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].lhs, HasSubstr("f32[2,3]"));
  EXPECT_THAT(found[0].rhs, HasSubstr("f32[3,2]"));
  EXPECT_EQ(found[1].what, "initializer v");
}

TEST(Diff, counts_and_the_first_node) {
  Sketch a = exp_model(), b = exp_model();
  b.model.graph.nodes[0].op = "Log";
  EXPECT_THAT(lines(differences(a.model, b.model)),
              ElementsAre("nodes Exp: 1 | ", "nodes Log:  | 1", "node 0: y = Exp(x) | y = Log(x)"));
}

TEST(Diff, attributes_and_nodes_of_subgraphs) {
  onnx::Model a = wire::rich_model(), b = wire::rich_model();
  std::get<std::shared_ptr<onnx::Graph>>(b.graph.nodes[2].attrs[1].value)->nodes[0].op = "Sub";
  const std::vector<std::string> found = lines(differences(a, b));
  EXPECT_EQ(found.back(),
            "node 2 then_branch node 0: then_y = Mul(z, then_c) | "
            "then_y = Sub(z, then_c)");
  b = wire::rich_model();
  b.graph.nodes[0].attrs[0].value = 0.25f;
  EXPECT_THAT(lines(differences(a, b)), ElementsAre(HasSubstr("alpha=0.5f transB=-1 | ")));
}

TEST(Table, columns_are_as_wide_as_their_widest_cell) {
  EXPECT_EQ(aligned({{"a", "1"}, {"long", "23"}}, {Align::kLeft, Align::kRight}),
            "a      1\nlong  23\n");
}

TEST(Table, thousands_are_separated) {
  EXPECT_EQ(with_separators(999), "999");
  EXPECT_EQ(with_separators(1'000), "1,000");
  EXPECT_EQ(with_separators(1'234'567), "1,234,567");
}

// --- progress

TEST(Progress, bytes_and_rate_of_what_is_written) {
  EXPECT_EQ(written_text(1'500'000'000, 6'000'000'000, 5), "1.5 of 6.0 GB, 300 MB/s");
  EXPECT_EQ(written_text(12'340'000, 999'999'999, 0.5), "12.3 of 1000.0 MB, 25 MB/s");
  EXPECT_EQ(written_text(1'000'000'000, 1'000'000'000, 2), "1.0 of 1.0 GB, 500 MB/s");
}

TEST(Progress, nothing_is_written_yet) {
  EXPECT_EQ(written_text(0, 2'000'000, 0), "0.0 of 2.0 MB, 0 MB/s");
}

}  // namespace
}  // namespace jaxport::tool
