// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "pass/local.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Node;
using onnx::TensorType;
using onnx::ValueId;

// Whether from -> middle -> to gives the same as from -> to. An integer that goes through a float
// saturates where a direct cast wraps around.
bool cast_is_direct(DType from, DType middle, DType to) {
  if (to == DType::kString || !holds_exactly(middle, from)) return false;
  const bool may_wrap = is_integer(from) && !is_integer(middle) && is_integer(to);
  return !may_wrap || holds_exactly(to, from);
}

// Axis i of the result is axis inner[outer[i]] of the source.
bool merge_transposes(Local& local, Node& node) {
  const Node* producer = local.producer(node.in[0], "Transpose");
  if (producer == nullptr) return false;
  const auto outer = ints_attribute(node, "perm"), inner = ints_attribute(*producer, "perm");
  if (!outer || !inner || outer->size() != inner->size()) return false;
  Ints perm;
  for (std::int64_t axis : *outer) {
    if (static_cast<std::size_t>(axis) >= inner->size()) return false;
    perm.push_back((*inner)[axis]);
  }
  set_attribute(node, {"perm", std::move(perm)});
  node.in[0] = producer->in[0];
  return true;
}

bool merge_casts(Local& local, Node& node) {
  const Node* producer = local.producer(node.in[0], "Cast");
  if (producer == nullptr) return false;
  const TensorType *from = local.type(producer->in[0]), *middle = local.type(node.in[0]),
                   *to = local.type(node.out[0]);
  if (from == nullptr || middle == nullptr || to == nullptr) return false;
  if (!cast_is_direct(from->dtype, middle->dtype, to->dtype)) return false;
  node.in[0] = producer->in[0];
  return true;
}

bool same_size(const Dims* a, const Dims* b, std::size_t axis) {
  return a != nullptr && b != nullptr && axis < a->size() && axis < b->size() &&
         (*a)[axis] == (*b)[axis];
}

// Where a size of the result may be 0, a computed target may ask for a copy.
bool copies_same_sizes(const Dims* source, const Dims* middle, const Dims* result) {
  if (result == nullptr) return false;
  for (std::size_t i = 0; i < result->size(); ++i) {
    const bool may_copy = less_equal(1, (*result)[i]) != Truth::kYes;
    if (may_copy && !same_size(source, middle, i)) return false;
  }
  return true;
}

// A 0 in the target shape copies a size of the input, which must then be the same one.
bool shape_is_independent(const Local& local, const Node& node, const Dims* source) {
  if (int_attribute(node, "allowzero", 0) != 0) return true;
  const Dims* middle = local.shape(node.in[0]);
  const auto target = local.ints(node.in[1]);
  if (!target) return copies_same_sizes(source, middle, local.shape(node.out[0]));
  for (std::size_t i = 0; i < target->size(); ++i) {
    if ((*target)[i] == 0 && !same_size(source, middle, i)) return false;
  }
  return true;
}

bool is_view(const Node& node) {
  constexpr std::string_view kOps[] = {"Flatten", "Reshape", "Squeeze", "Unsqueeze"};
  return std::ranges::binary_search(kOps, node.op);
}

// A Reshape can read any view's source; other views only go when they restore it.
bool merge_reshapes(Local& local, Node& node) {
  const Node* producer = local.producer(node.in[0]);
  if (producer == nullptr || !is_view(*producer)) return false;
  const ValueId source = producer->in[0];
  if (local.same_type(source, node.out[0])) {
    node.op = "Identity";
    node.in = {source};
    node.attrs.clear();
    return true;
  }
  if (node.op != "Reshape" || !shape_is_independent(local, node, local.shape(source))) return false;
  node.in[0] = source;
  return true;
}

constexpr LocalRule kViews[] = {{"Cast", merge_casts},           {"Flatten", merge_reshapes},
                                {"Reshape", merge_reshapes},     {"Squeeze", merge_reshapes},
                                {"Transpose", merge_transposes}, {"Unsqueeze", merge_reshapes}};
static_assert(std::ranges::is_sorted(kViews, {}, &LocalRule::op));

}  // namespace

std::size_t merge_views(onnx::Model& model) { return apply_rules(model, kViews); }

}  // namespace jaxport::pass
