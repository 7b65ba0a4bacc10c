// SPDX-License-Identifier: Apache-2.0
// Chains of Reshape, Transpose, Squeeze, Unsqueeze, Flatten and Expand.
#include <algorithm>
#include <numeric>

#include "pass/local.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Node;
using onnx::ValueId;

bool regroups(const Node& node) {
  constexpr std::string_view kOps[] = {"Flatten", "Reshape", "Squeeze", "Unsqueeze"};
  return std::ranges::binary_search(kOps, node.op);
}

std::optional<Ints> perm_of(const Local& local, const Node& transpose) {
  if (auto perm = ints_attribute(transpose, "perm")) {
    for (std::int64_t& axis : *perm) {
      const auto at = from_front(axis, perm->size());
      if (!at) return std::nullopt;
      axis = static_cast<std::int64_t>(*at);
    }
    return perm;
  }
  const Dims* shape = local.shape(transpose.in[0]);
  if (shape == nullptr) return std::nullopt;
  Ints perm(shape->size());
  std::iota(perm.rbegin(), perm.rend(), 0);
  return perm;
}

// What a Reshape of a tensor with `from` dims must be given to have `to`: static sizes, 0 for one
// that it copies and -1 for one that is left.
std::optional<Ints> target_of(const Dims& from, const Dims& to) {
  Ints target;
  bool has_rest = false;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].is_static() && !to[i].is_zero()) {
      target.push_back(to[i].value());
    } else if (i < from.size() && to[i] == from[i]) {
      target.push_back(0);
    } else if (!to[i].is_static() && !has_rest) {
      has_rest = true;
      target.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  // A size of 0 that is copied leaves no way to tell the rest.
  const bool copies = std::ranges::find(target, 0) != target.end();
  if (has_rest && copies) return std::nullopt;
  return target;
}

// Makes the node a Reshape of `source`.
bool reshape_from(Local& local, Node& node, ValueId source) {
  const Dims *from = local.shape(source), *to = local.shape(node.out[0]);
  if (from == nullptr || to == nullptr) return false;
  if (*from == *to) return local.replace(node, source);
  const auto target = target_of(*from, *to);
  if (!target) return false;
  node.op = "Reshape";
  node.in = {source, local.add_constant(int64s(*target))};
  node.attrs.clear();
  return true;
}

// --- two that regroup are one

bool regroup_once(Local& local, Node& node) {
  const Node* inner = local.producer(node.in[0]);
  if (inner == nullptr || !regroups(*inner)) return false;
  // A Reshape whose shape is computed stays the simpler one.
  const bool is_better = local.is_used_once(node.in[0]) || node.op != "Reshape";
  return is_better && reshape_from(local, node, inner->in[0]);
}

// --- Transposes that move dims of 1 only

