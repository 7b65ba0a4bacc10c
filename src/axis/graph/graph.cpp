// SPDX-License-Identifier: Apache-2.0
#include "axis/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "axis/evaluate/fold.h"
#include "axis/graph/expr.h"
#include "axis/graph/parts.h"
#include "axis/graph/pattern.h"
#include "axis/graph/store.h"
#include "jaxport/error.h"

namespace jaxport::axis {

const Labels& Node::role(std::string_view role_name) const {
  static const Labels kAbsent;
  auto found = std::ranges::find(roles, role_name, &std::pair<std::string, Labels>::first);
  return found == roles.end() ? kAbsent : found->second;
}

Dim Node::axis_size(std::size_t axis) const {
  Dim size = 1;
  for (Label label : out[axis]) size = size * sizes[label];
  return size;
}

bool Node::in_out(Label label) const {
  return std::ranges::any_of(out, [&](const Labels& axis) { return contains(axis, label); });
}

void Node::no_attr(std::string_view attr_name) const {
  throw Error("BUG", fmt::format("node '{}' lacks the attribute '{}'", name, attr_name));
}

Graph::Graph(std::shared_ptr<DimScope> dims) : impl_(std::make_unique<Impl>()) {
  impl_->graph = this;
  impl_->dims = std::move(dims);
}
Graph::~Graph() = default;

Program* Graph::own(std::unique_ptr<Program> region) {
  return impl_->regions.emplace_back(std::move(region)).get();
}

DimScope& Graph::dims() const { return *impl_->dims; }
Label Graph::label(Dim size) { return impl_->labels.add(size, false); }
Dim Graph::size(Label label) const { return impl_->labels.sizes[label]; }

Dim Graph::size_of(const Labels& labels) const {
  Dim product = 1;
  for (Label label : labels) product = product * size(label);
  return product;
}

void Graph::set_location(front::LocationId location) { impl_->location = location; }
std::size_t Graph::node_count() const { return impl_->nodes.size(); }
bool Graph::is_picked(const Node* node) const {
  return node->id < impl_->picked.size() && impl_->picked[node->id];
}

std::optional<double> Graph::scalar_value(const Use& use) const {
  const Node& node = *use.node;
  if (node.kind != Kind::kConstant || !node.out.empty()) return std::nullopt;
  const bool is_real = is_float(node.dtype) || is_integer(node.dtype) || node.dtype == DType::kBool;
  return is_real ? std::optional(node.data.at(0)) : std::nullopt;
}

// --- leaves

Use Graph::input(std::int64_t index, const front::Type& type, std::string path) {
  Dims sizes;
  std::ranges::copy_if(type.shape, std::back_inserter(sizes),
                       [](const Dim& d) { return !d.is_one(); });
  return impl_->leaf(Kind::kInput, "input", type.dtype, std::move(sizes), {{"index", index}},
                     std::move(path));
}

Use Graph::iota(Label along, DType dtype) {
  Use use = impl_->leaf(Kind::kIota, "iota", dtype, {size(along)}, {}, "");
  use.labels = {{along}};
  return use;
}

Use Graph::scalar(double value, DType dtype) {
  return impl_->plain_constant(jaxport::scalar(dtype, value), "", {});
}

Use Graph::constant(Tensor data, std::string path) {
  std::erase(data.shape, 1);
  if (is_uniform(data)) return impl_->plain_constant(first_element(data), "", {});
  Pattern context;
  for (std::int64_t size : data.shape) context.push_back({label(size)});
  const auto steps = progression(data);
  if (!steps) return impl_->plain_constant(std::move(data), std::move(path), std::move(context));
  Use use = iota(context[0][0], data.dtype);
  auto integer = [&](std::int64_t value) {
    return impl_->plain_constant(int_scalar(data.dtype, value), "", {});
  };
  if (steps->step != 1) use = use * integer(steps->step);
  if (steps->start != 0) use = use + integer(steps->start);
  return use;
}

View Graph::constant_view(Tensor data, std::string path) {
  const Shape shape = data.shape;
  View view{constant(std::move(data), std::move(path)), {}};
  std::size_t axis = 0;
  for (std::int64_t size : shape) {
    view.dims.emplace_back();
    if (size == 1) continue;
    view.dims.back() = view.use.labels.empty() ? Labels{label(size)} : view.use.labels[axis++];
  }
  return view;
}

// --- looking down

Use Graph::self(const Node* node) {
  auto& selves = impl_->selves;
  if (selves.size() <= node->id) selves.resize(impl_->nodes.size());
  Use& use = selves[node->id];
  if (!use) {
    use.node = node;
    for (std::size_t axis = 0; axis < node->out.size(); ++axis) {
      use.labels.push_back({label(node->axis_size(axis))});
    }
  }
  return use;
}

namespace {

// Distributes the context labels of one axis over the node's labels of that axis; false when they
// cut the axis elsewhere.
bool distribute(const Graph& graph, const Node& node, const Labels& axis, const Labels& context,
                Pattern& at) {
  if (axis.size() == 1) {
    at[axis[0]] = context;
    return true;
  }
  std::size_t next = 0;
  for (Label label : axis) {
    Labels& part = at[label];
    const Dim& wanted = node.sizes[label];
    Dim size = 1;
    while (next < context.size() && !(size == wanted)) {
      size = size * graph.size(context[next]);
      part.push_back(context[next++]);
    }
    if (!(size == wanted)) return false;
  }
  return next == context.size();
}

}  // namespace

Pattern Graph::context(const Use& use) {
  const Node& node = *use.node;
  Pattern at(node.sizes.size());
  for (std::size_t axis = 0; axis < node.out.size(); ++axis) {
    if (!distribute(*this, node, node.out[axis], use.labels[axis], at)) return {};
  }
  if (std::ranges::none_of(at, &Labels::empty)) return at;
  auto inner = impl_->inner_labels(use).begin();
  for (Labels& labels : at) {
    if (labels.empty()) labels = {*inner++};
  }
  return at;
}

namespace {

Pattern through(const Pattern& axes, const Pattern& at) {
  Pattern labels(axes.size());
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    for (Label label : axes[axis]) {
      const Labels& part = at[label];
      labels[axis].insert(labels[axis].end(), part.begin(), part.end());
    }
  }
  return labels;
}

}  // namespace

