// SPDX-License-Identifier: Apache-2.0
// The interpreter: binds symbolic dims to the inputs and evaluates equations in order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "eval/eval.h"
#include "front/text.h"
#include "jaxport/error.h"

namespace jaxport::eval {
namespace {

std::vector<std::string> unbound_symbols(const Dim& dim, const DimBindings& bindings) {
  std::vector<std::string> symbols;
  collect_symbols(dim, symbols);
  std::erase_if(symbols, [&](const std::string& symbol) { return bindings.contains(symbol); });
  return symbols;
}

// The value of `symbol` that gives `dim` its size, when dim is linear in it.
std::optional<std::int64_t> solve(const Dim& dim, const std::string& symbol, std::int64_t size,
                                  DimBindings bindings) {
  const auto at = [&](std::int64_t value) {
    bindings[symbol] = value;
    return evaluate(dim, bindings);
  };
  const std::int64_t first = at(1), slope = at(2) - first;
  if (slope == 0 || (size - first) % slope != 0) return std::nullopt;
  const std::int64_t value = 1 + (size - first) / slope;
  if (value < 0 || at(value) != size) return std::nullopt;
  return value;
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{}[{}]", name_of(tensor.dtype), fmt::join(tensor.shape, ","));
}

[[noreturn]] void misfit(const front::Value& param, const Tensor& input) {
  throw Error("E041", fmt::format("input '{}' is {}, expected {}", param.name, describe(input),
                                  front::to_string(param.type)))
      .help("pass one array for each parameter, with its dtype and shape");
}

// Binds what one more pass over the parameters can bind; returns whether anything was new.
bool bind_more(const front::Function& function, std::span<const Tensor> inputs,
               DimBindings& bindings) {
  bool progress = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Dims& dims = function.type(function.params[i]).shape;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const std::vector<std::string> symbols = unbound_symbols(dims[axis], bindings);
      if (symbols.size() != 1) continue;
      const auto value = solve(dims[axis], symbols[0], inputs[i].shape[axis], bindings);
      if (value) bindings[symbols[0]] = *value;
      progress |= value.has_value();
    }
  }
  return progress;
}

}  // namespace

DimBindings bind(const front::Function& function, std::span<const Tensor> inputs,
                 DimBindings bindings) {
  if (inputs.size() != function.params.size()) {
    throw Error("E041", fmt::format("function '{}' takes {} inputs, got {}", function.name,
                                    function.params.size(), inputs.size()));
  }
  const auto param = [&](std::size_t i) { return function.values[function.params[i]]; };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const front::Type& type = param(i).type;
    const bool fits = type.dtype == inputs[i].dtype && type.shape.size() == inputs[i].shape.size();
    if (!fits) misfit(param(i), inputs[i]);
  }
  while (bind_more(function, inputs, bindings)) {
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Dims dims = param(i).type.shape;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const bool known = unbound_symbols(dims[axis], bindings).empty();
      const bool fits = known && evaluate(dims[axis], bindings) == inputs[i].shape[axis];
      if (!fits) misfit(param(i), inputs[i]);
    }
  }
  return bindings;
}

namespace {

// The values of one run, by ValueId.
class Environment {
 public:
  explicit Environment(const front::Function& function)
      : function_(function), values_(function.values.size()) {}

  void define(front::ValueId id, Tensor tensor) { values_.at(id) = std::move(tensor); }
  const Tensor& operator[](front::ValueId id) const {
    if (id < values_.size() && values_[id]) return *values_[id];
    throw Error("BUG",
                fmt::format("function '{}' uses a value before its definition", function_.name));
  }
  std::vector<Tensor> all(std::span<const front::ValueId> ids) const {
    std::vector<Tensor> tensors;
    tensors.reserve(ids.size());
    for (const front::ValueId id : ids) tensors.push_back((*this)[id]);
    return tensors;
  }

 private:
  const front::Function& function_;
  std::vector<std::optional<Tensor>> values_;
};

std::vector<Tensor> apply_in(const front::Function& function, const front::Eqn& eqn,
                             const Environment& values, const DimBindings& bindings) {
  std::vector<front::Type> types;
  for (const front::ValueId id : eqn.out) types.push_back(function.type(id));
  try {
    return apply(eqn, values.all(eqn.in), types, bindings);
  } catch (Error& error) {
    if (error.equation().empty()) error.equation(front::print(function, eqn));
    throw;
  }
}

}  // namespace

std::vector<Tensor> run(const front::Function& function, std::span<const Tensor> inputs,
                        const DimBindings& outer) {
  const DimBindings bindings = bind(function, inputs, outer);
  Environment values(function);
  for (const front::Constant& constant : function.constants) {
    values.define(constant.value, constant.tensor);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) values.define(function.params[i], inputs[i]);
  for (const front::Eqn& eqn : function.eqns) {
    std::vector<Tensor> results = apply_in(function, eqn, values, bindings);
    for (std::size_t i = 0; i < results.size(); ++i) {
      values.define(eqn.out[i], std::move(results[i]));
    }
  }
  return values.all(function.results);
}

}  // namespace jaxport::eval
