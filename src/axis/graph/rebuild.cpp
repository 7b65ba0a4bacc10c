// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "axis/graph/graph.h"
#include "axis/graph/pattern.h"

namespace jaxport::axis {

std::vector<const Node*> topological(const Program& program) {
  std::vector<bool> seen(program.graph->node_count());
  std::vector<const Node*> order;
  auto reach = [&](const Node* node) {
    if (seen[node->id]) return;
    seen[node->id] = true;
    order.push_back(node);
  };
  for (const View& view : program.outputs) reach(view.use.node);
  for (std::size_t next = 0; next < order.size();) {  // grows meanwhile
    const Node* node = order[next++];
    for (const Edge& edge : node->edges) reach(edge.node);
  }
  // Operands are older than their users.
  std::ranges::sort(order, {}, &Node::id);
  return order;
}

std::vector<Program*> regions(const Program& program) {
  std::vector<Program*> found;
  for (const Node* node : topological(program)) {
    if (!node->prim) continue;
    for (Program* region : node->prim->regions) {
      // Results of one equation are nodes of their own with one and the same regions.
      if (std::ranges::find(found, region) == found.end()) found.push_back(region);
    }
  }
  return found;
}

UseCounts::UseCounts(const Program& program, const std::vector<const Node*>& order)
    : counts_(program.graph->node_count()) {
  for (const Node* node : order) {
    for (const Edge& edge : node->edges) ++counts_[edge.node->id];
  }
  for (const View& view : program.outputs) ++counts_[view.use.node->id];
}

std::uint32_t UseCounts::operator[](const Node* node) const {
  return node->id < counts_.size() ? counts_[node->id] : 0;
}

void UseCounts::inherit(const Node* heir, const Node* node) {
  if (heir->id >= counts_.size()) counts_.resize(heir->id + 1);
  counts_[heir->id] = std::max(counts_[heir->id], (*this)[node]);
}

namespace {

class Rebuilder {
 public:
  Rebuilder(Program& program, const Rewrite& rewrite)
      : program_(program),
        graph_(*program.graph),
        rewrite_(rewrite),
        order_(topological(program)),
        uses_(program, order_),
        replacement_(order_.empty() ? 0 : order_.back()->id + 1) {}

  bool run() {
    bool changed = false;
    for (const Node* node : order_) {
      graph_.set_location(node->location);
      const Use self = graph_.self(node);
      Use result = rewritten(node, operands_changed(*node) ? remade(*node, self) : self);
      if (result == self) continue;
      replacement_[node->id] = std::move(result);
      changed = true;
    }
    for (View& view : program_.outputs) {
      if (replaced(view.use.node)) view.use = over(view.use.node, view.use.labels);
    }
    return changed;
  }

 private:
  bool replaced(const Node* node) const { return static_cast<bool>(replacement_[node->id]); }

  bool operands_changed(const Node& node) const {
    return std::ranges::any_of(node.edges, [&](const Edge& edge) { return replaced(edge.node); });
  }

  // The replacement of a node, for a reference that saw the node with these labels.
  Use over(const Node* node, const Pattern& labels) const {
    const Use& result = replacement_[node->id];
    const Use self = graph_.self(node);
    Substitution seen;
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      seen.set(self.labels[axis][0], labels[axis]);
    }
    return seen(result);
  }

  // A context label for each label of the node.
  Labels labels_of(const Node& node, const Use& self) {
    Labels at;
    if (node.kind == Kind::kRelayout) {
      for (const Dim& size : node.sizes) at.push_back(graph_.label(size));
    } else {
      for (const Labels& labels : graph_.context(self)) at.push_back(labels[0]);
    }
    return at;
  }

  Use remade(const Node& node, const Use& self) {
    const Labels at = labels_of(node, self);
    std::vector<Use> operands;
    for (const Edge& edge : node.edges) {
      Pattern labels = edge.axes;
      for (Labels& axis : labels) {
        for (Label& label : axis) label = at[label];
      }
      operands.push_back(replaced(edge.node) ? over(edge.node, labels)
                                             : Use{edge.node, std::move(labels)});
    }
    Use result = graph_.remake(node, std::move(operands), at);
    const bool positional = node.kind == Kind::kRelayout || node.kind == Kind::kPrim;
    if (positional) result.labels = self.labels;
    uses_.inherit(result.node, &node);
    return result;
  }

  // What rules make of the node; a rule may bring another one into play.
  Use rewritten(const Node* node, Use use) {
    constexpr int kMostSteps = 4;
    for (int step = 0; step < kMostSteps; ++step) {
      Use next = rewrite_(graph_, use, uses_);
      if (!next || next == use) break;
      uses_.inherit(next.node, node);
      use = std::move(next);
    }
    return use;
  }

  Program& program_;
  Graph& graph_;
  const Rewrite& rewrite_;
  std::vector<const Node*> order_;
  UseCounts uses_;
  std::vector<Use> replacement_;  // by id, over the labels of self(node); empty when unchanged
};

}  // namespace

bool rebuild(Program& program, const Rewrite& rewrite) { return Rebuilder(program, rewrite).run(); }

}  // namespace jaxport::axis
