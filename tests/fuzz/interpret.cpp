// SPDX-License-Identifier: Apache-2.0
#include "interpret.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "eval/eval.h"
#include "rng.h"

namespace jaxport::fuzz {

std::vector<Tensor> interpret(const front::Function& function, std::span<const Tensor> inputs,
                              const Watch& watch, const DimBindings& outer) {
  const DimBindings bindings = eval::bind(function, inputs, outer);
  const eval::RunRegion enter = [&](const front::Function& region, std::span<const Tensor> operands,
                                    const DimBindings& around) {
    return interpret(region, operands, watch, around);
  };
  std::vector<Tensor> values(function.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[function.params[i]] = inputs[i];
  for (const front::Constant& c : function.constants) values[c.value] = c.tensor;
  for (const front::Eqn& eqn : function.eqns) {
    std::vector<Tensor> in;
    for (front::ValueId id : eqn.in) in.push_back(values[id]);
    std::vector<front::Type> types;
    for (front::ValueId id : eqn.out) types.push_back(function.type(id));
    if (watch.before) watch.before(eqn, in);
    const auto apply = [&](const front::Eqn& other, const std::vector<Tensor>& operands) {
      return eval::apply(other, operands, types, bindings, enter);
    };
    std::vector<Tensor> out = apply(eqn, in);
    if (watch.after) watch.after(eqn, in, out, apply);
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
                         "rsqrt", "sqrt", "square", "sub"});
}

Tensor magnitudes(const Tensor& tensor) {
  MutableTensor copy = allocate(DType::kF64, tensor.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) copy.as<double>()[i] = std::abs(tensor.at(i));
  return copy.tensor;
}

// What sums lose digits of: the sum of the magnitudes of their terms.
Tensor terms_of(const front::Eqn& eqn, const std::vector<Tensor>& in, const Apply& apply) {
  front::Eqn sum = eqn;
  if (eqn.primitive == "sub") sum.primitive = "add";
  std::vector<Tensor> terms;
  for (const Tensor& operand : in) terms.push_back(magnitudes(operand));
  return apply(sum, terms)[0];
}

struct Noise {
  double relative, absolute;
  double vanishing;  // what is below so many errors may be 0
};

// Each number off by some of its error, which is relative to `size`. What is not much larger than
// the error may vanish: all of it, or here and there.
Tensor disturbed(const Tensor& tensor, const Tensor& size, const Noise& noise, Rng& rng) {
  MutableTensor copy = allocate(DType::kF64, tensor.shape);
  const bool vanishes = noise.vanishing > 0 && rng.one_in(3);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor.at(i), scale = size.at(i);
    const double error =
        noise.relative * std::abs(std::isfinite(scale) ? scale : x) + noise.absolute;
    double y = std::isfinite(x) ? x + (2 * rng.uniform() - 1) * error : x;
    if (std::abs(x) < noise.vanishing * error && (vanishes || rng.coin())) y = 0;
    copy.as<double>()[i] = y;
  }
  return copy.tensor;
}

}  // namespace

std::vector<Tensor> with_noise(const front::Function& function, const std::vector<Tensor>& inputs,
                               double relative, double absolute, std::uint64_t seed) {
  Rng rng(seed);
  const bool vanishes = seed % 2 == 0;
  // Kept, so that a value is known by the place of its numbers.
  std::map<const void*, Tensor> rounded;
  Watch disturb;
  disturb.before = [&](const front::Eqn& eqn, std::vector<Tensor>& in) {
    if (!rounds(eqn.primitive)) return;  // x != x asks for NaN
    for (Tensor& tensor : in) {
      if (rounded.contains(tensor.data.get()))
        tensor = disturbed(tensor, tensor, {relative, 0, 0}, rng);
    }
  };
  disturb.after = [&](const front::Eqn& eqn, const std::vector<Tensor>& in,
                      std::vector<Tensor>& out, const Apply& apply) {
    if (!rounds(eqn.primitive) || out[0].dtype != DType::kF64) return;
    const bool adds = is_among(eqn.primitive, {"add", "sub", "reduce_sum", "dot_general"});
    const Tensor size = adds ? terms_of(eqn, in, apply) : out[0];
    const bool is_relative = is_among(eqn.primitive, {"exp", "exp2"});
    const double shift = is_transcendental(eqn.primitive) && !is_relative ? absolute : 0;
    out[0] = disturbed(out[0], size, {relative, shift, vanishes ? 64.0 : 0.0}, rng);
    rounded.emplace(out[0].data.get(), out[0]);
  };
  return interpret(function, inputs, disturb);
}

}  // namespace jaxport::fuzz
