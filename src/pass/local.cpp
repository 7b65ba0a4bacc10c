// SPDX-License-Identifier: Apache-2.0
#include "pass/local.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "onnx/walk.h"

namespace jaxport::pass {
namespace {

constexpr std::int64_t kMostContent = 1024;
// A rule that fires again and again on one node is wrong; this ends it.
constexpr int kMostChanges = 16;

}  // namespace

using onnx::Graph;
using onnx::Initializer;
using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

Local::Local(onnx::Model& model)
    : model_(model),
      rewriter_(model),
      uses_(model.values.size(), 0),
      producer_(model.values.size(), nullptr),
      is_input_(model.values.size(), false),
      constant_(model.values.size(), nullptr) {
  onnx::for_each_graph(model.graph, [this](const Graph& graph) { count_uses(graph); });
}

void Local::count_uses(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.in) {
      if (id != kAbsent) ++uses_[id];
    }
  }
  for (ValueId id : graph.outputs) ++uses_[id];
  for (ValueId id : graph.inputs) is_input_[id] = true;
}

// --- facts

const onnx::TensorType* Local::type(ValueId id) const {
  if (id == kAbsent) return nullptr;
  const auto& known = model_.values[id].type;
  return known ? &*known : nullptr;
}

const Dims* Local::shape(ValueId id) const {
  const onnx::TensorType* known = type(id);
  return known != nullptr && known->shape ? &*known->shape : nullptr;
}

bool Local::same_type(ValueId a, ValueId b) const {
  return shape(a) != nullptr && shape(b) != nullptr && *type(a) == *type(b);
}

const Node* Local::producer(ValueId id) const {
  const Node* node = id == kAbsent ? nullptr : producer_[id];
  return node != nullptr && node->domain.empty() ? node : nullptr;
}

const Node* Local::producer(ValueId id, std::string_view op) const {
  const Node* node = producer(id);
  return node != nullptr && node->op == op ? node : nullptr;
}

const Node* Local::own_producer(ValueId id) const {
  const Node* node = producer(id);
  const bool is_own = node != nullptr && rewriter_.is_result_of(id, *graph_);
  return is_own && is_used_once(id) ? node : nullptr;
}

const Node* Local::own_producer(ValueId id, std::string_view op) const {
  const Node* node = own_producer(id);
  return node != nullptr && node->op == op ? node : nullptr;
}

bool Local::is_used_once(ValueId id) const { return uses_[id] == 1; }
bool Local::is_used(ValueId id) const { return id != kAbsent && uses_[id] != 0; }

const Initializer* Local::constant(ValueId id) const {
  return id == kAbsent ? nullptr : constant_[id];
}

std::optional<Tensor> Local::content(ValueId id) const {
  if (const auto known = unsorted_contents_.find(id); known != unsorted_contents_.end()) {
    return known->second;
  }
  const Initializer* found = constant(id);
  if (found == nullptr || found->view.size() > kMostContent) return std::nullopt;
  Tensor tensor = materialise(found->view);
  tensor.shape = found->shape;
  unsorted_contents_.emplace(id, tensor);
  return tensor;
}

std::optional<Ints> Local::ints(ValueId id) const {
  const auto tensor = content(id);
  if (!tensor || !is_integer(tensor->dtype) || tensor->dtype == DType::kU64) return std::nullopt;
  Ints values;
  for (std::int64_t i = 0; i < tensor->size(); ++i) values.push_back(tensor->int_at(i));
  return values;
}

std::optional<double> Local::uniform(ValueId id) const {
  const auto tensor = content(id);
  const bool is_number =
      tensor && tensor->size() > 0 &&
      (is_float(tensor->dtype) || is_integer(tensor->dtype) || tensor->dtype == DType::kBool);
  if (!is_number) return std::nullopt;
  for (std::int64_t i = 1; i < tensor->size(); ++i) {
    if (tensor->at(i) != tensor->at(0)) return std::nullopt;
  }
  return tensor->at(0);
}

// --- changes

ValueId Local::add_value(onnx::TensorType type, const Graph* graph) {
  const auto id = static_cast<ValueId>(model_.values.size());
  model_.values.push_back({std::move(type), ""});
  rewriter_.add(id, graph);
  uses_.push_back(0);
  producer_.push_back(nullptr);
  is_input_.push_back(false);
  constant_.push_back(nullptr);
  return id;
}

ValueId Local::add_weight(StridedView view, Shape shape) {
  const ValueId id = add_value({view.base.dtype, to_dims(shape)}, nullptr);
  added_->push_back({id, std::move(view), std::move(shape)});
  remember(added_->back());
  return id;
}

ValueId Local::add_constant(Tensor tensor) {
  Shape shape = tensor.shape;
  return add_weight(whole(std::move(tensor)), std::move(shape));
}

