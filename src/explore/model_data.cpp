// SPDX-License-Identifier: Apache-2.0
#include "explore/model_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "explore/cost.h"
#include "onnx/check.h"
#include "onnx/walk.h"
#include "target/fit.h"

namespace jaxport::explore {
namespace {

using onnx::Node;
using onnx::ValueId;

enum ValueKind : std::uint8_t { kComputed = 0, kInput = 1, kInitializer = 2 };

std::string metadata_of(const std::vector<std::pair<std::string, std::string>>& metadata,
                        std::string_view key) {
  for (const auto& [name, value] : metadata) {
    if (name == key) return value;
  }
  return "";
}

// An attribute as a reader wants it: no weights, nothing long.
std::string text_of(const onnx::Attribute& attr) {
  constexpr std::size_t kMostShown = 8;
  const auto list = [kMostShown](const auto& items) {
    std::string text;
    for (std::size_t i = 0; i < std::min(items.size(), kMostShown); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ", ", items[i]);
    }
    return fmt::format("[{}{}]", text, items.size() > kMostShown ? ", …" : "");
  };
  struct Visit {
    decltype(list)& list_text;
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(float value) const { return fmt::format("{}", value); }
    std::string operator()(const std::string& value) const { return value; }
    std::string operator()(const Tensor& value) const {
      return fmt::format("{}[{}]", name_of(value.dtype), fmt::join(value.shape, ","));
    }
    std::string operator()(const std::shared_ptr<onnx::Graph>& value) const {
      return fmt::format("graph of {} nodes", value->nodes.size());
    }
    std::string operator()(const std::vector<std::int64_t>& value) const {
      return list_text(value);
    }
    std::string operator()(const std::vector<float>& value) const { return list_text(value); }
    std::string operator()(const std::vector<std::string>& value) const { return list_text(value); }
  };
  return std::visit(Visit{list}, attr.value);
}

class Writer {
 public:
  Writer(const onnx::Model& model, Texts& sources, const FactsOf& facts)
      : model_(model), sources_(sources), facts_(facts), costs_(model) {}

  Json write() {
    graph(model_.graph, "main", model_.graph.name, -1);
    for (const onnx::Function& function : model_.functions) {
      const std::string name =
          function.domain.empty() ? function.name : function.domain + "." + function.name;
      graph(function.body, "function", name, -1);
    }
    return {{"model", about()},
            {"graphs", std::move(graphs_)},
            {"values", std::move(values_)},
            {"nodes", std::move(nodes_)}};
  }

 private:
  void graph(const onnx::Graph& graph, std::string_view kind, const std::string& name, int owner) {
    const std::size_t number = graphs_.size();
    graphs_.push_back({{"name", name}, {"kind", kind}, {"owner", owner}});
    for (const onnx::Initializer& constant : graph.initializers) {
      value(constant.value, kInitializer);
    }
    Json inputs = Json::array(), outputs = Json::array();
    for (ValueId id : graph.inputs) inputs.push_back(value(id, kInput));
    for (const Node& each : graph.nodes) node(each, number);
    for (ValueId id : graph.outputs) outputs.push_back(value(id, kComputed));
    graphs_[number]["inputs"] = std::move(inputs);
    graphs_[number]["outputs"] = std::move(outputs);
  }

  void node(const Node& node, std::size_t graph_number) {
    Json to{{"op", node.op}, {"name", node.name}, {"graph", graph_number}};
    if (!node.domain.empty()) to["domain"] = node.domain;
    to["in"] = ids(node.in);
    to["out"] = ids(node.out);
    const onnx::Origin& origin = model_.origins.at(node.origin);
    const auto either = [&](const std::string& own, std::string_view key) {
      return own.empty() ? metadata_of(node.metadata, key) : own;
    };
    const NodeFacts known = facts_ ? facts_(node) : NodeFacts{};
    const std::string scope = either(origin.scope, "jaxport.scope");
    if (!scope.empty()) to["scope"] = scope;
    if (!known.layer.empty()) to["layer"] = known.layer;
    if (auto source = sources_.add(either(origin.source, "jaxport.source"))) to["source"] = source;
    if (known.equation != 0) to["equation"] = known.equation;
    if (!known.made.empty()) to["made"] = known.made;
    if (const auto flops = costs_.flops(node)) to["flops"] = flops;
    if (const auto moved = moved_bytes(node)) to["moved"] = moved;
    for (const onnx::Attribute& attr : node.attrs) to["attrs"][attr.name] = text_of(attr);
    const int index = static_cast<int>(nodes_.size());
    nodes_.push_back(std::move(to));
    for (const onnx::Attribute& attr : node.attrs) {
      const auto* body = std::get_if<std::shared_ptr<onnx::Graph>>(&attr.value);
      if (body) graph(**body, "body", attr.name, index);
    }
  }