Use Graph::child(const Use& use, std::size_t i) {
  const Pattern at = context(use);
  if (at.empty() && !use.node->sizes.empty()) return {};
  const Edge& edge = use.node->edges[i];
  return {edge.node, through(edge.axes, at)};
}

std::vector<Use> Graph::children(const Use& use) {
  const Pattern at = context(use);
  if (at.empty() && !use.node->sizes.empty()) return {};
  std::vector<Use> uses;
  uses.reserve(use.node->edges.size());
  for (const Edge& edge : use.node->edges) uses.push_back({edge.node, through(edge.axes, at)});
  return uses;
}

Labels Graph::role(const Use& use, std::string_view role_name) {
  const Labels& role = use.node->role(role_name);
  if (role.empty()) return {};
  return through({role}, context(use))[0];
}

bool Graph::same(const Use& a, const Use& b, Binding& binding) const {
  if (!a || a.node != b.node) return false;
  Binding trial = binding;
  for (std::size_t axis = 0; axis < a.labels.size(); ++axis) {
    if (a.labels[axis].size() != b.labels[axis].size()) return false;
    for (std::size_t i = 0; i < a.labels[axis].size(); ++i) {
      const Label x = resolve(a.labels[axis][i], trial), y = resolve(b.labels[axis][i], trial);
      if (x == y) continue;
      if (!(size(x) == size(y))) return false;
      if (impl_->labels.invented[y]) {
        trial[y] = x;
      } else if (impl_->labels.invented[x]) {
        trial[x] = y;
      } else {
        return false;
      }
    }
  }
  binding = std::move(trial);
  return true;
}

Use Graph::substitute(const Use& use, const Binding& binding) {
  Use result = use;
  for (Labels& axis : result.labels) {
    for (Label& label : axis) label = resolve(label, binding);
  }
  return result;
}

// --- remaking

namespace {

// Context labels of what the node keeps and of what it sums over.
struct Split {
  Labels kept, reduced;
};
Split split(const Node& node, const Labels& at) {
  Split split;
  for (std::size_t label = 0; label < at.size(); ++label) {
    (node.in_out(static_cast<Label>(label)) ? split.kept : split.reduced).push_back(at[label]);
  }
  return split;
}

std::optional<Label> label_at(std::optional<Label> label, const Labels& at) {
  return label ? std::optional(at[*label]) : std::nullopt;
}

Pattern pattern_at(const Pattern& pattern, const Labels& at) {
  Pattern mapped = pattern;
  for (Labels& axis : mapped) {
    for (Label& label : axis) label = at[label];
  }
  return mapped;
}

}  // namespace

Use Graph::remake(const Node& node, std::vector<Use> operands, const Labels& at) {
  switch (node.kind) {
    case Kind::kInput:
    case Kind::kConstant:
    case Kind::kIota:
      return {&node, pattern_at(node.out, at)};
    case Kind::kPointwise:
      return pointwise(node.name, std::move(operands), node.dtype, node.attrs);
    case Kind::kReduce:
      return reduce(node.name, std::move(operands[0]), split(node, at).reduced, node.dtype);
    case Kind::kContract:
      return contract(std::move(operands[0]), std::move(operands[1]), split(node, at).reduced,
                      node.dtype);
    case Kind::kPick: {
      const Pick of = Pick::of(node);
      return pick(std::move(operands[0]), at[of.along[0]], of.index);
    }
    case Kind::kStack:
      return stack(std::move(operands), at[Stack::of(node).along[0]]);
    case Kind::kSlice: {
      const Slice of = Slice::of(node);
      return slice(std::move(operands[0]), at[of.from[0]], label_at(of.target(), at), of.start,
                   of.limit, of.stride);
    }
    case Kind::kConcat: {
      const Concat of = Concat::of(node);
      auto pieces = of.piece_labels();
      for (auto& label : pieces) label = label_at(label, at);
      return concat(std::move(operands), pieces, at[of.to[0]]);
    }
    case Kind::kRelayout:
      return relayout(std::move(operands[0]), pattern_at(node.out, at));
    case Kind::kPrim:
      return remake_prim(node, std::move(operands), at);
    case Kind::kMacro: {
      Roles roles = node.roles;
      for (auto& [name, labels] : roles) labels = pattern_at({labels}, at)[0];
      return macro(node.name, std::move(operands), split(node, at).kept, node.dtype,
                   std::move(roles), node.attrs);
    }
  }
  throw Error("BUG", "a node of no kind");
}

}  // namespace jaxport::axis
