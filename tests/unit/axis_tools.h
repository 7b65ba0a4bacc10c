// SPDX-License-Identifier: Apache-2.0
// What the tests of the axis graph share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "axis/graph/graph.h"
#include "eval/eval.h"
#include "front/text.h"

namespace jaxport::axis {

inline Program program_of(std::string_view text) {
  const front::Module module = front::parse(text, "test.jir");
  Program program = build(module, module.functions[0]);
  verify(program);
  return program;
}

// The body of a function of one result, without inputs and outputs.
inline std::string nodes_of(std::string_view text) {
  std::string lines;
  std::string printed = print(program_of(text));
  for (std::size_t at = 0; at < printed.size();) {
    const std::size_t end = printed.find('\n', at);
    const std::string line = printed.substr(at, end - at + 1);
    if (line.find(" = input[") == std::string::npos) lines += line;
    at = end + 1;
  }
  return lines;
}

inline std::size_t count_of(const Program& program, Kind kind) {
  std::size_t count = 0;
  for (const Node* node : topological(program)) count += node->kind == kind ? 1 : 0;
  return count;
}

inline bool outputs_are_one_node(std::string_view text) {
  const Program program = program_of(text);
  for (const View& view : program.outputs) {
    if (view.use.node != program.outputs[0].use.node) return false;
  }
  return program.outputs.size() > 1;
}

inline Tensor floats(Shape shape, const std::vector<float>& values) {
  MutableTensor tensor = allocate(DType::kF32, std::move(shape));
  std::ranges::copy(values, tensor.as<float>());
  return tensor.tensor;
}

inline Tensor counting(Shape shape) {
  MutableTensor tensor = allocate(DType::kF32, std::move(shape));
  for (std::int64_t i = 0; i < tensor.tensor.size(); ++i) {
    tensor.as<float>()[i] = static_cast<float>(i);
  }
  return tensor.tensor;
}

inline void expect_same_values(std::string_view text, const std::vector<Tensor>& inputs) {
  const front::Module module = front::parse(text, "test.jir");
  const auto expected = eval::run(module.functions[0], inputs);
  const auto actual = evaluate(program_of(text), inputs, nullptr);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(same_bytes(actual[i], expected[i])) << "result " << i;
  }
}

// A graph and a few uses to build with.
struct Scratch {
  std::shared_ptr<DimScope> dims = std::make_shared<DimScope>();
  Graph graph{dims};

  Use input(std::int64_t index, Dims shape, DType dtype = DType::kF32) {
    return graph.input(index, {dtype, std::move(shape)}, "x");
  }
  Use f32(std::string_view name, std::vector<Use> operands) {
    return graph.pointwise(name, std::move(operands), DType::kF32);
  }
  Use boolean(std::string_view name, std::vector<Use> operands) {
    return graph.pointwise(name, std::move(operands), DType::kBool);
  }
  Use number(double value) { return graph.scalar(value, DType::kF32); }
  Use truth(bool value) { return graph.scalar(value ? 1 : 0, DType::kBool); }
  Use as(const Use& use, DType dtype) {
    return graph.pointwise("convert_element_type", {use}, dtype);
  }
};

}  // namespace jaxport::axis