  // Bytes that are read and written.
  std::int64_t moved_bytes(const Node& node) const {
    std::int64_t bytes = 0;
    for (const auto* side : {&node.in, &node.out}) {
      for (ValueId id : *side) {
        if (id != onnx::kAbsent) bytes += costs_.bytes(id);
      }
    }
    return bytes;
  }

  Json ids(const std::vector<ValueId>& from) {
    Json result = Json::array();
    for (ValueId id : from) {
      result.push_back(id == onnx::kAbsent ? -1 : static_cast<int>(value(id, kComputed)));
    }
    return result;
  }

  // The number of a value; its kind is that of its first mention, which is its definition.
  std::size_t value(ValueId id, ValueKind kind) {
    const auto [found, is_new] = numbers_.try_emplace(id, values_.size());
    if (is_new) {
      const onnx::ValueInfo& info = model_.values[id];
      const std::string type = info.type ? onnx::to_string(*info.type) : "?";
      values_.push_back(
          {info.name, type, static_cast<int>(kind), costs_.elements(id), costs_.bytes(id)});
    }
    return found->second;
  }

  Json about() const {
    const onnx::Stats stats = onnx::stats(model_);
    Json ops = Json::object();
    for (const auto& [op, count] : stats.ops) ops[op] = count;
    return {{"name", model_.graph.name},
            {"opset", model_.opset()},
            {"producer", model_.producer_name + " " + model_.producer_version},
            {"requires", metadata_of(model_.metadata, "jaxport.requires")},
            {"nodes", stats.nodes},
            {"parameters", stats.parameters},
            {"bytes", stats.initializer_bytes},
            {"symbols", model_.dims->symbols()},
            {"ops", ops}};
  }

  const onnx::Model& model_;
  Texts& sources_;
  const FactsOf& facts_;
  Costs costs_;
  Json graphs_ = Json::array(), values_ = Json::array(), nodes_ = Json::array();
  std::unordered_map<ValueId, std::size_t> numbers_;
};

Json fit_data(const target::Fit& fit) {
  Json versions = Json::array();
  for (const target::VersionFit& version : fit.versions) {
    Json misfits = Json::array();
    for (const target::Misfit& misfit : version.misfits) {
      const target::Misfit said{misfit.reason, misfit.what, "", misfit.fault};
      misfits.push_back({target::to_string(said), misfit.where});
    }
    versions.push_back({{"version", target::version_text(version.version)}, {"misfits", misfits}});
  }
  return {{"name", target::title_of(fit.runtime)},
          {"needs", fit.needed() == 0 ? "" : target::version_text(fit.needed())},
          {"versions", versions},
          {"notes", fit.notes},
          {"advice", target::advice(fit)}};
}

}  // namespace

std::size_t Texts::add(const std::string& text) {
  const auto [found, is_new] = numbers_.try_emplace(text, texts_.size());
  if (is_new) texts_.push_back(text);
  return found->second;
}

Json model_data(const onnx::Model& model, Texts& sources, const FactsOf& facts) {
  return Writer(model, sources, facts).write();
}

Json runtime_data(const onnx::Model& model) {
  Json runtimes = Json::array();
  for (const target::Runtime runtime : target::kRuntimes) {
    runtimes.push_back(fit_data(target::fit(model, runtime)));
  }
  return runtimes;
}

}  // namespace jaxport::explore
