// SPDX-License-Identifier: Apache-2.0
#include "axis/graph/store.h"

#include <algorithm>
#include <utility>

#include "axis/evaluate/fold.h"
#include "support/hash.h"
#include "support/watch.h"

namespace jaxport::axis {
namespace {

// Constants up to this size are compared by content, larger ones by the address of their bytes.
constexpr std::size_t kComparedBytes = 4096;

std::uint64_t mix_labels(std::uint64_t seed, const Labels& labels) {
  seed = mix(seed, labels.size());
  for (Label label : labels) seed = mix(seed, static_cast<std::uint64_t>(label));
  return seed;
}

std::uint64_t mix_pattern(std::uint64_t seed, const Pattern& pattern) {
  seed = mix(seed, pattern.size());
  for (const Labels& labels : pattern) seed = mix_labels(seed, labels);
  return seed;
}

std::uint64_t mix_data(std::uint64_t seed, const Tensor& data) {
  if (data.nbytes() <= kComparedBytes) return mix(seed, content_hash(data));
  return mix(seed, reinterpret_cast<std::uintptr_t>(data.data.get()));
}

bool same_data(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  return a.data == b.data || (a.nbytes() <= kComparedBytes && same_bytes(a, b));
}

std::uint64_t mix_prim(std::uint64_t seed, const PrimInfo& prim) {
  seed = hash_text(prim.eqn.primitive, seed);
  for (const front::Type& type : prim.in) seed = mix(seed, type.shape.size());
  return mix(seed, front::hash(prim.eqn.attrs));
}

bool same_prim(const PrimInfo& a, const PrimInfo& b) {
  return a.eqn.primitive == b.eqn.primitive && a.in == b.in && a.out == b.out &&
         a.eqn.attrs == b.eqn.attrs;
}

std::uint64_t content_hash_of(const Node& node) {
  std::uint64_t seed = hash_text(node.name, static_cast<std::uint64_t>(node.kind));
  seed = mix(seed, static_cast<std::uint64_t>(node.dtype));
  for (const Edge& edge : node.edges) seed = mix_pattern(mix(seed, edge.node->id), edge.axes);
  seed = mix_pattern(seed, node.out);
  for (const Dim& size : node.sizes) seed = mix(seed, size.hash());
  if (!node.attrs.empty()) seed = mix(seed, front::hash(node.attrs));
  for (const auto& [name, labels] : node.roles) seed = mix_labels(hash_text(name, seed), labels);
  if (node.kind == Kind::kConstant) seed = mix_data(seed, node.data);
  if (node.prim) seed = mix(mix_prim(seed, *node.prim), node.result);
  return seed;
}

bool same_edges(const Edges& a, const Edges& b) {
  return std::ranges::equal(
      a, b, [](const Edge& x, const Edge& y) { return x.node == y.node && x.axes == y.axes; });
}

// Two calls of these are two values even with equal operands, also where a user lowers them.
bool is_unique(const PrimInfo& prim) {
  constexpr std::string_view kImpure[] = {"rng_uniform", "pure_callback", "io_callback"};
  return std::ranges::any_of(kImpure, [&](std::string_view impure) {
    const std::string_view name = prim.eqn.primitive;
    return name == impure || (name.starts_with("user.") && name.substr(5) == impure);
  });
}

}  // namespace

bool same_content(const StoredNode& a, const StoredNode& b) {
  if (a.hash != b.hash || a.kind != b.kind || a.name != b.name || a.dtype != b.dtype ||
      a.result != b.result || !same_edges(a.edges, b.edges) || a.out != b.out ||
      a.sizes != b.sizes || a.roles != b.roles || a.attrs != b.attrs) {
    return false;
  }
  if (a.kind == Kind::kConstant) return same_data(a.data, b.data);
  return a.prim == b.prim || (a.prim && b.prim && same_prim(*a.prim, *b.prim));
}

std::size_t UseHash::operator()(const Use& use) const {
  return mix_pattern(use.node->id, use.labels);
}

std::string_view Graph::Impl::intern(std::string_view name) { return *names.emplace(name).first; }

const Node* Graph::Impl::find_or_add(StoredNode node) {
  node.hash = content_hash_of(node);
  const bool shared = !node.prim || !is_unique(*node.prim);
  if (shared) {
    const auto equal = [&](const StoredNode* other) { return same_content(*other, node); };
    if (const auto* found = known.find(node.hash, equal)) return *found;
  }
  node.graph = graph;
  node.id = static_cast<std::uint32_t>(nodes.size());
  node.name = intern(node.name);
  node.location = location;
  nodes.push_back(std::move(node));
  if (shared) known.add(nodes.back().hash, &nodes.back());
  return &nodes.back();
}

StoredNode Graph::Impl::to_node(NodeDraft& draft, Numbered& numbered) {
  StoredNode node;
  node.kind = draft.kind;
  node.name = draft.name;
  node.dtype = draft.dtype;
  node.edges = std::move(numbered.edges);
  node.out = std::move(numbered.out);
  node.sizes = std::move(numbered.sizes);
  node.attrs = std::move(draft.attrs);
  node.roles = std::move(numbered.roles);
  node.prim = std::move(draft.prim);
  node.result = draft.result;
  return node;
}

Numbered Graph::Impl::number_operands(NodeDraft& draft) {
  if (!draft.commutative) return number(draft, labels);
  std::ranges::stable_sort(draft.operands, {}, canonical_rank);
  Numbered numbered = number(draft, labels);
  if (draft.operands.size() != 2 || draft.operands[0].node != draft.operands[1].node) {
    return numbered;
  }
  // Both operands are one node, such as x[a b] and x[b c]: the order with smaller labels is kept.
  std::swap(draft.operands[0], draft.operands[1]);
  Numbered swapped = number(draft, labels);
  const bool keeps = numbered.edges[0].axes < swapped.edges[0].axes ||
                     (numbered.edges[0].axes == swapped.edges[0].axes &&
                      numbered.edges[1].axes <= swapped.edges[1].axes);
  return keeps ? numbered : swapped;
}

namespace {

// What is computed from a weight keeps its name: that of the operand with the most axes.
std::string path_of(const Node& node) {
  const auto axes = [](const Edge& edge) { return edge.axes.size(); };
  return std::ranges::max_element(node.edges, {}, axes)->node->path;
}

}  // namespace

Use Graph::Impl::make(NodeDraft draft) {
  watch().poll();
  Numbered numbered = number_operands(draft);
  Pattern context = std::move(numbered.context);
  StoredNode node = to_node(draft, numbered);
  auto folded = fold(node);
  if (!folded) return {find_or_add(std::move(node)), std::move(context)};
  const bool positional = node.kind == Kind::kRelayout || node.kind == Kind::kPrim;
  if (!positional && is_uniform(*folded)) return plain_constant(first_element(*folded), "", {});
  return plain_constant(std::move(*folded), path_of(node), std::move(context));
}

Use Graph::Impl::plain_constant(Tensor data, std::string path, Pattern context) {
  StoredNode node;
  node.kind = Kind::kConstant;
  node.name = "constant";
  node.dtype = data.dtype;
  for (std::int64_t size : data.shape) {
    node.out.push_back({static_cast<Label>(node.sizes.size())});
    node.sizes.emplace_back(size);
  }
  node.data = std::move(data);
  node.path = std::move(path);
  return {find_or_add(std::move(node)), std::move(context)};
}

Use Graph::Impl::leaf(Kind kind, std::string_view name, DType dtype, Dims sizes, front::Attrs attrs,
                      std::string path) {
  StoredNode node;
  node.kind = kind;
  node.name = name;
  node.dtype = dtype;
  node.sizes = std::move(sizes);
  node.attrs = std::move(attrs);
  node.path = std::move(path);
  Pattern context;
  for (std::size_t i = 0; i < node.sizes.size(); ++i) {
    node.out.push_back({static_cast<Label>(i)});
    context.push_back({labels.add(node.sizes[i], false)});
  }
  return {find_or_add(std::move(node)), std::move(context)};
}

const Labels& Graph::Impl::inner_labels(const Use& use) {
  auto [entry, is_new] = inner.try_emplace(use);
  if (is_new) {
    for (std::size_t label = 0; label < use.node->sizes.size(); ++label) {
      if (use.node->in_out(static_cast<Label>(label))) continue;
      entry->second.push_back(labels.add(use.node->sizes[label], true));
    }
  }
  return entry->second;
}

void Graph::Impl::mark_picked(const Node* node) {
  if (picked.size() <= node->id) picked.resize(nodes.size());
  picked[node->id] = true;
}

}  // namespace jaxport::axis
