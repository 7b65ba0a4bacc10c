// SPDX-License-Identifier: Apache-2.0
// Differences that documents allow.
#pragma once

#include <vector>

#include "judge.h"

namespace jaxport::fuzz {

class Liberties {
 public:
  explicit Liberties(const Runs& runs);
  // This element of a result may differ.
  bool excuse(std::size_t result, std::int64_t index) const;

 private:
  const Runs& runs_;
  std::vector<std::vector<Tensor>> shifted_, spoiled_, without_huge_;
};

}  // namespace jaxport::fuzz
