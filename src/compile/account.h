// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "axis/graph/graph.h"
#include "compile/report.h"
#include "onnx/ir.h"

namespace jaxport::compile {

// What one compilation tells those who listen: how long each stage took, what it made and what
// there is to say about it. One call at the end of each stage.
class Account {
 public:
  explicit Account(Report* report) : report_(report) {}  // may be null

  void translated(const axis::Program& program);
  void raised(const axis::Program& program, std::span<const raise::Remark> remarks);
  // After a stage that ends with a model: "lower", "target", "passes" or "names".
  void made(std::string stage, const onnx::Model& model);

 private:
  void lap(std::string stage);

  Report* report_;
  int stages_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace jaxport::compile
