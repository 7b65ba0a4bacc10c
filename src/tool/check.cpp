// SPDX-License-Identifier: Apache-2.0
#include "tool/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "jaxport/error.h"
#include "onnx/check.h"
#include "onnx/walk.h"

namespace jaxport::tool {
namespace {

using onnx::Graph;
using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

class Checker {
 public:
  explicit Checker(const onnx::Model& model) : model_(model), visible_(model.values.size()) {}

  Findings run() {
    check_header();
    for (const char* border : {"input", "output"}) check_border(border);
    check_graph(model_.graph, "");
    for (const onnx::Function& function : model_.functions) {
      check_graph(function.body, fmt::format("function '{}': ", function.name));
    }
    for (const auto& [op, count] : onnx::stats(model_).foreign) {
      findings_.notes.push_back(
          fmt::format("{} node{} of {} {} an implementation in the runtime: docs/custom-ops.md",
                      count, count == 1 ? "" : "s", op, count == 1 ? "needs" : "need"));
    }
    return std::move(findings_);
  }

 private:
  template <class... T>
  void problem(fmt::format_string<T...> format, T&&... args) {
    findings_.problems.push_back(fmt::format(format, std::forward<T>(args)...));
  }

  std::string_view name(ValueId id) const { return model_.values[id].name; }

  void check_header() {
    if (model_.ir_version < 3) problem("IR version {} is not valid", model_.ir_version);
    if (model_.graph.name.empty()) problem("the graph has no name");
    if (model_.opsets.empty()) problem("the model imports no opset");
    std::set<std::string_view> domains;
    for (const onnx::OpsetImport& opset : model_.opsets) {
      if (!domains.insert(opset.domain).second) {
        problem("domain '{}' is imported twice", opset.domain);
      }
    }
    const std::int64_t opset = model_.opset();
    if (opset != 0 && !has_schemas(opset)) {
      findings_.notes.push_back(
          fmt::format("opset {} is outside of {} to {}: operators were not checked", opset,
                      onnx::kOldestOpset, onnx::kNewestOpset));
    }
  }

  static bool has_schemas(std::int64_t opset) {
    return opset >= onnx::kOldestOpset && opset <= onnx::kNewestOpset;
  }

  void check_border(std::string_view border) {
    const auto& ids = border == "input" ? model_.graph.inputs : model_.graph.outputs;
    for (ValueId id : ids) {
      const std::optional<onnx::TensorType>& type = model_.values[id].type;
      if (!type) {
        findings_.notes.push_back(fmt::format("{} '{}' is no tensor", border, name(id)));
      } else if (type->shape) {
        check_sizes(border, id, *type->shape);
      }
    }
  }

  void check_sizes(std::string_view border, ValueId id, const Dims& shape) {
    const auto is_negative = [](const Dim& dim) { return dim.is_static() && dim.value() < 0; };
    if (std::ranges::any_of(shape, is_negative)) {
      problem("{} '{}' has a negative size", border, name(id));
    }
  }

  // `where` names the graph for messages: "" for the main one, else "then_branch of node 'x': ".
  void check_graph(const Graph& graph, const std::string& where) {
    std::vector<ValueId> defined;
    const std::unordered_set<ValueId> own = defined_in(graph);
    for (ValueId id : graph.inputs) define(id, where, defined);
    const std::unordered_set<ValueId> inputs(graph.inputs.begin(), graph.inputs.end());
    std::unordered_set<ValueId> initialized;
    for (const onnx::Initializer& constant : graph.initializers) {
      const ValueId id = constant.value;
      const bool is_new = initialized.insert(id).second;
      // An initializer may have the name of an input: it is the input's default then.
      if (!is_new || !inputs.contains(id)) define(id, where, defined);
    }
    std::unordered_set<std::string_view> node_names;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      const std::string node_where = where + describe_node(node, i);
      if (!node.name.empty() && !node_names.insert(node.name).second) {
        problem("{}: an earlier node has the same name", node_where);
      }
      for (ValueId id : node.in) check_use(id, own, node_where);
      check_subgraphs(node, node_where);
      check_op(node, node_where);
      for (ValueId id : node.out) {
        if (id != kAbsent) define(id, node_where + ": ", defined);
      }
    }
    for (ValueId id : graph.outputs) check_use(id, own, where + "output of the graph");
    for (ValueId id : defined) visible_[id] = false;
  }

  static std::string describe_node(const Node& node, std::size_t index) {
    return node.name.empty() ? fmt::format("node {} ({})", index, node.op)
                             : fmt::format("node '{}' ({})", node.name, node.op);
  }

  static std::unordered_set<ValueId> defined_in(const Graph& graph) {
    std::unordered_set<ValueId> ids(graph.inputs.begin(), graph.inputs.end());
    for (const onnx::Initializer& constant : graph.initializers) ids.insert(constant.value);
    for (const Node& node : graph.nodes) ids.insert(node.out.begin(), node.out.end());
    return ids;
  }

  void define(ValueId id, const std::string& where, std::vector<ValueId>& defined) {
    if (visible_[id]) problem("{}value '{}' is defined twice", where, name(id));
    visible_[id] = true;
    defined.push_back(id);
  }

  void check_use(ValueId id, const std::unordered_set<ValueId>& own, const std::string& where) {
    if (id == kAbsent || visible_[id]) return;
    if (own.contains(id)) {
      problem("{}: value '{}' is used before it is defined", where, name(id));
    } else {
      problem("{}: value '{}' is not defined anywhere", where, name(id));
    }
  }

  void check_subgraphs(const Node& node, const std::string& where) {
    for (const onnx::Attribute& attr : node.attrs) {
      if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attr.value)) {
        check_graph(**graph, fmt::format("{}, {}: ", where, attr.name));
      }
    }
  }

  void check_op(const Node& node, const std::string& where) {
    const std::int64_t opset = model_.opset(node.domain);
    if (opset == 0) {
      const std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
      problem("{}: domain '{}' is not imported", where, domain);
      return;
    }
    if (!node.domain.empty() || !has_schemas(opset)) return;
    // The checks of onnx/ stop at the first problem of a node; for us it is the user's model.
    try {
      check_types(node, onnx::require_schema(node.op, static_cast<int>(opset)), where);
    } catch (const Error& error) {
      problem("{}: {}", where, error.message());
    }
  }

  void check_types(const Node& node, const onnx::Schema& schema, const std::string& where) {
    std::vector<onnx::InferenceInput> in;
    for (ValueId id : node.in) {
      const bool is_typed = id != kAbsent && model_.values[id].type.has_value();
      in.push_back({is_typed ? &*model_.values[id].type : nullptr, nullptr});
    }
    const auto inferred = onnx::infer(model_, schema, node, in);
    for (std::size_t i = 0; i < node.out.size(); ++i) {
      if (node.out[i] == kAbsent || !inferred[i]) continue;
      const std::optional<onnx::TensorType>& declared = model_.values[node.out[i]].type;
      if (declared && onnx::contradict(*declared, *inferred[i])) {
        problem("{}: result '{}' is declared as {}, but is {}", where, name(node.out[i]),
                onnx::to_string(*declared), onnx::to_string(*inferred[i]));
      }
    }
  }

  const onnx::Model& model_;
  std::vector<bool> visible_;  // by value: defined in this graph or around it
  Findings findings_;
};

}  // namespace

Findings check(const onnx::Model& model) { return Checker(model).run(); }

}  // namespace jaxport::tool
