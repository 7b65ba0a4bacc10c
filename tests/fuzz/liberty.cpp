// SPDX-License-Identifier: Apache-2.0
#include "liberty.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common.h"
#include "spoil.h"

namespace jaxport::fuzz {
namespace {

constexpr double kHuge = 1e30;

// The largest number along the axis, or of all when there is no such axis, at every element.
std::vector<double> largest_along(const Tensor& tensor, std::size_t axis) {
  std::int64_t inner = 1, size = tensor.size();
  if (axis < tensor.shape.size()) {
    size = tensor.shape[axis];
    for (std::size_t i = axis + 1; i < tensor.shape.size(); ++i) inner *= tensor.shape[i];
  }
  const auto first = [&](std::int64_t i) { return i - i / inner % size * inner; };
  std::vector<double> most(static_cast<std::size_t>(tensor.size()), -kInf);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    double& largest = most[static_cast<std::size_t>(first(i))];
    largest = std::max(largest, tensor.at(i));
  }
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    most[static_cast<std::size_t>(i)] = most[static_cast<std::size_t>(first(i))];
  }
  return most;
}

// The program with exp(x - max x) in place of exp(x), along an axis that is counted from the back:
// in one of its exponentials, or in all.
constexpr std::size_t kMostAxes = 4, kMostExponentials = 3;
Tensors shifted_run(const Runs& runs, std::size_t axis_from_back, std::size_t which) {
  Watch watch;
  std::vector<const front::Eqn*> seen;
  watch.after = [&](const front::Eqn& eqn, const Tensors& in, Tensors& out, const Apply&) {
    const bool is_exp2 = eqn.primitive == "exp2";
    if (eqn.primitive != "exp" && !is_exp2) return;
    if (std::ranges::find(seen, &eqn) == seen.end()) seen.push_back(&eqn);
    if (which < kMostExponentials && (which >= seen.size() || seen[which] != &eqn)) return;
    const std::vector<double> most = largest_along(in[0], in[0].shape.size() - 1 - axis_from_back);
    out[0] = with(
        out[0], [](std::int64_t) { return true; },
        [&](std::int64_t i) {
          const double y = in[0].at(i) - most[static_cast<std::size_t>(i)];
          return is_exp2 ? std::exp2(y) : std::exp(y);
        });
  };
  return plain_run(runs, runs.inputs, watch);
}

// Inputs that are huge are others.
Tensors without_huge(const Tensors& inputs, Poison poison) {
  Tensors others;
  for (const Tensor& input : inputs) {
    others.push_back(with(
        input,
        [&](std::int64_t i) { return std::isfinite(input.at(i)) && std::abs(input.at(i)) > kHuge; },
        [&](std::int64_t i) { return poison.at(i, 0); }));
  }
  return others;
}

// Up to rounding.
bool agrees(const Tensor& a, const Tensor& b, std::int64_t i) {
  const double u = a.at(i), v = b.at(i);
  return u == v || (std::isnan(u) && std::isnan(v)) || std::abs(u - v) <= 1e-4 * std::abs(v);
}

bool differs(const Tensor& a, const Tensor& b, std::int64_t i) {
  const double u = a.at(i), v = b.at(i);
  return !(u == v || (std::isnan(u) && std::isnan(v)));
}

}  // namespace

const Tensors& Liberties::Attempt::get() {
  if (!results) results = run();
  return *results;
}

Liberties::Liberties(const Runs& runs) : runs_(runs) {
  const bool has_weights = has_name(runs, {"softmax", "attention"});
  for (std::size_t axis = 0; has_weights && axis <= kMostAxes; ++axis) {
    for (std::size_t which = 0; which <= kMostExponentials; ++which) {
      shifted_.push_back({[&runs, axis, which] { return shifted_run(runs, axis, which); }, {}});
    }
  }
  const std::vector<std::size_t> all = liberties_of(runs);
  for (std::size_t variant = 0; variant < Poison::kVariants; ++variant) {
    const Poison poison{variant};
    const auto add = [&](std::vector<std::size_t> some) {
      spoiled_.push_back({[&runs, poison, some] { return spoiled_run(runs, poison, some); }, {}});
    };
    for (std::size_t one : all) add({one});
    add(all);  // an overflow that is gone meets another liberty behind it
    without_huge_.push_back(
        {[&runs, poison] { return plain_run(runs, without_huge(runs.inputs, poison), {}); }, {}});
  }
}

bool Liberties::any_changes(std::vector<Attempt>& attempts, std::size_t result,
                            std::int64_t index) const {
  return std::ranges::any_of(attempts, [&](Attempt& attempt) {
    const Tensors& results = attempt.get();
    return !results.empty() && differs(results[result], runs_.plain[result], index);
  });
}

bool Liberties::excuse(std::size_t result, std::int64_t index) {
  const bool is_shifted = std::ranges::any_of(shifted_, [&](Attempt& attempt) {
    const Tensors& results = attempt.get();
    return !results.empty() && agrees(results[result], runs_.raised[result], index);
  });
  if (is_shifted || any_changes(spoiled_, result, index)) return true;
  // A sum of products with one factor is associated differently: it may overflow. In a cell and in
  // a rotation this may be anywhere on the way.
  const bool overflows = !std::isfinite(runs_.raised[result].at(index)) ||
                         has_name(runs_, {"lstm", "gru", "rnn", "rope", "partial_rope"});
  return runs_.dtype == DType::kF32 && overflows && any_changes(without_huge_, result, index);
}

}  // namespace jaxport::fuzz
