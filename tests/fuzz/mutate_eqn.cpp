// SPDX-License-Identifier: Apache-2.0
// Mutations of what is there: literals, operands, primitives, axes, results.
#include <algorithm>
#include <array>

#include "edit.h"
#include "mutate.h"

namespace jaxport::fuzz {
namespace {

using front::Eqn;
using front::Function;
using front::ValueId;

// The scalar literals of float dtype.
std::vector<front::Constant*> literals(Function& function) {
  std::vector<front::Constant*> found;
  for (front::Constant& constant : function.constants) {
    if (constant.tensor.is_scalar() && is_float(constant.tensor.dtype)) found.push_back(&constant);
  }
  return found;
}

bool other_literal(Subject& subject) {
  const auto all = literals(subject.function);
  if (all.empty()) return false;
  Tensor& tensor = subject.rng.of(all)->tensor;
  const double old = tensor.at(0);
  const std::array<double, 9> values{old * 1.001,
                                     old * 2,
                                     -old,
                                     0,
                                     old + 1,
                                     old * 0.5,
                                     1 - old,
                                     hostile_literal(subject.rng),
                                     fill_literal(subject.rng)};
  const double value = subject.rng.of(values);
  if (value == old) return false;
  tensor = scalar(tensor.dtype, value);
  return true;
}

// A number of the program becomes an input.
bool operand_for_literal(Subject& subject) {
  if (subject.is_region) return false;
  const auto all = literals(subject.function);
  if (all.empty()) return false;
  const ValueId id = subject.rng.of(all)->value;
  std::erase_if(subject.function.constants,
                [&](const front::Constant& constant) { return constant.value == id; });
  subject.function.params.push_back(id);
  return true;
}

std::vector<Eqn*> matching(Function& function, const std::function<bool(const Eqn&)>& test) {
  std::vector<Eqn*> found;
  for (Eqn& eqn : function.eqns) {
    if (test(eqn)) found.push_back(&eqn);
  }
  return found;
}

bool swap_operands(Subject& subject) {
  const Function& function = subject.function;
  const auto all = matching(subject.function, [&](const Eqn& eqn) {
    const std::size_t n = eqn.in.size();
    return n >= 2 && function.type(eqn.in[n - 1]) == function.type(eqn.in[n - 2]);
  });
  if (all.empty()) return false;
  std::vector<ValueId>& in = subject.rng.of(all)->in;
  std::swap(in[in.size() - 1], in[in.size() - 2]);
  return true;
}

bool other_primitive(Subject& subject) {
  static constexpr std::string_view kGroups[][4] = {
      {"add", "sub", "mul", "max"},
      {"mul", "div", "mul", "add"},
      {"max", "min", "max", "add"},
      {"gt", "ge", "lt", "le"},
      {"reduce_max", "reduce_min", "reduce_sum", "reduce_max"},
      {"exp", "exp2", "expm1", "tanh"},
      {"rsqrt", "sqrt", "rsqrt", "abs"},
      {"tanh", "logistic", "erf", "sin"},
      {"log", "log1p", "log", "abs"},
      {"sub", "add", "sub", "div"},
      {"and", "or", "xor", "and"},
      {"eq", "ne", "ge", "le"},
      {"div", "mul", "sub", "div"},
      {"min", "max", "min", "sub"},
      {"logistic", "tanh", "logistic", "erf"}};
  const auto all = matching(subject.function, [](const Eqn& eqn) {
    return std::ranges::any_of(kGroups, [&](const auto& g) { return g[0] == eqn.primitive; });
  });
  if (all.empty()) return false;
  Eqn& eqn = *subject.rng.of(all);
  for (const auto& group : kGroups) {
    if (group[0] != eqn.primitive) continue;
    eqn.primitive = group[1 + subject.rng.below(3)];
    return true;
  }
  return false;
}

// An equation's result is one of its operands instead.
bool drop_equation(Subject& subject) {
  Function& function = subject.function;
  if (function.eqns.empty()) return false;
  const std::size_t at = subject.rng.below(function.eqns.size());
  const Eqn eqn = function.eqns[at];
  if (eqn.out.size() != 1) return false;
  for (ValueId in : eqn.in) {
    if (function.type(in) != function.type(eqn.out[0])) continue;
    replace_uses(function, eqn.out[0], in, at);
    function.eqns.erase(function.eqns.begin() + static_cast<std::ptrdiff_t>(at));
    return true;
  }
  return false;
}

// An operand becomes another value of its type.
bool rewire(Subject& subject) {
  Function& function = subject.function;
  const std::vector<std::size_t> known = definitions(function);
  if (function.eqns.empty()) return false;
  const std::size_t at = subject.rng.below(function.eqns.size());
  Eqn& eqn = function.eqns[at];
  if (eqn.in.empty()) return false;
  ValueId& operand = subject.rng.of(eqn.in);
  std::vector<ValueId> fitting;
  for (ValueId id = 0; id < function.values.size(); ++id) {
    const bool is_defined = known[id] > 0 || constant_of(function, id) ||
                            std::ranges::find(function.params, id) != function.params.end();
    if (id != operand && is_defined && known[id] <= at &&
        function.type(id) == function.type(operand)) {
      fitting.push_back(id);
    }
  }
  if (fitting.empty()) return false;
  operand = subject.rng.of(fitting);
  return true;
}

// An inner value is a result too: it must still exist.
bool second_use(Subject& subject) {
  if (subject.is_region) return false;
  const auto targets = float_values(subject.function);
  if (targets.empty() || subject.function.results.size() > 3) return false;
  subject.function.results.push_back(subject.rng.of(targets).id);
  subject.function.result_names.clear();
  return true;
}

// A reduction along another axis. Behind it stands a broadcast that puts the axis back; where the
// sizes differ, it is changed too.
bool other_axis(Subject& subject) {
  Function& function = subject.function;
  const auto all = matching(function, [&](const Eqn& eqn) {
    return eqn.primitive.starts_with("reduce_") && eqn.in.size() == 1 &&
           front::find(eqn.attrs, "axes") && front::get_ints(eqn, "axes").size() == 1 &&
           function.type(eqn.in[0]).shape.size() >= 2;
  });
  if (all.empty()) return false;
  Eqn& eqn = *subject.rng.of(all);
  const Dims shape = function.type(eqn.in[0]).shape;
  const auto axis = static_cast<std::int64_t>(subject.rng.below(shape.size()));
  Dims kept;
  Ints dims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (static_cast<std::int64_t>(i) == axis) continue;
    kept.push_back(shape[i]);
    dims.push_back(static_cast<std::int64_t>(i));
  }
  for (auto& [name, attr] : eqn.attrs) {
    if (name == "axes") attr = list(Ints{axis});
  }
  const ValueId out = eqn.out[0];
  function.values[out].type.shape = kept;
  for (Eqn& user : function.eqns) {
    const bool keeps = user.primitive == "broadcast_in_dim" && user.in[0] == out &&
                       function.type(user.out[0]).shape.size() == shape.size();
    if (!keeps) continue;
    Dims unit = shape;
    unit[static_cast<std::size_t>(axis)] = 1;
    function.values[user.out[0]].type.shape = unit;
    for (auto& [name, attr] : user.attrs) {
      if (name == "broadcast_dimensions") attr = list(dims);
      if (name == "shape") attr = list(unit);
    }
  }
  return true;
}

}  // namespace

std::vector<Mutation> eqn_mutations() {
  return {{"other literal", 9, other_literal}, {"operand for literal", 4, operand_for_literal},
          {"swap operands", 4, swap_operands}, {"other primitive", 5, other_primitive},
          {"drop equation", 4, drop_equation}, {"rewire", 4, rewire},
          {"second use", 3, second_use},       {"other axis", 4, other_axis}};
}

}  // namespace jaxport::fuzz
