// SPDX-License-Identifier: Apache-2.0
// Whether a program computes the same before and after it is raised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "front/ir.h"
#include "raise/engine/raise.h"
#include "values.h"

namespace jaxport::fuzz {

struct Difference {
  std::string what;            // "f32, kind 'ties': result 0 element 3 is 1.5, raised 1.25"
  double size = 0;             // the largest difference; infinite where NaN or inf meets a number
  DType dtype = DType::kF64;   // of the run
  std::vector<Tensor> inputs;  // empty when it is no matter of values
};

struct Verdict {
  bool is_valid = false;            // the program is well-typed and can be evaluated
  std::vector<std::string> raised;  // names of raised nodes, sorted, each once
  std::optional<Difference> difference;
};

// How programs are raised.
struct Stage {
  raise::Options options;
  std::span<const raise::Rules> passes = raise::passes();
  bool every_kind = false;  // of values, also for programs that nothing is raised in
};

class Checker {
 public:
  Checker(const front::Module& module, Stage stage);

  // At all kinds of values, as f64 and as it is; programs that nothing is raised in at one kind.
  Verdict check(const front::Function& function) const;
  // At one input alone, given in f64 or f32.
  std::optional<Difference> check_at(const front::Function& function,
                                     const std::vector<Tensor>& inputs, DType dtype) const;
  const Stage& stage() const { return stage_; }
  front::Module module_of(const front::Function& function) const;

 private:
  Stage stage_;
  std::shared_ptr<DimScope> dims_;
};

}  // namespace jaxport::fuzz
