// SPDX-License-Identifier: Apache-2.0
// Runs a program as written with other numbers in the places that a liberty is about.
#pragma once

#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "common.h"
#include "interpret.h"
#include "judge.h"
#include "rng.h"
#include "values.h"

namespace jaxport::fuzz {

using Tensors = std::vector<Tensor>;

// The tensor with other numbers where `test` holds for the index.
template <class Test, class Value>
Tensor with(const Tensor& tensor, const Test& test, const Value& value) {
  if (!is_float(tensor.dtype)) return tensor;
  MutableTensor copy = allocate(DType::kF64, tensor.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    copy.as<double>()[i] = test(i) ? value(i) : tensor.at(i);
  }
  return tensor.dtype == DType::kF64 ? copy.tensor
                                     : cast_all({copy.tensor}, DType::kF64, tensor.dtype)[0];
}

// Other numbers. Some of them are seen behind a comparison, a logarithm or a maximum, and equal
// ones would cancel: one kind alone, a little different at each place, or all kinds mixed, the same
// in every tensor or others in each.
struct Poison {
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kNumbers[] = {kNan, kInf, -kInf, -0.37, 0.61, 0,
                                        900,  -900, 3e4,   3e38,  1e300};
  static constexpr std::size_t kCount = std::size(kNumbers), kVariants = 6 * kCount;
  std::size_t variant;

  // At an element of the n-th tensor.
  double at(std::int64_t i, std::uint64_t n) const {
    const double factor = 1 + static_cast<double>(i % 7) / 8;
    if (variant < kCount) return kNumbers[variant] * factor;
    const std::uint64_t tensor = variant < 2 * kCount ? 0 : n;
    Rng rng(variant + kVariants * (static_cast<std::uint64_t>(i) + 1009 * tensor));
    return rng.of(kNumbers);
  }
};

// Whether something of one of these names is raised.
bool has_name(const Runs& runs, const std::vector<std::string_view>& names);

// The liberties that what is raised takes, as places in a table.
std::vector<std::size_t> liberties_of(const Runs& runs);
// The results with the numbers replaced that these liberties are about; empty when it cannot run.
Tensors spoiled_run(const Runs& runs, Poison poison, std::span<const std::size_t> liberties);
// The results as written; empty when it cannot run.
Tensors plain_run(const Runs& runs, const Tensors& inputs, const Watch& watch);

}  // namespace jaxport::fuzz
