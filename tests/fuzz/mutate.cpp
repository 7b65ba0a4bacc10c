// SPDX-License-Identifier: Apache-2.0
#include "mutate.h"

#include <limits>

#include "common.h"
#include "edit.h"

namespace jaxport::fuzz {
namespace {

const std::vector<Mutation>& all_mutations() {
  static const std::vector<Mutation> kAll = [] {
    std::vector<Mutation> all = value_mutations();
    for (const auto& table : {eqn_mutations(), whole_mutations()}) {
      all.insert(all.end(), table.begin(), table.end());
    }
    return all;
  }();
  return kAll;
}

Mutate pick(Rng& rng) {
  static const int kTotal = [] {
    int sum = 0;
    for (const Mutation& mutation : all_mutations()) sum += mutation.weight;
    return sum;
  }();
  int at = static_cast<int>(rng.below(static_cast<std::size_t>(kTotal)));
  for (const Mutation& mutation : all_mutations()) {
    at -= mutation.weight;
    if (at < 0) return mutation.mutate;
  }
  return all_mutations().back().mutate;
}

// Inside of a loop body rather than around it, where there is one.
bool mutate_somewhere(Subject& subject) {
  if (subject.rng.one_in(4)) return pick(subject.rng)(subject);
  for (front::Eqn& eqn : subject.function.eqns) {
    const std::size_t regions = region_count(eqn);
    if (regions == 0 || subject.rng.one_in(3)) continue;
    bool changed = false;
    edit_region(eqn, subject.rng.below(regions), [&](front::Function& body) {
      Subject inner{body, subject.rng, true, nullptr};
      changed = mutate_somewhere(inner);
    });
    return changed;
  }
  return pick(subject.rng)(subject);
}

}  // namespace

front::Function mutated(const front::Function& seed, const std::vector<front::Function>& others,
                        Rng& rng) {
  front::Function function = seed;
  Subject subject{function, rng, false, &others};
  const std::size_t wanted = 1 + rng.below(2) + rng.below(2) * rng.below(3);
  std::size_t done = 0;
  for (std::size_t tries = 0; tries < 4 * wanted && done < wanted; ++tries) {
    if (mutate_somewhere(subject)) ++done;
  }
  return function;
}

std::vector<Target> float_values(const front::Function& function) {
  const std::vector<std::size_t> at = definitions(function);
  std::vector<Target> found;
  const auto add = [&](front::ValueId id) {
    if (is_float(function.type(id).dtype)) found.push_back({id, at[id]});
  };
  for (front::ValueId id : function.params) add(id);
  for (const front::Eqn& eqn : function.eqns) {
    for (front::ValueId id : eqn.out) add(id);
  }
  return found;
}

double hostile_literal(Rng& rng) {
  static constexpr double kLiterals[] = {0,    1,   -1,   0.5, 2,     -0.0, 1e-30, kInf, -kInf,
                                         0.25, 1.5, -0.5, 0.2, 0.7,   3,    -2,    1e-5, 1e-12,
                                         10,   1e4, 6,    100, 0.125, -1e4, 0.1,   5,    1.0001};
  return rng.of(kLiterals);
}

double fill_literal(Rng& rng) {
  static constexpr double kFills[] = {
      -1e4, -1e9, -1e30, -3.4028234663852886e38, -kInf, -kInf, -1e9, -5, 0, -65504, -1e15, -100};
  return rng.of(kFills);
}

front::ValueId add_param(front::Function& function, front::Type type) {
  const front::ValueId id = function.add_value(std::move(type));
  function.params.push_back(id);
  return id;
}

}  // namespace jaxport::fuzz
