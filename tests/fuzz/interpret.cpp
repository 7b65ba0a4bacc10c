// SPDX-License-Identifier: Apache-2.0
#include "interpret.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "common.h"
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

bool is_transcendental(std::string_view name) {
  return is_among(name,
                  {"erf", "erfc", "exp", "exp2", "expm1", "log", "log1p", "logistic", "tanh"});
}

bool rounds(std::string_view name) {
  return is_transcendental(name) ||
         is_among(name, {"add", "div", "dot_general", "integer_pow", "mul", "pow", "reduce_sum",
                         "rsqrt", "sqrt", "square", "sub"});
}

Tensor magnitudes(const Tensor& tensor, double factor) {
  MutableTensor copy = allocate(DType::kF64, tensor.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    copy.as<double>()[i] = factor == 0 ? 0 : factor * std::abs(tensor.at(i));
  }
  return copy.tensor;
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

// Runs a program with noise. A value has a size, which its error is relative to: larger than itself
// where it is what is left of larger terms.
class Disturber {
 public:
  Disturber(double relative, double absolute, std::uint64_t seed)
      : relative_(relative), absolute_(absolute), vanishes_(seed % 2 == 0), rng_(seed) {}

  // Who reads a rounded value reads another one.
  void read(const front::Eqn& eqn, std::vector<Tensor>& in) {
    if (!rounds(eqn.primitive)) return;  // x != x asks for NaN
    for (Tensor& tensor : in) {
      const auto known = rounded_.find(tensor.data.get());
      if (known == rounded_.end()) continue;
      const Tensor size = known->second.size;
      tensor = disturbed(tensor, size, {relative_, 0, 0}, rng_);
      remember(tensor, size);
    }
  }

  void write(const front::Eqn& eqn, const std::vector<Tensor>& in, Tensor& out,
             const Apply& apply) {
    if (out.dtype != DType::kF64) return;
    if (!rounds(eqn.primitive)) {
      const bool moves =
          is_among(eqn.primitive, {"broadcast_in_dim", "neg", "reshape", "transpose"});
      if (moves && is_known(in[0])) {
        remember(out, size_of(eqn, in, apply));
      } else if (!moves || exact_.contains(in[0].data.get())) {
        exact_.emplace(out.data.get(), out);
      }
      return;
    }
    const Tensor size = size_of_rounded(eqn, in, out, apply);
    const bool is_relative = is_among(eqn.primitive, {"exp", "exp2"});
    const double shift = is_transcendental(eqn.primitive) && !is_relative ? absolute_ : 0;
    out = disturbed(out, size, {relative_, shift, vanishes_ ? 64.0 : 0.0}, rng_);
    // What vanished is 0 for everybody.
    remember(out, combined(out, size, [](double x, double of) { return x == 0 ? 0 : of; }));
  }

 private:
  // Kept, so that a value is known by the place of its numbers.
  struct Rounded {
    Tensor value, size;
  };
  void remember(const Tensor& value, const Tensor& size) {
    rounded_.insert_or_assign(value.data.get(), Rounded{value, size});
  }
  bool is_known(const Tensor& value) const { return rounded_.contains(value.data.get()); }

  Tensor size_of_rounded(const front::Eqn& eqn, const std::vector<Tensor>& in, const Tensor& out,
                         const Apply& apply) const {
    if (is_among(eqn.primitive, {"mul", "reduce_sum", "dot_general"}))
      return size_of(eqn, in, apply);
    if (!is_among(eqn.primitive, {"add", "sub"})) return out;
    front::Eqn sum = eqn;
    sum.primitive = "add";
    const Tensor terms = size_of(sum, in, apply);
    return combined(out, terms, [](double x, double of) { return std::max(std::abs(x), of); });
  }

  template <class Size>
  static Tensor combined(const Tensor& value, const Tensor& size, const Size& function) {
    MutableTensor result = allocate(DType::kF64, value.shape);
    for (std::int64_t i = 0; i < value.size(); ++i) {
      result.as<double>()[i] = function(value.at(i), size.at(i));
    }
    return result.tensor;
  }

  // The equation with the sizes of its operands.
  Tensor size_of(const front::Eqn& eqn, const std::vector<Tensor>& in, const Apply& apply) const {
    const bool sums = eqn.primitive == "add";
    std::vector<Tensor> sizes;
    for (const Tensor& operand : in) {
      const auto known = rounded_.find(operand.data.get());
      const bool adds_none = sums && exact_.contains(operand.data.get());
      sizes.push_back(known == rounded_.end() ? magnitudes(operand, adds_none ? 0 : 1)
                                              : magnitudes(known->second.size, 1));
    }
    return magnitudes(apply(eqn, sizes)[0], 1);
  }

  double relative_, absolute_;
  bool vanishes_;
  Rng rng_;
  std::map<const void*, Rounded> rounded_;
  // What was chosen and not computed, such as the fill of a mask and the maximum of a row: nobody
  // moves it past other terms of a sum.
  std::map<const void*, Tensor> exact_;
};

}  // namespace

std::vector<Tensor> with_noise(const front::Function& function, const std::vector<Tensor>& inputs,
                               double relative, double absolute, std::uint64_t seed) {
  Disturber disturber(relative, absolute, seed);
  Watch watch;
  watch.before = [&](const front::Eqn& eqn, std::vector<Tensor>& in) { disturber.read(eqn, in); };
  watch.after = [&](const front::Eqn& eqn, const std::vector<Tensor>& in, std::vector<Tensor>& out,
                    const Apply& apply) {
    if (!out.empty()) disturber.write(eqn, in, out[0], apply);
  };
  return interpret(function, inputs, watch);
}

}  // namespace jaxport::fuzz
