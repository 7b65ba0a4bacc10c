// SPDX-License-Identifier: Apache-2.0
#include "shrink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "edit.h"
#include "front/text.h"
#include "jaxport/error.h"

namespace jaxport::fuzz {
namespace {

using front::Eqn;
using front::Function;
using front::ValueId;

// Most finds are small after 200 tries.
constexpr int kMostTries = 1500;

class Shrinker {
 public:
  Shrinker(const Checker& checker, Find find) : checker_(checker), find_(std::move(find)) {}

  Find run() {
    try_change([](Function& f) { clean(f, true); });
    for (bool progress = true; progress && tries_ < kMostTries;) {
      progress = inline_calls() | drop_results() | drop_equations() | cut_equations() |
                 smaller_sizes() | simpler_literals();
    }
    return std::move(find_);
  }

 private:
  template <class Change>
  bool try_change(const Change& change) {
    if (++tries_ > kMostTries) return false;
    Function candidate = find_.function;
    try {
      change(candidate);
      clean(candidate, true);
    } catch (const Error&) {
      return false;
    }
    Verdict verdict = checker_.check(candidate);
    if (!verdict.difference) return false;
    find_ = {std::move(candidate), std::move(verdict)};
    return true;
  }

  // A body that is called or looped over takes the place of the function.
  bool inline_calls() {
    for (std::size_t i = 0; i < find_.function.eqns.size(); ++i) {
      const Eqn eqn = find_.function.eqns[i];
      if (region_count(eqn) == 0) continue;
      const bool done = try_change([&](Function& f) {
        Eqn copy = eqn;
        edit_region(copy, 0, [&](Function& body) {
          const std::string name = f.name;
          f = body;
          f.name = name;
        });
      });
      if (done) return true;
    }
    return false;
  }

  bool drop_results() {
    bool progress = false;
    for (std::size_t i = find_.function.results.size(); i-- > 0;) {
      if (find_.function.results.size() < 2) break;
      progress |= try_change([&](Function& f) {
        f.results.erase(f.results.begin() + static_cast<std::ptrdiff_t>(i));
        f.result_names.clear();
      });
    }
    return progress;
  }

  // A result is one of the operands instead.
  bool drop_equations() {
    bool progress = false;
    for (std::size_t i = find_.function.eqns.size(); i-- > 0;) {
      if (i >= find_.function.eqns.size()) continue;
      const Eqn eqn = find_.function.eqns[i];
      if (eqn.out.size() != 1) continue;
      for (ValueId in : eqn.in) {
        if (find_.function.type(in) != find_.function.type(eqn.out[0])) continue;
        const bool done = try_change([&](Function& f) { replace_uses(f, eqn.out[0], in, i + 1); });
        progress |= done;
        if (done) break;
      }
    }
    return progress;
  }

  // A result is an input instead, or the function ends there.
  bool cut_equations() {
    bool progress = false;
    for (std::size_t i = 0; i < find_.function.eqns.size(); ++i) {
      const Eqn eqn = find_.function.eqns[i];
      if (eqn.out.size() != 1) continue;
      progress |= try_change([&](Function& f) {
        const ValueId input = f.add_value(f.type(eqn.out[0]));
        f.params.push_back(input);
        replace_uses(f, eqn.out[0], input, i + 1);
      });
      if (i >= find_.function.eqns.size()) break;
      progress |= try_change([&](Function& f) {
        if (f.results == f.eqns[i].out) throw Error("E030", "nothing changes");
        f.results = f.eqns[i].out;
        f.result_names.clear();
      });
    }
    return progress;
  }

  bool smaller_sizes() {
    std::vector<Dim> sizes;
    for (ValueId id : find_.function.params) {
      for (const Dim& dim : find_.function.type(id).shape) {
        if (std::ranges::find(sizes, dim) == sizes.end()) sizes.push_back(dim);
      }
    }
    bool progress = false;
    for (const Dim& size : sizes) {
      for (std::int64_t smaller : {1, 2, 3}) {
        if (size.is_static() && size.value() <= smaller) break;
        if (try_change([&](Function& f) { replace_size(f, size, smaller); })) {
          progress = true;
          break;
        }
      }
    }
    return progress;
  }

