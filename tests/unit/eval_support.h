// SPDX-License-Identifier: Apache-2.0
// Equations in .jir text on concrete operands.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "eval/eval.h"
#include "front/text.h"
#include "jaxport/error.h"

namespace jaxport::eval {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

inline Tensor tensor(DType dtype, Shape shape, const std::vector<double>& values) {
  MutableTensor out = allocate(dtype, std::move(shape));
  const auto width = static_cast<std::size_t>(byte_width(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::memcpy(out.bytes + i * width, scalar(dtype, values[i]).data.get(), width);
  }
  return out.tensor;
}
inline Tensor vec(DType dtype, const std::vector<double>& values) {
  return tensor(dtype, {static_cast<std::int64_t>(values.size())}, values);
}
inline Tensor f32s(const std::vector<double>& values) { return vec(DType::kF32, values); }
inline Tensor i32s(const std::vector<double>& values) { return vec(DType::kI32, values); }

// The results of one equation: evaluate("f32[2] = add %a %b {…}", {a, b}). Results of several types
// are written "f32[2], i32[2] = top_k %a {k = 2}".
inline std::vector<Tensor> evaluate(std::string_view equation,
                                    const std::vector<Tensor>& operands) {
  std::string params, results, names;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    params += fmt::format("{}%{}: {}[{}]", i == 0 ? "" : ", ", static_cast<char>('a' + i),
                          name_of(operands[i].dtype), fmt::join(operands[i].shape, ","));
  }
  const std::size_t equals = equation.find(" = ");
  std::string_view types = equation.substr(0, equals);
  for (std::size_t i = 0; !types.empty(); ++i) {
    const std::size_t end = types.find("], ");
    const std::string_view type = types.substr(0, end == std::string_view::npos ? end : end + 1);
    results += fmt::format("{}%r{}: {}", i == 0 ? "" : ", ", i, type);
    names += fmt::format(" %r{}", i);
    types = end == std::string_view::npos ? "" : types.substr(end + 3);
  }
  const std::string text = fmt::format("func @f({}) {{\n  {}{}\n  return{}\n}}\n", params, results,
                                       equation.substr(equals), names);
  const front::Module module = front::parse(text, "test.jir");
  return run(module.functions[0], operands);
}

inline std::vector<double> values(const Tensor& tensor) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < tensor.size(); ++i) all.push_back(tensor.at(i));
  return all;
}

// Exactly these values; NaN equals NaN, and -0 is not 0.
inline void expect_values(const Tensor& tensor, const std::vector<double>& expected) {
  const std::vector<double> actual = values(tensor);
  const auto same = [](double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
  };
  EXPECT_TRUE(std::ranges::equal(actual, expected, same))
      << fmt::format("got {}\nexpected {}", fmt::join(actual, " "), fmt::join(expected, " "));
}

inline void expect(std::string_view equation, const std::vector<Tensor>& operands,
                   const std::vector<double>& expected) {
  SCOPED_TRACE(equation);
  expect_values(evaluate(equation, operands)[0], expected);
}

// The code and first line of the error of an equation.
inline std::string error_of(std::string_view equation, const std::vector<Tensor>& operands) {
  try {
    evaluate(equation, operands);
  } catch (const Error& error) {
    return error.code() + ": " + error.message();
  }
  return "no error";
}

}  // namespace jaxport::eval
