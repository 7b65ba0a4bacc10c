// SPDX-License-Identifier: Apache-2.0
// Which differences count. Rounding and documented liberties do not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "front/ir.h"

namespace jaxport::fuzz {

// Both runs of one program at one input.
struct Runs {
  const front::Function& f64;  // the program in f64
  const front::Function& f32;  // and in f32
  DType dtype;                 // which of them was compared
  const std::vector<Tensor>& inputs;
  const std::vector<Tensor>& plain;       // the results as written
  const std::vector<Tensor>& raised;      // the results when it is raised
  const std::vector<std::string>& names;  // of raised nodes
  DType narrowest;                        // that a raised node computes in
};

struct Fault {
  std::string what;
  double size;
};
std::optional<Fault> judge(const Runs& runs);

}  // namespace jaxport::fuzz