  bool simpler_literals() {
    bool progress = false;
    for (std::size_t i = 0; i < find_.function.constants.size(); ++i) {
      const Tensor tensor = find_.function.constants[i].tensor;
      if (!tensor.is_scalar() || !is_float(tensor.dtype)) continue;
      for (double simple : {0.0, 1.0, -1.0, 0.5, 2.0}) {
        if (i >= find_.function.constants.size() || tensor.at(0) == simple) break;
        if (try_change(
                [&](Function& f) { f.constants[i].tensor = scalar(tensor.dtype, simple); })) {
          progress = tensor.at(0) != 0 && tensor.at(0) != 1;
          break;
        }
      }
    }
    return progress;
  }

  const Checker& checker_;
  Find find_;
  int tries_ = 0;
};

// Zeros and ones as long as it still differs.
std::vector<Tensor> simpler_inputs(const Checker& checker, const Find& find) {
  std::vector<Tensor> inputs = find.verdict.difference->inputs;
  const DType dtype = find.verdict.difference->dtype;
  for (Tensor& tensor : inputs) {
    if (tensor.size() > 64 || !is_float(tensor.dtype)) continue;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      for (double simple : {0.0, 1.0}) {
        const Tensor before = tensor;
        MutableTensor copy = allocate(DType::kF64, tensor.shape);
        for (std::int64_t k = 0; k < tensor.size(); ++k) copy.as<double>()[k] = tensor.at(k);
        if (copy.as<double>()[i] == 0 || copy.as<double>()[i] == 1) break;
        copy.as<double>()[i] = simple;
        tensor = before.dtype == DType::kF64
                     ? copy.tensor
                     : cast_all({copy.tensor}, DType::kF64, before.dtype)[0];
        if (checker.check_at(find.function, inputs, dtype)) break;
        tensor = before;
      }
    }
  }
  return inputs;
}

std::string values_of(const Tensor& tensor) {
  std::vector<std::string> items;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(tensor.size(), 64); ++i) {
    items.push_back(fmt::format("{:.9g}", tensor.at(i)));
  }
  return fmt::format("{}[{}] {}", name_of(tensor.dtype), fmt::join(tensor.shape, ","),
                     fmt::join(items, " "));
}

}  // namespace

Find shrunk(const Checker& checker, Find find) {
  Find result = Shrinker(checker, std::move(find)).run();
  if (!result.verdict.difference->inputs.empty()) {
    auto simpler = simpler_inputs(checker, result);
    if (auto difference =
            checker.check_at(result.function, simpler, result.verdict.difference->dtype)) {
      result.verdict.difference = std::move(difference);
    }
  }
  return result;
}

std::vector<std::string> blamed(const Checker& checker, const Function& function) {
  std::vector<std::string> rules;
  front::Module dims = checker.module_of(function);
  for (const raise::Rule& rule : raise::all_rules()) {
    Stage stage = checker.stage();
    stage.options.without.emplace_back(rule.name);
    if (!Checker(dims, stage).check(function).difference) rules.emplace_back(rule.name);
  }
  return rules;
}

std::string report(const Checker& checker, const Find& find,
                   const std::vector<std::string>& rules) {
  const Difference& difference = *find.verdict.difference;
  std::string text =
      fmt::format("// rules: {}; raised: {}\n// {}; off by {:.3g}\n", fmt::join(rules, ", "),
                  fmt::join(find.verdict.raised, ", "), difference.what, difference.size);
  for (std::size_t i = 0; i < difference.inputs.size(); ++i) {
    text += fmt::format("// %{} = {}\n", find.function.values[find.function.params[i]].name,
                        values_of(difference.inputs[i]));
  }
  return text + front::print(checker.module_of(find.function));
}

}  // namespace jaxport::fuzz