bool keeps_order(const Dims& shape, const Ints& perm) {
  std::int64_t last = -1;
  for (std::int64_t axis : perm) {
    if (shape[axis].is_one()) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool is_regrouping(const Local& local, const Node* node) {
  if (node == nullptr || node->op != "Transpose") return false;
  const Dims* shape = local.shape(node->in[0]);
  const auto perm = perm_of(local, *node);
  return shape != nullptr && perm && perm->size() == shape->size() && keeps_order(*shape, *perm);
}

// Behind something that regroups, such a Transpose is part of it.
bool transpose_regroups(Local& local, Node& node) {
  const Node* inner = local.producer(node.in[0]);
  if (inner == nullptr || !regroups(*inner) || !local.is_used_once(node.in[0])) return false;
  return is_regrouping(local, &node) && reshape_from(local, node, inner->in[0]);
}

// And so is one in front of it.
bool regroups_transposed(Local& local, Node& node) {
  const Node* inner = local.producer(node.in[0], "Transpose");
  return is_regrouping(local, inner) && local.is_used_once(node.in[0]) &&
         reshape_from(local, node, inner->in[0]);
}

// --- Transpose, view, Transpose

// Where the pieces of each axis of `from` are among the axes of `to`, when each of them is split
// into neighbours: [begin, end).
using Groups = std::vector<std::pair<std::size_t, std::size_t>>;
std::optional<Groups> split_axes(const Dims& from, const Dims& to) {
  Groups groups;
  std::size_t next = 0;
  for (const Dim& size : from) {
    const std::size_t begin = next;
    Dim product = 1;
    while (next < to.size() && (!(product == size) || next == begin))
      product = product * to[next++];
    if (!(product == size)) return std::nullopt;
    groups.emplace_back(begin, next);
  }
  // Dims of 1 at the end belong to the last axis.
  while (next < to.size() && to[next].is_one()) ++next;
  if (next != to.size() || groups.empty()) return std::nullopt;
  groups.back().second = next;
  return groups;
}

// Transpose(view(Transpose(x))) where the view only splits axes: the view of x, transposed once.
bool transpose_once(Local& local, Node& node) {
  const Node* view = local.producer(node.in[0]);
  if (view == nullptr || !regroups(*view) || !local.is_used_once(node.in[0])) return false;
  const Node* inner = local.producer(view->in[0], "Transpose");
  if (inner == nullptr || !local.is_used_once(view->in[0])) return false;
  const Dims *source = local.shape(inner->in[0]), *turned = local.shape(view->in[0]),
             *split = local.shape(node.in[0]);
  const auto first = perm_of(local, *inner), second = perm_of(local, node);
  if (!source || !turned || !split || !first || !second) return false;
  const auto groups = split_axes(*turned, *split);
  if (!groups) return false;
  // The pieces in the order of the source, and where each piece of `split` stands among them.
  Dims parts;
  Ints place(split->size(), 0);
  for (std::size_t axis = 0; axis < source->size(); ++axis) {
    const auto at = std::ranges::find(*first, static_cast<std::int64_t>(axis));
    const auto [begin, end] = (*groups)[at - first->begin()];
    for (std::size_t i = begin; i < end; ++i) {
      place[i] = std::ssize(parts);
      parts.push_back((*split)[i]);
    }
  }
  const auto target = target_of(*source, parts);
  if (!target) return false;
  Ints perm;
  for (std::int64_t axis : *second) perm.push_back(place[axis]);
  const onnx::TensorType type{local.type(node.out[0])->dtype, parts};
  const ValueId reshaped = local.add_node(
      make_node("Reshape", {inner->in[0], local.add_constant(int64s(*target))}), type);
  node.in = {reshaped};
  set_attribute(node, {"perm", std::move(perm)});
  return true;
}

// --- reductions that keep dims or not

std::optional<Ints> positive_axes(const Local& local, ValueId id, std::size_t rank) {
  auto axes = local.ints(id);
  if (!axes) return std::nullopt;
  for (std::int64_t& axis : *axes) {
    const auto at = from_front(axis, rank);
    if (!at) return std::nullopt;
    axis = static_cast<std::int64_t>(*at);
  }
  std::ranges::sort(*axes);
  return axes;
}

bool is_reduction(const Node* node) {
  return node != nullptr && node->op.starts_with("Reduce") && node->in.size() == 2;
}

// The same reduction with the other setting of keepdims takes the place of the node.
bool reduce_with(Node& node, const Node& reduction, std::int64_t keepdims) {
  node.op = reduction.op;
  node.in = reduction.in;
  node.attrs = reduction.attrs;
  set_attribute(node, {"keepdims", keepdims});
  return true;
}

bool reduce_keeping_dims(Local& local, Node& node) {
  const Node* reduction = local.producer(node.in[0]);
  if (!is_reduction(reduction) || int_attribute(*reduction, "keepdims", 1) != 0) return false;
  const Dims *from = local.shape(reduction->in[0]), *to = local.shape(node.out[0]);
  if (!from || !to || from->size() != to->size() || !local.is_used_once(node.in[0])) return false;
  const auto reduced = positive_axes(local, reduction->in[1], from->size());
  const auto added = positive_axes(local, node.in[1], from->size());
  return reduced && !reduced->empty() && reduced == added && reduce_with(node, *reduction, 1);
}

bool reduce_dropping_dims(Local& local, Node& node) {
  const Node* reduction = local.producer(node.in[0]);
  if (!is_reduction(reduction) || int_attribute(*reduction, "keepdims", 1) == 0) return false;
  const Dims* from = local.shape(reduction->in[0]);
  if (!from || node.in.size() != 2 || !local.is_used_once(node.in[0])) return false;
  const auto reduced = positive_axes(local, reduction->in[1], from->size());
  const auto dropped = positive_axes(local, node.in[1], from->size());
  return reduced && !reduced->empty() && reduced == dropped && reduce_with(node, *reduction, 0);
}

// --- Expand where the op broadcasts anyway

bool broadcasts_to(const Dims& a, const Dims& b, const Dims& result) {
  const auto fits = [&](std::size_t from_end) {
    const auto size = [from_end](const Dims& dims) {
      return from_end < dims.size() ? dims[dims.size() - 1 - from_end] : Dim(1);
    };
    const Dim x = size(a), y = size(b);
    return (x.is_one() ? y : x) == size(result) && (x.is_one() || y.is_one() || x == y);
  };
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!fits(i)) return false;
  }
  return std::max(a.size(), b.size()) == result.size();
}

