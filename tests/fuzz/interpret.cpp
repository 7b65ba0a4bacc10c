// SPDX-License-Identifier: Apache-2.0
#include "interpret.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "eval/eval.h"
#include "rng.h"

namespace jaxport::fuzz {

namespace {

// The body that a call or a branch runs.
const front::Function* body_of(const front::Eqn& eqn, const std::vector<Tensor>& in) {
  if (eqn.primitive == "jit") return &front::get_region(eqn, "jaxpr");
  if (eqn.primitive != "cond") return nullptr;
  const auto& branches = *front::find(eqn.attrs, "branches")->get_if<front::List>();
  const auto last = std::ssize(branches) - 1;
  const auto index = std::clamp<std::ptrdiff_t>(in[0].int_at(0), 0, last);
  return branches[static_cast<std::size_t>(index)].get_if<front::Region>()->get();
}

bool is_loop_of_constants(const front::Eqn& eqn, const std::vector<Tensor>& in) {
  return eqn.primitive == "scan" && front::get_int(eqn, "num_consts") == std::ssize(in);
}

// Every step of such a loop gives the same.
std::vector<Tensor> repeated(std::vector<Tensor> step, std::int64_t times) {
  for (Tensor& tensor : step) {
    Shape shape = tensor.shape;
    shape.insert(shape.begin(), times);
    MutableTensor all = allocate(tensor.dtype, shape);
    for (std::int64_t i = 0; i < times && tensor.nbytes() > 0; ++i) {
      std::memcpy(all.bytes + static_cast<std::size_t>(i) * tensor.nbytes(), tensor.data.get(),
                  tensor.nbytes());
    }
    tensor = all.tensor;
  }
  return step;
}

std::vector<Tensor> results_of(const front::Function& function, const front::Eqn& eqn,
                               const std::vector<Tensor>& in, const Watch& watch,
                               const DimBindings& bindings) {
  if (const front::Function* body = body_of(eqn, in)) {
    const bool has_index = eqn.primitive == "cond";
    return interpret(*body, {in.begin() + (has_index ? 1 : 0), in.end()}, watch, bindings);
  }
  if (is_loop_of_constants(eqn, in)) {
    return repeated(interpret(front::get_region(eqn, "jaxpr"), in, watch, bindings),
                    evaluate(front::get_dim(eqn, "length"), bindings));
  }
  std::vector<front::Type> types;
  for (front::ValueId id : eqn.out) types.push_back(function.type(id));
  return eval::apply(eqn, in, types, bindings);
}

}  // namespace

std::vector<Tensor> interpret(const front::Function& function, const std::vector<Tensor>& inputs,
                              const Watch& watch, const DimBindings& outer) {
  const DimBindings bindings = eval::bind(function, inputs, outer);
  std::vector<Tensor> values(function.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[function.params[i]] = inputs[i];
  for (const front::Constant& c : function.constants) values[c.value] = c.tensor;
  for (const front::Eqn& eqn : function.eqns) {
    std::vector<Tensor> in;
    for (front::ValueId id : eqn.in) in.push_back(values[id]);
    std::vector<Tensor> out = results_of(function, eqn, in, watch, bindings);
    watch(eqn, in, out);
    for (std::size_t i = 0; i < out.size(); ++i) values[eqn.out[i]] = out[i];
  }
  std::vector<Tensor> results;
  for (front::ValueId id : function.results) results.push_back(values[id]);
  return results;
}

namespace {

bool is_among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool is_transcendental(std::string_view name) {
  return is_among(name,
                  {"erf", "erfc", "exp", "exp2", "expm1", "log", "log1p", "logistic", "tanh"});
}

bool rounds(std::string_view name) {
  return is_transcendental(name) ||
         is_among(name, {"add", "div", "dot_general", "integer_pow", "mul", "pow", "reduce_sum",
                         "rsqrt", "scan", "sqrt", "square", "sub"});
}

}  // namespace

namespace {

// What is not much larger than the error may vanish.
Tensor disturbed(const Tensor& tensor, double relative, double shift, double absolute, Rng& rng) {
  MutableTensor copy = allocate(DType::kF64, tensor.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor.at(i);
    const double by = relative * std::abs(x) + shift;
    double y = std::isfinite(x) ? x + (2 * rng.uniform() - 1) * by : x;
    if (std::abs(x) < 64 * absolute && rng.coin()) y = 0;
    copy.as<double>()[i] = y;
  }
  return copy.tensor;
}

}  // namespace

std::vector<Tensor> with_noise(const front::Function& function, const std::vector<Tensor>& inputs,
                               double relative, double absolute, std::uint64_t seed) {
  Rng rng(seed);
  const Watch disturb = [&](const front::Eqn& eqn, const std::vector<Tensor>&,
                            std::vector<Tensor>& out) {
    if (!rounds(eqn.primitive)) return;
    const double shift = is_transcendental(eqn.primitive) ? absolute : 0;
    for (Tensor& tensor : out) {
      if (tensor.dtype == DType::kF64) tensor = disturbed(tensor, relative, shift, absolute, rng);
    }
  };
  return interpret(function, inputs, disturb);
}

}  // namespace jaxport::fuzz
