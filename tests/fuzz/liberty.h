// SPDX-License-Identifier: Apache-2.0
// Differences that documents allow.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "judge.h"

namespace jaxport::fuzz {

class Liberties {
 public:
  explicit Liberties(const Runs& runs);
  // This element of a result may differ.
  bool excuse(std::size_t result, std::int64_t index);

 private:
  // The program as written, with something changed. It runs when somebody asks.
  struct Attempt {
    std::function<std::vector<Tensor>()> run;
    std::optional<std::vector<Tensor>> results;
    const std::vector<Tensor>& get();
  };
  bool any_changes(std::vector<Attempt>& attempts, std::size_t result, std::int64_t index) const;

  const Runs& runs_;
  std::vector<Attempt> shifted_, spoiled_, without_huge_;
};

}  // namespace jaxport::fuzz
