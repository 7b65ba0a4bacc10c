// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>
#include <unordered_set>

#include "onnx/ir.h"
#include "onnx/walk.h"

namespace jaxport::onnx {
namespace {

// Other characters trouble some runtimes and file names of dumps.
std::string readable(std::string text) {
  for (char& c : text) {
    const bool is_kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/' || c == '-' ||
                         c == ':';
    if (!is_kept) c = '_';
  }
  return text;
}

std::string element_text(const Tensor& tensor, std::int64_t index) {
  if (tensor.dtype == DType::kU64) {
    return fmt::to_string(tensor.as<std::uint64_t>()[index]);
  }
  if (!is_float(tensor.dtype)) return fmt::to_string(tensor.int_at(index));
  const double value = tensor.at(index);
  if (tensor.dtype == DType::kF64) return fmt::to_string(value);
  return fmt::to_string(static_cast<float>(value));
}

// "f32_0.5", "i64_0_2_1": by content when short, else by shape: "f32_3x768".
std::string constant_name(const Initializer& constant) {
  constexpr std::int64_t kShort = 6;
  const DType dtype = constant.view.base.dtype;
  const bool has_text = is_float(dtype) || is_integer(dtype) || dtype == DType::kBool;
  if (!has_text || constant.shape.size() > 1 || constant.view.size() > kShort) {
    return fmt::format("{}_{}", name_of(dtype), fmt::join(constant.shape, "x"));
  }
  const Tensor tensor = materialise(constant.view);
  std::vector<std::string> elements;
  for (std::int64_t i = 0; i < tensor.size(); ++i) elements.push_back(element_text(tensor, i));
  if (elements.empty()) elements.emplace_back("empty");
  return fmt::format("{}_{}", name_of(dtype), fmt::join(elements, "_"));
}

class Namer {
 public:
  explicit Namer(Model& model) : model_(model) {}

  void run() {
    for_each_graph_of(model_, [this](Graph& graph) { keep_interface(graph); });
    for_each_graph_of(model_, [this](Graph& graph) { keep_given(graph); });
    name_graph(model_.graph, "");
    for (Function& function : model_.functions) name_graph(function.body, function.name);
  }

 private:
  // Names of inputs and outputs are the user's and never change.
  void keep_interface(const Graph& graph) {
    for (ValueId id : graph.inputs) keep(id);
    for (ValueId id : graph.outputs) keep(id);
  }

  // Other given names stay too, but for an initializer whose name something else already has: one
  // weight in two layouts comes as two initializers of one path.
  void keep_given(Graph& graph) {
    for (Node& node : graph.nodes) {
      if (!node.name.empty()) taken_.insert(node.name);
      for (ValueId id : node.out) {
        if (id != kAbsent) keep(id);
      }
    }
    for (const Initializer& constant : graph.initializers) {
      std::string& name = model_.values[constant.value].name;
      if (!name.empty() && !is_kept(constant.value)) set_name(constant.value, fresh(name));
    }
  }

  void name_graph(Graph& graph, const std::string& place) {
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      name_value(graph.inputs[i], fmt::format("{}/in_{}", place, i));
    }
    for (const Initializer& constant : graph.initializers) {
      if (model_.values[constant.value].name.empty()) {
        name_value(constant.value, readable(constant_name(constant)));
      }
    }
    for (Node& node : graph.nodes) {
      name_node(node);
      for (Attribute& attr : node.attrs) {
        const auto* inner = std::get_if<std::shared_ptr<Graph>>(&attr.value);
        if (inner != nullptr) name_subgraph(**inner, fmt::format("{}/{}", node.name, attr.name));
      }
    }
  }

  // `place` is where the graph stands: "Loop_2/body".
  void name_subgraph(Graph& graph, const std::string& place) {
    if (graph.name.empty()) graph.name = place;
    name_graph(graph, place);
  }

  void name_node(Node& node) {
    const bool is_named = !node.name.empty();
    if (!is_named) {
      const std::string& scope = model_.origins[node.origin].scope;
      node.name = fresh(readable(scope.empty() ? node.op : scope + "/" + node.op));
    }
    for (std::size_t i = 0; i < node.out.size(); ++i) {
      if (node.out[i] == kAbsent || !model_.values[node.out[i]].name.empty()) continue;
      // The node's own fresh name belongs to its first result too.
      if (i == 0 && !is_named)
        set_name(node.out[i], node.name);
      else
        name_value(node.out[i], i == 0 ? node.name : fmt::format("{}:{}", node.name, i));
    }
  }

  void name_value(ValueId id, std::string base) {
    if (model_.values[id].name.empty()) set_name(id, fresh(std::move(base)));
  }

  void set_name(ValueId id, std::string name) { model_.values[id].name = std::move(name); }

  void keep(ValueId id) {
    const std::string& name = model_.values[id].name;
    if (name.empty() || !kept_.insert(id).second) return;
    taken_.insert(name);
  }
  bool is_kept(ValueId id) const { return kept_.contains(id); }

  // `base`, or `base_1`, `base_2`, … when it is taken.
  std::string fresh(std::string base) {
    if (taken_.insert(base).second) return base;
    for (std::size_t& count = repeats_[base];;) {
      std::string name = fmt::format("{}_{}", base, ++count);
      if (taken_.insert(name).second) return name;
    }
  }

  Model& model_;
  std::unordered_set<std::string> taken_;
  std::unordered_set<ValueId> kept_;
  std::unordered_map<std::string, std::size_t> repeats_;
};

}  // namespace

void name_values(Model& model) { Namer(model).run(); }

}  // namespace jaxport::onnx
