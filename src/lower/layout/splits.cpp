// SPDX-License-Identifier: Apache-2.0
#include "lower/layout/splits.h"

#include <algorithm>

#include "lower/layout/facts.h"
#include "lower/layout/label_set.h"
#include "lower/layout/layout.h"
#include "lower/macro/macro.h"

namespace jaxport::lower {
namespace {

using axis::Edge;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;

// More cuts of one label come from no sensible program, and every label has its price.
constexpr std::size_t kMostCuts = 3;

// Strides inside a label at which it is cut, from the outermost to the innermost; each divides the
// one before.
using Cuts = std::vector<Dim>;

// Adds a cut if it nests with the others.
void add_cut(Cuts& cuts, const Dim& at, const Dim& size) {
  if (at.is_one() || !divides_properly(at, size) || cuts.size() == kMostCuts) return;
  std::size_t place = 0;
  for (const Dim& other : cuts) {
    if (other == at) return;
    if (divides_properly(at, other)) {
      ++place;
    } else if (!divides_properly(other, at)) {
      return;
    }
  }
  cuts.insert(cuts.begin() + static_cast<std::ptrdiff_t>(place), at);
}

bool treats_labels_alike(const Node& node) {
  if (axis::treats_labels_alike(node.kind)) return true;
  const MacroRow* macro = find_macro(node);
  return macro && macro->treats_labels_alike;
}

// Labels of the result that have no role: the node does not depend on their order.
LabelSet free_labels(const Node& node) {
  LabelSet bound(node.sizes.size());
  for (const auto& [name, labels] : node.roles) bound.add(labels);
  LabelSet free(node.sizes.size());
  for (const Labels& labels : node.out) free.add(bound.drop(labels));
  return free;
}

class Cutter {
 public:
  explicit Cutter(const Node& node)
      : node_(node),
        free_(free_labels(node)),
        pieces_(label_pieces(node.out, node.sizes)),
        cuts_(node.sizes.size()) {}

  // A consumer sees the axes of the node like this.
  void add(const Edge& edge, const Dims& sizes) {
    for (std::size_t axis = 0; axis < edge.axes.size(); ++axis) {
      const Labels& labels = edge.axes[axis];
      Dim stride = 1;
      for (std::size_t i = labels.size(); i-- > 1;) {
        stride = stride * sizes[labels[i]];
        cut_axis(axis, stride);
      }
    }
  }

  // The node with its labels cut; nullptr when nobody cuts them.
  std::unique_ptr<const Node> result() const {
    if (std::ranges::all_of(cuts_, &Cuts::empty)) return nullptr;
    auto cut = std::make_unique<Node>(node_);
    std::vector<Labels> parts(cuts_.size());
    for (std::size_t label = 0; label < cuts_.size(); ++label) {
      parts[label] = {static_cast<Label>(label)};  // the outermost part keeps the name
      Dim end = node_.sizes[label];
      for (const Dim& at : cuts_[label]) {
        cut->sizes[parts[label].back()] = *exact_div(end, at);
        parts[label].push_back(static_cast<Label>(cut->sizes.size()));
        cut->sizes.push_back(at);
        end = at;
      }
    }
    auto replace = [&](axis::Pattern& pattern) {
      for (Labels& labels : pattern) {
        Labels finer;
        for (Label label : labels) {
          const Labels& some = parts[label];
          finer.insert(finer.end(), some.begin(), some.end());
        }
        labels = std::move(finer);
      }
    };
    replace(cut->out);
    for (Edge& edge : cut->edges) replace(edge.axes);
    return cut;
  }

 private:
  void cut_axis(std::size_t axis, const Dim& at) {
    for (Label label : node_.out[axis]) {
      if (!free_.has(label)) continue;
      const auto i = static_cast<std::size_t>(label);
      if (const auto inner = exact_div(at, pieces_[i].stride)) {
        add_cut(cuts_[i], *inner, node_.sizes[i]);
      }
    }
  }

  const Node& node_;
  LabelSet free_;
  AxisPieces pieces_;
  std::vector<Cuts> cuts_;  // by label
};

}  // namespace

std::vector<std::unique_ptr<const Node>> close_splits(const Facts& facts) {
  const auto& order = facts.order();
  std::vector<std::unique_ptr<const Node>> cut(order.size());
  for (std::size_t n = order.size(); n-- > 0;) {
    const Node& node = *order[n];
    if (!treats_labels_alike(node) || facts.is_constant(&node)) continue;
    Cutter cutter(node);
    for (const Facts::User& user : facts.users(&node)) {
      if (!user.node) {
        const Facts::Output output = facts.output(user.operand);
        cutter.add(output.edge, output.sizes);
        continue;
      }
      if (facts.is_constant(user.node)) continue;
      const auto& finer = cut[facts.index(user.node)];
      const Node& consumer = finer ? *finer : *user.node;
      cutter.add(consumer.edges[user.operand], consumer.sizes);
    }
    cut[n] = cutter.result();
  }
  return cut;
}

}  // namespace jaxport::lower
