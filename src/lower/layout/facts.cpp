// SPDX-License-Identifier: Apache-2.0
#include "lower/layout/facts.h"

#include <algorithm>

#include "axis/evaluate/evaluate.h"
#include "axis/graph/parts.h"
#include "eval/eval.h"
#include "jaxport/error.h"
#include "lower/layout/layout.h"
#include "lower/layout/splits.h"
#include "raise/engine/raise.h"

namespace jaxport::lower {
namespace {

using axis::Kind;
using axis::Node;

std::optional<std::int64_t> static_elements(const Node& node) {
  std::int64_t count = 1;
  for (const Dim& size : node.sizes) {
    if (!size.is_static()) return std::nullopt;
  }
  for (const axis::Labels& labels : node.out) {
    for (axis::Label label : labels) count *= node.sizes[label].value();
  }
  return count;
}

bool has_symbol(const front::Attr& attr) {
  if (const auto* dim = attr.get_if<Dim>()) return !dim->is_static();
  const auto* list = attr.get_if<front::List>();
  return list && std::ranges::any_of(*list, [](const front::Attr& a) { return has_symbol(a); });
}

// Run-time sizes are no constants, whatever the primitive makes of them.
bool has_symbol(const front::Eqn& eqn) {
  return std::ranges::any_of(eqn.attrs, [](const auto& entry) { return has_symbol(entry.second); });
}

bool may_grow(const Node& node) {
  return node.kind == Kind::kPointwise || node.kind == Kind::kRelayout ||
         node.kind == Kind::kIota || node.is(Kind::kPrim, "gather");
}

std::vector<std::int64_t> dense_strides(const Node& node) {
  std::vector<std::int64_t> strides(node.out.size(), 1);
  for (std::size_t i = node.out.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * node.axis_size(i).value();
  }
  return strides;
}

}  // namespace

Facts::Facts(const axis::Program& program_in)
    : program(program_in), order_(axis::topological(program_in)) {
  std::uint32_t last = 0;
  for (const Node* node : order_) last = std::max(last, node->id);
  index_.resize(last + 1);
  for (std::size_t i = 0; i < order_.size(); ++i) index_[order_[i]->id] = i;
  users_.resize(order_.size());
  for (const Node* node : order_) {
    for (std::size_t i = 0; i < node->edges.size(); ++i) {
      users_[index(node->edges[i].node)].push_back({node, i});
    }
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    users_[index(program.outputs[i].use.node)].push_back({nullptr, i});
  }
  find_constants();
  evaluate_constants();
  cut_nodes();
}

void Facts::cut_nodes() {
  cut_ = close_splits(*this);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (cut_[i]) order_[i] = cut_[i].get();
  }
  for (auto& users : users_) {
    for (User& user : users) {
      if (user.node) user.node = order_[index(user.node)];
    }
  }
}

Facts::Output Facts::output(std::size_t i) const {
  const axis::View& view = program.outputs[i];
  axis::Labels used;
  Output output;
  auto renumbered = [&](const axis::Pattern& pattern) {
    axis::Pattern result;
    for (const axis::Labels& labels : pattern) {
      axis::Labels& out = result.emplace_back();
      for (axis::Label label : labels) {
        auto found = std::ranges::find(used, label);
        out.push_back(static_cast<axis::Label>(found - used.begin()));
        if (found == used.end()) {
          used.push_back(label);
          output.sizes.push_back(program.graph->size(label));
        }
      }
    }
    return result;
  };
  output.edge = {view.use.node, renumbered(view.use.labels)};
  output.dims = renumbered(view.dims);
  return output;
}

void Facts::find_constants() {
  constant_.resize(order_.size());
  for (const Node* node : order_) {
    const auto elements = static_elements(*node);
    if (!elements || node->kind == Kind::kInput) continue;
    if (node->kind == Kind::kPrim &&
        (!eval::knows(node->prim->eqn.primitive) || has_symbol(node->prim->eqn))) {
      continue;
    }
    if (node->kind == Kind::kReduce && !eval::knows(node->name)) continue;
    std::int64_t largest = kLargestComputed;
    bool all = true;
    for (const axis::Edge& edge : node->edges) {
      all = all && is_constant(edge.node);
      if (all) largest = std::max(largest, *static_elements(*edge.node));
    }
    constant_[index(node)] = all && (!may_grow(*node) || *elements <= largest);
  }
}

// A stored constant, or a pick of one, needs no evaluation. All else is computed by the evaluator
// that axis/evaluate/fold.cpp uses for what is small.
std::optional<ConstantView> Facts::view_of(const Node* node) const {
  if (node->kind == Kind::kConstant) return ConstantView{node->data, 0, dense_strides(*node)};
  if (node->kind != Kind::kPick) return std::nullopt;
  const axis::Edge& edge = node->edges[0];
  const auto& operand = views_[index(edge.node)];
  if (!operand) return std::nullopt;
  const auto pieces = label_pieces(edge.axes, node->sizes);
  auto stride = [&](axis::Label label) {
    const AxisPiece& piece = pieces[label];
    return operand->strides[piece.axis] * piece.stride.value();
  };
  ConstantView view{operand->base, operand->offset, {}};
  const axis::Pick pick = axis::Pick::of(*node);
  view.offset += pick.index * stride(pick.along[0]);
  for (const axis::Labels& labels : node->out) view.strides.push_back(stride(labels[0]));
  return view;
}

void Facts::evaluate_constants() {
  views_.resize(order_.size());
  axis::Program folded;
  folded.dims = program.dims;
  folded.graph = program.graph;
  std::vector<const Node*> wanted;
  for (const Node* node : order_) {
    if (!is_constant(node)) continue;
    if ((views_[index(node)] = view_of(node))) continue;
    const auto& users = this->users(node);
    if (std::ranges::all_of(users, [&](const User& u) { return u.node && is_constant(u.node); }))
      continue;
    axis::View view;
    front::Type type{node->dtype, {}};
    view.use.node = node;
    for (std::size_t axis = 0; axis < node->out.size(); ++axis) {
      type.shape.push_back(node->axis_size(axis));
      view.use.labels.push_back({program.graph->label(type.shape.back())});
    }
    view.dims = view.use.labels;
    folded.outputs.push_back(std::move(view));
    folded.output_types.push_back(std::move(type));
    wanted.push_back(node);
  }
  if (wanted.empty()) return;
  auto tensors = axis::evaluate_constants(folded, raise::expand);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    views_[index(wanted[i])] = ConstantView{std::move(tensors[i]), 0, dense_strides(*wanted[i])};
  }
}

const ConstantView& Facts::constant(const Node* node) const {
  const auto& view = views_[index(node)];
  if (!view) throw Error("BUG", "a constant was not evaluated");
  return *view;
}

}  // namespace jaxport::lower