ValueId Local::add_node(Node node, onnx::TensorType type) {
  const ValueId id = add_value(std::move(type), graph_);
  node.out = {id};
  for (ValueId in : node.in) {
    if (in != kAbsent) ++uses_[in];
  }
  keep(std::move(node));
  return id;
}

bool Local::replace(const Node& node, std::span<const ValueId> with) {
  const auto is_kept = [this](ValueId id) { return !is_used(id); };
  std::unordered_set<ValueId> unsorted_renamed;
  for (std::size_t i = 0; i < node.out.size(); ++i) {
    if (is_kept(node.out[i])) continue;
    if (i >= with.size() || !rewriter_.can_replace(node.out[i], with[i])) return false;
    // One value cannot have the names of two outputs.
    if (!rewriter_.is_output(node.out[i])) continue;
    if (!unsorted_renamed.insert(with[i]).second) return false;
  }
  for (std::size_t i = 0; i < node.out.size(); ++i) {
    if (is_kept(node.out[i])) continue;
    rewriter_.replace(node.out[i], with[i]);
    uses_[with[i]] += uses_[node.out[i]];
  }
  is_replaced_ = true;
  return true;
}

void Local::take(const Node& producer) {
  unsorted_taken_.insert(&producer);
  for (ValueId id : producer.in) {
    if (id != kAbsent) --uses_[id];
  }
}

// --- the walk

void Local::remember(const Initializer& constant) {
  if (!is_input_[constant.value]) constant_[constant.value] = &constant;
}

void Local::keep(Node node) {
  done_->push_back(std::move(node));
  for (ValueId id : done_->back().out) {
    if (id != kAbsent) producer_[id] = &done_->back();
  }
}

void Local::apply(Node& node, std::span<const LocalRule> rules) {
  for (int i = 0; i < kMostChanges && !is_replaced_; ++i) {
    const auto fits = std::ranges::equal_range(rules, node.op, {}, &LocalRule::op);
    const std::vector<ValueId> before = node.in;
    if (std::ranges::none_of(fits, [&](const LocalRule& rule) { return rule.apply(*this, node); }))
      return;
    ++changes_;
    for (ValueId id : node.in) {
      if (id != kAbsent) ++uses_[id];
    }
    for (ValueId id : before) {
      if (id != kAbsent) --uses_[id];
    }
  }
}

void Local::run(Graph& graph, std::span<const LocalRule> rules) {
  for (const Initializer& constant : graph.initializers) remember(constant);
  std::deque<Node> done;
  std::deque<Initializer> added;
  std::vector<Node> nodes = std::move(graph.nodes);
  for (Node& node : nodes) {
    rewriter_.update_inputs(node);
    onnx::for_each_subgraph(node, [&](Graph& inner) { run(inner, rules); });
    graph_ = &graph;
    done_ = &done;
    added_ = &added;
    is_replaced_ = false;
    if (node.domain.empty()) apply(node, rules);
    if (!is_replaced_) {
      keep(std::move(node));
      continue;
    }
    for (ValueId id : node.in) {
      if (id != kAbsent) --uses_[id];
    }
  }
  graph.nodes.clear();
  for (Node& node : done) {
    if (unsorted_taken_.erase(&node) == 0) graph.nodes.push_back(std::move(node));
  }
  std::ranges::move(added, std::back_inserter(graph.initializers));
  for (const Initializer& constant : graph.initializers) remember(constant);
}

namespace {

bool has_node(const onnx::Model& model, const std::function<bool(const Node&)>& wanted) {
  bool found = false;
  onnx::for_each_graph(model.graph, [&](const Graph& graph) {
    found = found || std::ranges::any_of(graph.nodes, wanted);
  });
  return found;
}

// Whether the model has what a rule starts at, and what has to be behind it.
bool has_work(const onnx::Model& model, std::span<const LocalRule> rules) {
  std::vector<LocalRule> possible;
  for (const LocalRule& rule : rules) {
    const auto is_behind = [&](const Node& node) { return node.op == rule.behind; };
    if (rule.behind.empty() || has_node(model, is_behind)) possible.push_back(rule);
  }
  return !possible.empty() && has_node(model, [&](const Node& node) {
    return node.domain.empty() && std::ranges::binary_search(possible, node.op, {}, &LocalRule::op);
  });
}

}  // namespace

std::size_t apply_rules(onnx::Model& model, std::span<const LocalRule> rules) {
  if (!has_work(model, rules)) return 0;
  Local local(model);
  local.run(model.graph, rules);
  local.rewriter_.finish();
  return local.changes_;
}

Node make_node(std::string_view op, std::vector<ValueId> in,
               std::vector<onnx::Attribute> attributes) {
  Node node;
  node.op = op;
  node.in = std::move(in);
  node.attrs = std::move(attributes);
  return node;
}

std::optional<std::size_t> from_front(std::int64_t axis, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

}  // namespace jaxport::pass
