// SPDX-License-Identifier: Apache-2.0
// Mutations of the whole function: sizes, splices with another function, regions around it.
#include <algorithm>

#include "edit.h"
#include "mutate.h"

namespace jaxport::fuzz {
namespace {

using front::Attr;
using front::Eqn;
using front::Function;
using front::Type;
using front::ValueId;

bool other_size(Subject& subject) {
  if (subject.is_region) return false;
  std::vector<Dim> sizes;
  for (ValueId id : subject.function.params) {
    for (const Dim& dim : subject.function.type(id).shape) sizes.push_back(dim);
  }
  if (sizes.empty()) return false;
  const Dim from = subject.rng.of(sizes);
  static constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 8, 1};
  Dim to = subject.rng.one_in(12) ? Dim(0) : Dim(subject.rng.of(kSizes));
  if (subject.rng.one_in(3)) to = subject.rng.of(sizes);
  if (to == from) return false;
  replace_size(subject.function, from, to);
  // The count of a mean follows, or does not.
  if (!from.is_static() || !to.is_static() || subject.rng.one_in(4)) return true;
  for (front::Constant& constant : subject.function.constants) {
    const bool counts = constant.tensor.is_scalar() && is_float(constant.tensor.dtype) &&
                        constant.tensor.at(0) == static_cast<double>(from.value());
    if (counts) constant.tensor = scalar(constant.tensor.dtype, static_cast<double>(to.value()));
  }
  return true;
}

// Copies the body of `other` to the front of `function`; its parameters become new ones. Returns
// where its values are now.
std::vector<ValueId> copy_body(Function& function, const Function& other) {
  std::vector<ValueId> ids;
  for (const front::Value& value : other.values) {
    ids.push_back(function.add_value(value.type));
  }
  for (ValueId id : other.params) function.params.push_back(ids[id]);
  for (const front::Constant& constant : other.constants) {
    function.constants.push_back({ids[constant.value], constant.tensor, constant.path});
  }
  std::vector<Eqn> eqns = other.eqns;
  for (Eqn& eqn : eqns) {
    eqn.location = front::kNoLocation;
    for (ValueId& id : eqn.in) id = ids[id];
    for (ValueId& id : eqn.out) id = ids[id];
  }
  function.eqns.insert(function.eqns.begin(), eqns.begin(), eqns.end());
  return ids;
}

// A result of another function takes the place of a parameter of its type; sizes are made equal
// where only they differ.
bool splice(Subject& subject) {
  if (subject.is_region || !subject.others || subject.function.eqns.size() > 40) return false;
  Function other = subject.rng.of(*subject.others);
  if (other.results.empty() || other.eqns.size() > 40) return false;
  const ValueId given = subject.rng.of(other.results);
  Function& function = subject.function;
  for (ValueId param : function.params) {
    const Type wanted = function.type(param);
    const Type have = other.type(given);
    if (have.dtype != wanted.dtype || have.shape.size() != wanted.shape.size()) continue;
    for (std::size_t i = 0; i < have.shape.size(); ++i) {
      if (!(other.type(given).shape[i] == wanted.shape[i]))
        replace_size(other, other.type(given).shape[i], wanted.shape[i]);
    }
    if (other.type(given) != wanted) continue;
    const std::vector<ValueId> ids = copy_body(function, other);
    replace_uses(function, param, ids[given], other.eqns.size());
    std::erase(function.params, param);
    return true;
  }
  return false;
}

std::shared_ptr<Function> as_region(const Function& function) {
  auto body = std::make_shared<Function>(function);
  body->name = "body";
  body->result_names.clear();
  return body;
}

// A function whose only equation has `region` as a body.
Function around(const Function& function) {
  Function outer;
  outer.name = function.name;
  for (ValueId id : function.params) {
    outer.params.push_back(outer.add_value(function.type(id), function.values[id].name));
  }
  return outer;
}

void add_eqn(Function& outer, Eqn eqn, const std::vector<Type>& types) {
  for (const Type& type : types) {
    eqn.out.push_back(outer.add_value(type));
    outer.results.push_back(eqn.out.back());
  }
  outer.eqns.push_back(std::move(eqn));
}

std::vector<Type> result_types(const Function& function) {
  std::vector<Type> types;
  for (ValueId id : function.results) types.push_back(function.type(id));
  return types;
}

bool call(Subject& subject) {
  if (subject.is_region) return false;
  Function outer = around(subject.function);
  Eqn eqn;
  eqn.primitive = "jit";
  eqn.in = outer.params;
  eqn.attrs = {{"jaxpr", Attr{front::Region(as_region(subject.function))}}};
  add_eqn(outer, std::move(eqn), result_types(subject.function));
  subject.function = std::move(outer);
  return true;
}

// A scan of a few equal steps: the parameters are constants of the loop.
bool steps(Subject& subject) {
  if (subject.is_region) return false;
  const auto length = static_cast<std::int64_t>(1 + subject.rng.below(3));
  Function outer = around(subject.function);
  Eqn eqn;
  eqn.primitive = "scan";
  eqn.in = outer.params;
  eqn.attrs = {{"jaxpr", Attr{front::Region(as_region(subject.function))}},
               {"length", Attr{length}},
               {"num_carry", Attr{std::int64_t{0}}},
               {"num_consts", Attr{static_cast<std::int64_t>(outer.params.size())}},
               {"reverse", Attr{false}},
               {"unroll", Attr{std::int64_t{1}}}};
  std::vector<Type> types = result_types(subject.function);
  for (Type& type : types) type.shape.insert(type.shape.begin(), Dim(length));
  add_eqn(outer, std::move(eqn), types);
  subject.function = std::move(outer);
  return true;
}

bool branch(Subject& subject) {
  if (subject.is_region) return false;
  Function outer = around(subject.function);
  const ValueId index = outer.add_value({DType::kI32, {}});
  Eqn eqn;
  eqn.primitive = "cond";
  eqn.in = outer.params;
  eqn.in.insert(eqn.in.begin(), index);
  outer.params.push_back(index);
  const Attr body{front::Region(as_region(subject.function))};
  eqn.attrs = {{"branches", Attr{front::List{body, body}}}};
  add_eqn(outer, std::move(eqn), result_types(subject.function));
  subject.function = std::move(outer);
  return true;
}

}  // namespace

std::vector<Mutation> whole_mutations() {
  return {{"other size", 5, other_size},
          {"splice", 4, splice},
          {"call", 1, call},
          {"steps", 1, steps},
          {"branch", 1, branch}};
}

}  // namespace jaxport::fuzz
