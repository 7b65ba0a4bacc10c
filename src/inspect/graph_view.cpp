// SPDX-License-Identifier: Apache-2.0
#include "inspect/graph_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "onnx/walk.h"
#include "wire/wire.h"

namespace jaxport::inspect {
namespace {

constexpr int kLongestChain = 6;  // ops between a constant and its use
constexpr std::string_view kFunction = "fn:";

// Values of the enclosing graph that a graph and those inside it use, among others.
void add_uses(const onnx::Graph& graph, std::vector<onnx::ValueId>& into) {
  onnx::for_each_graph(graph, [&](const onnx::Graph& inner) {
    for (const onnx::Node& node : inner.nodes)
      into.insert(into.end(), node.in.begin(), node.in.end());
    into.insert(into.end(), inner.outputs.begin(), inner.outputs.end());
  });
}

std::optional<Numbers> numbers_of(const Tensor& tensor, const Shape& shape) {
  if (is_complex(tensor.dtype) || tensor.dtype == DType::kString) return std::nullopt;
  Numbers numbers{shape, {}, tensor.dtype == DType::kBool};
  const std::int64_t size = element_count(shape);
  for (std::int64_t i = 0; i < size; ++i) numbers.values.push_back(tensor.at(i));
  return numbers;
}

std::optional<Numbers> numbers_of_constant(const onnx::Node& node, std::int64_t largest) {
  const auto of_list = [](const auto& list) {
    return Numbers{{static_cast<std::int64_t>(list.size())}, {list.begin(), list.end()}, false};
  };
  for (const onnx::Attribute& attr : node.attrs) {
    if (const auto* tensor = std::get_if<Tensor>(&attr.value)) {
      if (tensor->size() > largest) return std::nullopt;
      return numbers_of(*tensor, tensor->shape);
    }
    if (const auto* i = std::get_if<std::int64_t>(&attr.value)) {
      return Numbers{{}, {static_cast<double>(*i)}, false};
    }
    if (const auto* f = std::get_if<float>(&attr.value)) return Numbers{{}, {*f}, false};
    if (const auto* is = std::get_if<std::vector<std::int64_t>>(&attr.value)) return of_list(*is);
    if (const auto* fs = std::get_if<std::vector<float>>(&attr.value)) return of_list(*fs);
  }
  return std::nullopt;
}

// What Cast makes of numbers, as far as a specification can see.
void cast(Numbers& numbers, const onnx::Attribute* to) {
  const auto* number = to == nullptr ? nullptr : std::get_if<std::int64_t>(&to->value);
  const auto dtype = number == nullptr ? std::nullopt : dtype_from_onnx(static_cast<int>(*number));
  if (!dtype) return;
  numbers.is_bool = *dtype == DType::kBool;
  for (double& value : numbers.values) {
    if (numbers.is_bool) value = value != 0 ? 1 : 0;
    if (is_integer(*dtype)) value = std::trunc(value);
    if (*dtype == DType::kF32) value = static_cast<float>(value);
  }
}

bool only_changes_shape(std::string_view op) {
  return op == "Expand" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze";
}

void add_views(const onnx::Model& model, const onnx::Graph& graph, GraphKind kind,
               const std::string& name, bool subgraphs, std::vector<GraphView>& into) {
  into.emplace_back(model, graph, kind, name);
  if (!subgraphs) return;
  std::map<std::string_view, int> seen;  // nodes by op
  for (const onnx::Node& node : graph.nodes) {
    const int index = seen[node.op]++;
    for (const onnx::Attribute& attr : node.attrs) {
      const auto* body = std::get_if<std::shared_ptr<onnx::Graph>>(&attr.value);
      if (body == nullptr) continue;
      add_views(model, **body, GraphKind::kBody,
                fmt::format("{}/{}_{}.{}", name, node.op, index, attr.name), true, into);
    }
  }
}

}  // namespace

GraphView::GraphView(const onnx::Model& model, const onnx::Graph& graph, GraphKind kind,
                     std::string name)
    : model_(&model),
      graph_(&graph),
      kind_(kind),
      name_(std::move(name)),
      consumers_(graph.nodes.size()),
      live_(graph.nodes.size()) {
  find_uses();
  find_live();
}

void GraphView::find_uses() {
  std::unordered_map<onnx::ValueId, std::vector<std::size_t>> users;
  for (std::size_t i = 0; i < graph_->nodes.size(); ++i) {
    const onnx::Node& node = graph_->nodes[i];
    for (onnx::ValueId id : node.out) producer_.emplace(id, i);
    for (onnx::ValueId id : node.in) users[id].push_back(i);
    std::vector<onnx::ValueId>& uses = uses_.emplace_back(node.in);
    onnx::for_each_subgraph(node, [&](const onnx::Graph& body) { add_uses(body, uses); });
  }
  for (std::size_t i = 0; i < graph_->nodes.size(); ++i) {
    std::vector<std::size_t>& found = consumers_[i];
    for (onnx::ValueId id : graph_->nodes[i].out) {
      if (id == onnx::kAbsent) continue;
      for (std::size_t user : users[id]) {
        if (user != i && std::ranges::find(found, user) == found.end()) found.push_back(user);
      }
    }
  }
}

void GraphView::find_live() {
  std::vector<onnx::ValueId> open = graph_->outputs;
  while (!open.empty()) {
    const auto producer = producer_.find(open.back());
    open.pop_back();
    if (producer == producer_.end() || live_[producer->second]) continue;
    live_[producer->second] = true;
    const auto& uses = uses_[producer->second];
    open.insert(open.end(), uses.begin(), uses.end());
  }
}

bool GraphView::is_output(std::size_t node) const {
  const auto& out = graph_->nodes[node].out;
  return std::ranges::any_of(
      graph_->outputs, [&](onnx::ValueId id) { return std::ranges::find(out, id) != out.end(); });
}

std::vector<std::string> GraphView::unused_inputs() const {
  std::unordered_set<onnx::ValueId> used(graph_->outputs.begin(), graph_->outputs.end());
  for (const auto& uses : uses_) used.insert(uses.begin(), uses.end());
  std::vector<std::string> unused;
  for (onnx::ValueId id : graph_->inputs) {
    if (!used.contains(id)) unused.emplace_back(name_of(id));
  }
  return unused;
}

std::optional<Sizes> GraphView::shape_after(std::size_t node) const {
  const auto& out = graph_->nodes[node].out;
  if (out.empty() || out[0] == onnx::kAbsent) return std::nullopt;
  const std::optional<onnx::TensorType>& type = model_->values[out[0]].type;
  if (!type || !type->shape || type->shape->empty()) return std::nullopt;
  Sizes sizes;
  for (const Dim& dim : *type->shape) {
    const bool is_unknown = !dim.is_static() && dim.str().starts_with(wire::kUnknownDim);
    sizes.push_back(is_unknown ? Size() : dim.is_static() ? Size(dim.value()) : Size(dim.str()));
  }
  return sizes;
}

std::string GraphView::describe(std::size_t node) const {
  const std::string& name = graph_->nodes[node].name;
  return name.empty() ? fmt::format("node {}", node) : fmt::format("node {} '{}'", node, name);
}

std::string_view GraphView::name_of(onnx::ValueId id) const {
  return id == onnx::kAbsent ? std::string_view() : model_->values[id].name;
}

std::optional<Numbers> GraphView::constant(onnx::ValueId id, std::int64_t largest) const {
  return constant_at_depth(id, largest, 0);
}

std::optional<Numbers> GraphView::constant_at_depth(onnx::ValueId id, std::int64_t largest,
                                                    int depth) const {
  const auto initializer = std::ranges::find(graph_->initializers, id, &onnx::Initializer::value);
  if (initializer != graph_->initializers.end()) {
    if (initializer->view.size() > largest) return std::nullopt;
    return numbers_of(materialise(initializer->view), initializer->shape);
  }
  const auto producer = producer_.find(id);
  if (producer == producer_.end() || depth > kLongestChain) return std::nullopt;
  const onnx::Node& node = graph_->nodes[producer->second];
  if (node.op == "Constant") return numbers_of_constant(node, largest);
  const bool is_cast = node.op == "Cast";
  if ((!is_cast && !only_changes_shape(node.op)) || node.in.empty()) return std::nullopt;
  std::optional<Numbers> numbers = constant_at_depth(node.in[0], largest, depth + 1);
  if (numbers && is_cast) cast(*numbers, node.attr("to"));
  return numbers;
}

std::vector<GraphView> views_of(const onnx::Model& model, bool functions, bool subgraphs) {
  std::vector<GraphView> views;
  add_views(model, model.graph, GraphKind::kMain, "top", subgraphs, views);
  if (!functions) return views;
  for (const onnx::Function& function : model.functions) {
    const std::string name = fmt::format("{}{}:{}", kFunction, function.domain, function.name);
    add_views(model, function.body, GraphKind::kFunction, name, subgraphs, views);
  }
  return views;
}

bool is_selected(const std::vector<std::string>& selectors, const GraphView& view) {
  const std::string_view name = view.name();
  const bool is_function = name.starts_with(kFunction);
  const std::string_view short_name = is_function ? name.substr(kFunction.size()) : name;
  const std::string_view op = short_name.substr(short_name.rfind(':') + 1);
  return std::ranges::any_of(selectors, [&](std::string_view selector) {
    for (std::string_view spelling : {selector, without_number(selector)}) {
      if (spelling == name || spelling == short_name || spelling == op) return true;
    }
    return is_function && selector == "fn";
  });
}

}  // namespace jaxport::inspect
