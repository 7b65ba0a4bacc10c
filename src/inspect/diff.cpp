// SPDX-License-Identifier: Apache-2.0
// Two models as lists of facts, compared line by line.
#include "inspect/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "inspect/table.h"
#include "onnx/check.h"

namespace jaxport::inspect {
namespace {

using onnx::Graph;
using onnx::Model;
using onnx::Node;
using onnx::ValueId;

using Fact = std::pair<std::string, std::string>;  // what it is about, and what it says
using Facts = std::vector<Fact>;

// Dtype, shape and a hash of the content: two models with other weights are two models.
std::string tensor_text(const Tensor& tensor, const Shape& shape) {
  const onnx::TensorType type{tensor.dtype, Dims(shape.begin(), shape.end())};
  return fmt::format("{} #{:016x}", onnx::to_string(type), content_hash(tensor));
}

std::string initializer_text(const onnx::Initializer& constant) {
  Tensor tensor = materialise(constant.view);
  tensor.shape = constant.shape;
  return tensor_text(tensor, constant.shape);
}

std::string domain_text(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

// Every node of a graph and of the graphs inside it, in order, as text that says all about it.
class NodeFacts {
 public:
  explicit NodeFacts(const Model& model) : model_(model) {
    add_graph(model.graph, "");
    for (const onnx::Function& function : model.functions) add_function(function);
  }
  Facts take() && { return std::move(facts_); }

 private:
  void add_graph(const Graph& graph, const std::string& prefix) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const std::string what = fmt::format("{}node {}", prefix, i);
      facts_.emplace_back(what, text(graph.nodes[i]));
      for (const onnx::Attribute& attr : graph.nodes[i].attrs) {
        const auto* inner = std::get_if<std::shared_ptr<Graph>>(&attr.value);
        if (inner != nullptr) add_graph(**inner, fmt::format("{} {} ", what, attr.name));
      }
    }
  }

  void add_function(const onnx::Function& function) {
    const std::string what = fmt::format("function {}.{}", function.domain, function.name);
    facts_.emplace_back(
        what, fmt::format("({})->({})", names(function.body.inputs), names(function.body.outputs)));
    add_graph(function.body, what + " ");
  }

  std::string text(const Node& node) const {
    std::vector<std::string> attributes;
    for (const onnx::Attribute& attr : node.attrs) {
      attributes.push_back(attr.name + "=" +
                           std::visit([&](const auto& v) { return value_text(v); }, attr.value));
    }
    const std::string prefix = node.domain.empty() ? "" : node.domain + ".";
    return fmt::format("{} = {}{}({}){}{}", names(node.out), prefix, node.op, names(node.in),
                       attributes.empty() ? "" : " ", fmt::join(attributes, " "));
  }

