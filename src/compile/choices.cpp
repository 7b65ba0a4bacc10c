// SPDX-License-Identifier: Apache-2.0
#include "compile/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "jaxport/error.h"

namespace jaxport::compile {
namespace {

const std::vector<Choice>& rows() {
  static const std::vector<Choice> rows = {
      {"opset", "--opset", "version of the operator set; auto is the newest that the target runs",
       &Choices::opset},
      {"target", "--target",
       "what must run the model: onnxruntime, onnxruntime>=1.28, onnxruntime==1.20, "
       "onnxruntime-web, or onnx for the specification alone",
       &Choices::target},
      {"model_name", "--name", "name of the graph", &Choices::model_name},
      {"raise_", "--no-raise", "keep softmax, layer norm, … as arithmetic", &Choices::raise},
      {"without_rules", "--without", "raise rules to leave out", &Choices::without_rules},
      {"normalization_mode",
       "--normalization-mode",
       "auto: the ops that run fastest; prefer_native: the op of each norm; "
       "force_decomposed: arithmetic",
       &Choices::normalization_mode,
       {"auto", "prefer_native", "force_decomposed"}},
      {"precision",
       "--precision",
       "f16, bf16: compute in it where the target is good at it and the numbers allow it",
       &Choices::precision,
       {"f32", "f16", "bf16"}},
      {"precision_io", "--precision-io", "with --precision: inputs and outputs in it, too",
       &Choices::precision_io},
      {"exact", "--exact",
       "JAX's numbers also where that costs: NaN in maxima, the sign of zeros, …", &Choices::exact},
      {"functions",
       "--functions",
       "marked: what jaxport.onnx_function marks becomes a function of the model; auto: also what "
       "the program repeats",
       &Choices::functions,
       {"marked", "auto"}},
      {"on_unsupported",
       "--on-unsupported",
       "what has no lowering: error; custom_op: it becomes a node of the domain jaxport.custom, "
       "which you implement in the runtime",
       &Choices::on_unsupported,
       {"error", "custom_op"}},
      {"unroll_layers", "--unroll-layers",
       "most steps of a scan over large constants that are unrolled", &Choices::unroll_layers},
  };
  return rows;
}

void check_texts(const Choices& choices) {
  for (const Choice& row : rows()) {
    if (row.allowed.empty()) continue;
    const std::string& given = choices.*std::get<std::string Choices::*>(row.member);
    if (std::ranges::find(row.allowed, given) != row.allowed.end()) continue;
    throw Error("E075", fmt::format("{} '{}' is unknown", row.name, given))
        .help(fmt::format("use one of '{}'", fmt::join(row.allowed, "', '")));
  }
}

}  // namespace

std::span<const Choice> all_choices() { return rows(); }

const Choice* find_choice(std::string_view name) {
  const auto found = std::ranges::find(rows(), name, &Choice::name);
  return found == rows().end() ? nullptr : &*found;
}

Options compile_options(const Choices& choices) {
  check_texts(choices);
  if (choices.model_name.empty()) {
    throw Error("E075", "model_name is empty").help("a graph of ONNX has a name");
  }
  Options options;
  options.target = target::target_from_name(choices.target);
  options.opset =
      choices.opset == kAutoOpset ? target::newest_opset(options.target) : choices.opset;
  options.model_name = choices.model_name;
  options.raise.enabled = choices.raise;
  options.raise.without = choices.without_rules;
  options.raise.norms = choices.normalization_mode != "force_decomposed";
  options.native_norms = choices.normalization_mode == "prefer_native";
  options.precision = {dtype_from_name(choices.precision).value(), choices.precision_io};
  options.exact = choices.exact;
  options.auto_functions = choices.functions == "auto";
  options.custom_ops = choices.on_unsupported == "custom_op";
  options.most_unrolled_layers = choices.unroll_layers;
  return options;
}

}  // namespace jaxport::compile
