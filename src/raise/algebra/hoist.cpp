// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/hoist.h"

#include <utility>

#include "axis/graph/pattern.h"
#include "front/params.h"

namespace jaxport::raise {

using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;
using axis::Use;

namespace {

constexpr int kDeepestHoist = 64;

Labels fresh_axes(axis::Graph& graph, const Node& node) {
  Labels axes;
  for (std::size_t axis = 0; axis < node.out.size(); ++axis) {
    axes.push_back(graph.label(node.axis_size(axis)));
  }
  return axes;
}

}  // namespace

Hoist::Hoist(axis::Graph& outer, const Node& scan, Label step)
    : outer_(outer), scan_(scan), inner_(*scan.prim->regions[0]->graph), step_(step) {}

Use Hoist::operand(std::size_t i, const Labels& labels) const {
  return {scan_.edges[i].node, axis::axis_each(labels)};
}

Label Hoist::outside(Label label) {
  auto [entry, is_new] = unsorted_labels_.try_emplace(label);
  if (is_new) entry->second = outer_.label(inner_.size(label));
  return entry->second;
}

Use Hoist::operator()(const Use& use) {
  const auto value = moved(use.node, kDeepestHoist);
  if (!value) return {};
  axis::Substitution seen;
  for (std::size_t axis = 0; axis < use.labels.size(); ++axis) {
    Labels labels;
    for (Label label : use.labels[axis]) labels.push_back(outside(label));
    seen.set(value->axes[axis], std::move(labels));
  }
  return seen(value->use);
}

std::optional<Hoist::Moved> Hoist::moved(const Node* node, int depth) {
  if (auto found = unsorted_moved_.find(node); found != unsorted_moved_.end()) {
    return found->second;
  }
  std::optional<Moved> result;
  switch (node->kind) {
    case Kind::kInput:
      result = input(*node);
      break;
    case Kind::kConstant:
    case Kind::kIota:
      result = constant(*node);
      break;
    case Kind::kRelayout:  // these name all axes of their result
    case Kind::kPrim:
    case Kind::kMacro:
      break;
    default:
      if (depth > 0) result = remade(*node, depth - 1);
  }
  unsorted_moved_.emplace(node, result);
  return result;
}

std::optional<Hoist::Moved> Hoist::input(const Node& node) {
  const auto index = static_cast<std::size_t>(node.get<std::int64_t>("index"));
  const auto scan = front::ScanParams::read(scan_.prim->eqn);
  if (index >= scan.consts && index < scan.first_x()) return std::nullopt;
  Labels axes = fresh_axes(outer_, node);
  Labels labels = axes;
  if (index >= scan.first_x()) labels.insert(labels.begin(), step_);
  return Moved{operand(index, labels), std::move(axes)};
}

std::optional<Hoist::Moved> Hoist::constant(const Node& node) {
  Labels axes = fresh_axes(outer_, node);
  if (node.kind == Kind::kIota) return Moved{outer_.iota(axes[0], node.dtype), std::move(axes)};
  Use use = outer_.constant(node.data, node.path);
  if (!use.labels.empty()) axes = use.flat();
  return Moved{std::move(use), std::move(axes)};
}

std::optional<Hoist::Moved> Hoist::remade(const Node& node, int depth) {
  Labels at;
  for (const Dim& size : node.sizes) at.push_back(outer_.label(size));
  auto outside_of = [&](const Labels& labels) {
    Labels result;
    for (Label label : labels) result.push_back(at[label]);
    return result;
  };
  std::vector<Use> operands;
  for (const axis::Edge& edge : node.edges) {
    const auto below = moved(edge.node, depth);
    if (!below) return std::nullopt;
    axis::Substitution seen;
    for (std::size_t axis = 0; axis < edge.axes.size(); ++axis) {
      seen.set(below->axes[axis], outside_of(edge.axes[axis]));
    }
    operands.push_back(seen(below->use));
  }
  Labels axes;
  for (const Labels& axis : node.out) axes.push_back(outside_of(axis)[0]);
  return Moved{outer_.remake(node, std::move(operands), at), std::move(axes)};
}

}  // namespace jaxport::raise
