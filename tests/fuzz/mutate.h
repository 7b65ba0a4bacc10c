// SPDX-License-Identifier: Apache-2.0
// Small changes of a program, most of which a rule must see.
#pragma once

#include <string_view>
#include <vector>

#include "front/ir.h"
#include "rng.h"

namespace jaxport::fuzz {

// What a mutation may change: a function, or the body of a loop, which cannot get inputs.
struct Subject {
  front::Function& function;
  Rng& rng;
  bool is_region = false;
  const std::vector<front::Function>* others = nullptr;  // to splice with
};

// False when there is nothing to change in this way.
using Mutate = bool (*)(Subject&);
struct Mutation {
  std::string_view name;
  int weight;
  Mutate mutate;
};
// The tables of mutate_value.cpp (insert something at a value), mutate_eqn.cpp (change what is
// there) and mutate_whole.cpp (sizes, splices, regions).
std::vector<Mutation> value_mutations();
std::vector<Mutation> eqn_mutations();
std::vector<Mutation> whole_mutations();

// One to four random changes. The result may be ill-typed: evaluate it before anything else.
front::Function mutated(const front::Function& seed, const std::vector<front::Function>& others,
                        Rng& rng);

// A value of a float type, or nullopt.
struct Target {
  front::ValueId id;
  std::size_t at;  // the first place where it is known
};
std::vector<Target> float_values(const front::Function& function);

// --- what the tables share
// Every literal that rules ask about: factors, epsilons, thresholds and fills.
double hostile_literal(Rng& rng);
double fill_literal(Rng& rng);
// A new parameter; only for functions that are no region.
front::ValueId add_param(front::Function& function, front::Type type);

}  // namespace jaxport::fuzz