  std::string names(const std::vector<ValueId>& ids) const {
    std::vector<std::string> parts;
    parts.reserve(ids.size());
    for (ValueId id : ids) parts.push_back(id == onnx::kAbsent ? "-" : model_.values[id].name);
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  static std::string value_text(std::int64_t value) { return fmt::to_string(value); }
  static std::string value_text(float value) { return fmt::format("{}f", value); }
  static std::string value_text(const std::string& value) { return fmt::format("{:?}", value); }
  static std::string value_text(const Tensor& value) { return tensor_text(value, value.shape); }
  template <class T>
  static std::string value_text(const std::vector<T>& values) {
    std::vector<std::string> parts;
    parts.reserve(values.size());
    for (const T& value : values) parts.push_back(value_text(value));
    return fmt::format("({})", fmt::join(parts, ", "));
  }
  std::string value_text(const std::shared_ptr<Graph>& graph) const {
    std::string text = fmt::format("graph({})->({})", names(graph->inputs), names(graph->outputs));
    for (const onnx::Initializer& constant : graph->initializers) {
      text +=
          fmt::format(" {}: {}", model_.values[constant.value].name, initializer_text(constant));
    }
    return text;
  }

  const Model& model_;
  Facts facts_;
};

Facts header_facts(const Model& model) {
  Facts facts{{"ir version", fmt::to_string(model.ir_version)}};
  for (const onnx::OpsetImport& opset : model.opsets) {
    facts.emplace_back("opset " + domain_text(opset.domain), fmt::to_string(opset.version));
  }
  facts.emplace_back("producer", model.producer_name + " " + model.producer_version);
  facts.emplace_back("model version", fmt::to_string(model.model_version));
  facts.emplace_back("model domain", model.domain);
  facts.emplace_back("doc", model.doc);
  facts.emplace_back("graph", model.graph.name);
  for (const auto& [key, value] : model.metadata) facts.emplace_back("metadata " + key, value);
  return facts;
}

void add_border(Facts& facts, const Model& model, const char* border,
                const std::vector<ValueId>& ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const onnx::ValueInfo& info = model.values[ids[i]];
    facts.emplace_back(
        fmt::format("{} {}", border, i),
        fmt::format("{} {}", info.name, info.type ? onnx::to_string(*info.type) : "?"));
  }
}

Facts border_facts(const Model& model) {
  Facts facts;
  add_border(facts, model, "input", model.graph.inputs);
  add_border(facts, model, "output", model.graph.outputs);
  return facts;
}

Facts weight_facts(const Model& model) {
  Facts facts;
  for (const onnx::Initializer& constant : model.graph.initializers) {
    facts.emplace_back("initializer " + model.values[constant.value].name,
                       initializer_text(constant));
  }
  return facts;
}

Facts size_facts(const Model& model) {
  const onnx::Stats stats = onnx::stats(model);
  return {{"parameters", with_separators(stats.parameters)},
          {"tensor bytes", with_separators(stats.initializer_bytes)},
          {"functions", fmt::to_string(model.functions.size())}};
}

Facts count_facts(const Model& model) {
  const onnx::Stats stats = onnx::stats(model);
  Facts facts{{"nodes", fmt::to_string(stats.nodes)}};
  for (const auto& [op, count] : stats.ops) {
    facts.emplace_back("nodes " + op, fmt::to_string(count));
  }
  return facts;
}

// Facts of both sides with the same key are one row; the order is that of the left side.
void pair_up(const Facts& lhs, const Facts& rhs, std::vector<Difference>& into) {
  std::map<std::string_view, std::string_view> left(lhs.begin(), lhs.end());
  std::map<std::string_view, std::string_view> right(rhs.begin(), rhs.end());
  for (const auto& [what, text] : lhs) {
    const auto other = right.find(what);
    into.push_back({what, text, other == right.end() ? "" : std::string(other->second)});
  }
  for (const auto& [what, text] : rhs) {
    if (!left.contains(what)) into.push_back({what, "", text});
  }
}

std::optional<Difference> first_difference(const Facts& lhs, const Facts& rhs) {
  const auto [left, right] = std::ranges::mismatch(lhs, rhs);
  if (left == lhs.end() && right == rhs.end()) return std::nullopt;
  const Fact none;
  const Fact& a = left == lhs.end() ? none : *left;
  const Fact& b = right == rhs.end() ? none : *right;
  return Difference{a.first.empty() ? b.first : a.first, a.second, b.second};
}

}  // namespace

std::vector<Difference> differences(const Model& lhs, const Model& rhs) {
  std::vector<Difference> found;
  for (const auto facts : {header_facts, border_facts, weight_facts, count_facts}) {
    pair_up(facts(lhs), facts(rhs), found);
  }
  std::erase_if(found, [](const Difference& row) { return row.lhs == row.rhs; });
  const auto node = first_difference(NodeFacts(lhs).take(), NodeFacts(rhs).take());
  if (node) found.push_back(*node);
  return found;
}

std::vector<Difference> side_by_side(const Model& lhs, const Model& rhs) {
  std::vector<Difference> rows;
  for (const auto facts : {header_facts, border_facts, size_facts, count_facts}) {
    pair_up(facts(lhs), facts(rhs), rows);
  }
  std::erase_if(rows, [](const Difference& row) { return row.lhs.empty() && row.rhs.empty(); });
  return rows;
}

}  // namespace jaxport::inspect
