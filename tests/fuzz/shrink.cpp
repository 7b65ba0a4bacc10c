// SPDX-License-Identifier: Apache-2.0
#include "shrink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "front/text.h"
#include "reduce/reduce.h"

namespace jaxport::fuzz {
namespace {

using front::Function;

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
  Find result = std::move(find);
  // Most finds are small after 200 tries.
  const reduce::Options options{.most_tries = 1500,
                                .keeps =
                                    [&](const Function& smaller) {
                                      Verdict verdict = checker.check(smaller);
                                      if (!verdict.difference) return false;
                                      result.verdict = std::move(verdict);
                                      return true;
                                    },
                                .on_progress = {}};
  result.function = reduce::reduced(result.function, options);
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