bool broadcast_without_expand(Local& local, Node& node) {
  const Dims* result = local.shape(node.out[0]);
  if (result == nullptr || node.in.size() != 2) return false;
  for (std::size_t i : {0u, 1u}) {
    const Node* expand = local.producer(node.in[i], "Expand");
    if (expand == nullptr) continue;
    const Dims *small = local.shape(expand->in[0]), *other = local.shape(node.in[1 - i]);
    if (!small || !other || !broadcasts_to(*small, *other, *result)) continue;
    node.in[i] = expand->in[0];
    return true;
  }
  return false;
}

bool expand_once(Local& local, Node& node) {
  const Node* inner = local.producer(node.in[0], "Expand");
  const Dims* to = local.shape(node.out[0]);
  if (inner == nullptr || to == nullptr) return false;
  Ints sizes;
  for (const Dim& size : *to) {
    if (!size.is_static()) return false;
    sizes.push_back(size.value());
  }
  node.in = {inner->in[0], local.add_constant(int64s(sizes))};
  return true;
}

// --- a Transpose in front of a Gemm

bool gemm_of_transposed(Local& local, Node& node) {
  for (std::size_t i : {0u, 1u}) {
    const Node* transpose = local.producer(node.in[i], "Transpose");
    const Dims* shape = transpose ? local.shape(transpose->in[0]) : nullptr;
    if (shape == nullptr || shape->size() != 2 || perm_of(local, *transpose) != Ints{1, 0})
      continue;
    const std::string_view name = i == 0 ? "transA" : "transB";
    node.in[i] = transpose->in[0];
    set_attribute(node, {std::string(name), std::int64_t{int_attribute(node, name, 0) == 0}});
    return true;
  }
  return false;
}

constexpr LocalRule kCorridors[] = {
    {"Add", broadcast_without_expand},
    {"Div", broadcast_without_expand},
    {"Equal", broadcast_without_expand},
    {"Expand", expand_once},
    {"Flatten", regroup_once},
    {"Flatten", regroups_transposed},
    {"Gemm", gemm_of_transposed},
    {"Greater", broadcast_without_expand},
    {"GreaterOrEqual", broadcast_without_expand},
    {"Less", broadcast_without_expand},
    {"LessOrEqual", broadcast_without_expand},
    {"Mul", broadcast_without_expand},
    {"Pow", broadcast_without_expand},
    {"Reshape", regroup_once},
    {"Reshape", regroups_transposed},
    {"Squeeze", reduce_dropping_dims},
    {"Squeeze", regroup_once},
    {"Squeeze", regroups_transposed},
    {"Sub", broadcast_without_expand},
    {"Transpose", transpose_regroups},
    {"Transpose", transpose_once},
    {"Unsqueeze", reduce_keeping_dims},
    {"Unsqueeze", regroup_once},
    {"Unsqueeze", regroups_transposed},
};
static_assert(std::ranges::is_sorted(kCorridors, {}, &LocalRule::op));

}  // namespace

std::size_t shorten_corridors(onnx::Model& model) { return apply_rules(model, kCorridors); }

}  // namespace jaxport::pass
