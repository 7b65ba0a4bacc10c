// SPDX-License-Identifier: Apache-2.0
#include "inspect/operators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "jaxport/error.h"
#include "onnx/schema.h"
#include "onnx/walk.h"

namespace jaxport::inspect {
namespace {

using onnx::Model;
using onnx::Node;
using onnx::ValueId;

// The operands and results whose types choose a kernel; of other ops it is the first operand.
struct Deciding {
  std::string_view op;
  std::vector<std::size_t> inputs, outputs;
};
const std::vector<Deciding>& deciding() {
  static const std::vector<Deciding> kRows{
      {"Cast", {0}, {0}},
      {"ConstantOfShape", {}, {0}},
      {"DynamicQuantizeLinear", {}, {0}},
      {"Gather", {0, 1}, {}},
      {"GatherElements", {0, 1}, {}},
      {"Multinomial", {}, {0}},
      {"Pow", {0, 1}, {}},
      {"QuantizeLinear", {}, {0}},
      {"RandomNormal", {}, {0}},
      {"RandomNormalLike", {}, {0}},
      {"RandomUniform", {}, {0}},
      {"RandomUniformLike", {}, {0}},
      {"Slice", {0, 1}, {}},
      {"Where", {1}, {}},
  };
  return kRows;
}

// As ONNX Runtime's sources spell it.
std::string_view cpp_name(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kI8:
      return "int8_t";
    case DType::kI16:
      return "int16_t";
    case DType::kI32:
      return "int32_t";
    case DType::kI64:
      return "int64_t";
    case DType::kU8:
      return "uint8_t";
    case DType::kU16:
      return "uint16_t";
    case DType::kU32:
      return "uint32_t";
    case DType::kU64:
      return "uint64_t";
    case DType::kF8E4M3FN:
      return "Float8E4M3FN";
    case DType::kF8E4M3FNUZ:
      return "Float8E4M3FNUZ";
    case DType::kF8E5M2:
      return "Float8E5M2";
    case DType::kF8E5M2FNUZ:
      return "Float8E5M2FNUZ";
    case DType::kBF16:
      return "BFloat16";
    case DType::kF16:
      return "MLFloat16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kString:
      return "std::string";
    default:
      return "";
  }
}

std::optional<std::string> type_at(const Model& model, const std::vector<ValueId>& ids,
                                   std::size_t index) {
  if (index >= ids.size() || ids[index] == onnx::kAbsent) return std::nullopt;
  const auto& type = model.values[ids[index]].type;
  if (!type || cpp_name(type->dtype).empty()) return std::nullopt;
  return std::string(cpp_name(type->dtype));
}

void note_types(const Model& model, const Node& node, OperatorTypes& types) {
  const auto note = [&](const std::vector<ValueId>& ids, std::size_t index, auto& noted) {
    const auto type = type_at(model, ids, index);
    type ? void(noted[index].insert(*type)) : void(types.is_known = false);
  };
  if (node.op == "OneHot") {  // indices, values, depth
    std::vector<std::string> names;
    for (std::size_t i : {0, 2, 1}) names.push_back(type_at(model, node.in, i).value_or(""));
    if (std::ranges::find(names, "") != names.end()) types.is_known = false;
    types.combinations.insert(std::move(names));
    return;
  }
  const auto row = std::ranges::find(deciding(), node.op, &Deciding::op);
  if (row == deciding().end()) {
    if (!node.in.empty()) note(node.in, 0, types.inputs);
    return;
  }
  for (std::size_t i : row->inputs) note(node.in, i, types.inputs);
  for (std::size_t i : row->outputs) note(node.out, i, types.outputs);
}

std::string json_of(const std::map<std::size_t, std::set<std::string>>& types) {
  std::vector<std::string> entries;
  for (const auto& [position, names] : types) {
    entries.push_back(fmt::format("\"{}\": [\"{}\"]", position, fmt::join(names, "\", \"")));
  }
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

std::string json_of(const OperatorTypes& types) {
  std::vector<std::string> entries;
  if (!types.inputs.empty()) entries.push_back("\"inputs\": " + json_of(types.inputs));
  if (!types.outputs.empty()) entries.push_back("\"outputs\": " + json_of(types.outputs));
  if (!types.combinations.empty()) {
    std::vector<std::string> rows;
    for (const auto& names : types.combinations) {
      rows.push_back(fmt::format("[\"{}\"]", fmt::join(names, "\", \"")));
    }
    entries.push_back(fmt::format("\"custom\": [{}]", fmt::join(rows, ", ")));
  }
  if (!types.is_known || entries.empty()) return "";
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

bool is_function(const Model& model, const Node& node) {
  return std::ranges::any_of(model.functions, [&](const onnx::Function& function) {
    return function.domain == node.domain && function.name == node.op;
  });
}

}  // namespace

void Operators::add(const Model& model) {
  const std::int64_t opset = model.opset();
  if (opset != 0 && (opset < onnx::kOldestOpset || opset > onnx::kNewestOpset)) {
    throw Error("E111", fmt::format("the operators of opset {} are not known", opset))
        .help(fmt::format("convert the model to an opset from {} to {}", onnx::kOldestOpset,
                          onnx::kNewestOpset));
  }
  onnx::for_each_graph_of(model, [&](const onnx::Graph& graph) {
    for (const Node& node : graph.nodes) add_node(model, node);
  });
}

// Calls of functions are inlined when the model is loaded, and constants are no nodes then.
void Operators::add_node(const Model& model, const Node& node) {
  if (is_function(model, node)) return;
  const bool is_onnx = node.domain.empty() || node.domain == "ai.onnx";
  if (is_onnx && node.op == "Constant") return;
  const onnx::Schema* schema =
      is_onnx ? onnx::find_schema(node.op, static_cast<int>(model.opset())) : nullptr;
  const std::int64_t since = schema ? schema->since : model.opset(node.domain);
  OperatorTypes& types = operators_[{is_onnx ? "ai.onnx" : node.domain, since, node.op}];
  bool has_bodies = false;
  onnx::for_each_subgraph(node, [&](const onnx::Graph&) { has_bodies = true; });
  if (!has_bodies) note_types(model, node, types);
}

std::string Operators::config(bool with_types) const {
  std::map<std::pair<std::string, std::int64_t>, std::vector<std::string>> lines;
  for (const auto& [key, types] : operators_) {
    const auto& [domain, since, op] = key;
    lines[{domain, since}].push_back(op + (with_types ? json_of(types) : ""));
  }
  std::string text;
  for (const auto& [key, ops] : lines) {
    text += fmt::format("{};{};{}\n", key.first, key.second, fmt::join(ops, ","));
  }
  return text;
}

}  // namespace jaxport::inspect
