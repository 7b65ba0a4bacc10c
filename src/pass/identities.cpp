// SPDX-License-Identifier: Apache-2.0
// Nodes whose result is one of their operands.
#include <algorithm>
#include <cmath>

#include "pass/local.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

bool becomes(Local& local, Node& node, std::size_t operand) {
  return local.same_type(node.in[operand], node.out[0]) && local.replace(node, node.in[operand]);
}

// --- neutral constants

bool is_uniform(const Local& local, ValueId id, double value) {
  const auto found = local.uniform(id);
  return found && *found == value;
}

// A single number changes no shape, even one that is not known.
bool becomes_without(Local& local, Node& node, std::size_t operand) {
  const onnx::Initializer* neutral = local.constant(node.in[1 - operand]);
  if (neutral->shape.empty()) return local.replace(node, node.in[operand]);
  return becomes(local, node, operand);
}

template <int kNeutral>
bool without_neutral(Local& local, Node& node) {
  for (std::size_t i : {0u, 1u}) {
    if (is_uniform(local, node.in[1 - i], kNeutral) && becomes_without(local, node, i)) return true;
  }
  return false;
}

template <int kNeutral>
bool without_neutral_second(Local& local, Node& node) {
  return is_uniform(local, node.in[1], kNeutral) && becomes_without(local, node, 0);
}

bool choice_is_known(Local& local, Node& node) {
  const auto condition = local.uniform(node.in[0]);
  return condition && becomes(local, node, *condition != 0 ? 1 : 2);
}

// --- functions that undo or repeat themselves

bool undoes(Local& local, Node& node) {
  const Node* inner = local.producer(node.in[0], node.op);
  return inner != nullptr && local.replace(node, inner->in[0]);
}

bool repeats(Local& local, Node& node) {
  return local.producer(node.in[0], node.op) != nullptr && local.replace(node, node.in[0]);
}

// --- nodes that have nothing to do

bool has_one_operand(Local& local, Node& node) {
  return node.in.size() == 1 && local.replace(node, node.in[0]);
}

bool joins_one_part(Local& local, Node& node) {
  const std::size_t before = node.in.size();
  const auto is_empty = [&](ValueId id) {
    const Dims* shape = local.shape(id);
    const auto axis =
        shape ? from_front(int_attribute(node, "axis", 0), shape->size()) : std::nullopt;
    return axis && (*shape)[*axis].is_zero();
  };
  if (std::ranges::count_if(node.in, is_empty) < std::ssize(node.in)) {
    std::erase_if(node.in, is_empty);
  }
  return has_one_operand(local, node) || node.in.size() != before;
}

bool splits_into_one(Local& local, Node& node) {
  return node.out.size() == 1 && local.replace(node, node.in[0]);
}

// The bounds that are absent are the least and the largest number: only infinities lie beyond.
bool has_no_bounds(Local& local, Node& node) {
  const onnx::TensorType* type = local.type(node.in[0]);
  if (type == nullptr || !is_integer(type->dtype)) return false;
  const bool is_bounded =
      std::any_of(node.in.begin() + 1, node.in.end(), [](ValueId id) { return id != kAbsent; });
  return !is_bounded && local.replace(node, node.in[0]);
}

// The dtype of the other operand says what a Cast is told.
bool casts_to_known(Local& local, Node& node) {
  const onnx::TensorType *from = local.type(node.in[0]), *to = local.type(node.in[1]);
  if (to == nullptr) return false;
  if (from != nullptr && from->dtype == to->dtype) return local.replace(node, node.in[0]);
  if (local.opset() < 15) return false;
  node.op = "Cast";
  node.in.resize(1);
  set_attribute(node, {"to", std::int64_t{onnx_number(to->dtype)}});
  return true;
}

// A Dropout passes everything unless it is told to train.
bool does_not_train(Local& local, Node& node) {
  const bool is_told = node.in.size() > 2 && node.in[2] != kAbsent;
  if (is_told && !is_uniform(local, node.in[2], 0)) return false;
  if (node.out.size() > 1 && local.is_used(node.out[1])) return false;
  return local.replace(node, node.in[0]);
}

bool pads_nothing(Local& local, Node& node) {
  return is_uniform(local, node.in[1], 0) && becomes(local, node, 0);
}

// The whole axis, forwards: with steps of 1 nothing else has as many elements.
bool cuts_nothing(Local& local, Node& node) {
  const bool has_steps = node.in.size() > 4 && node.in[4] != kAbsent;
  if (has_steps && !is_uniform(local, node.in[4], 1)) return false;
  return becomes(local, node, 0);
}

// With dims kept, equal shapes say that every axis that is reduced has one element.
bool reduces_nothing(Local& local, Node& node) {
  const Dims* shape = local.shape(node.in[0]);
  if (shape == nullptr) return false;
  const bool has_axes = node.in.size() > 1 && node.in[1] != kAbsent;
  if (has_axes) {
    const auto axes = local.ints(node.in[1]);
    if (!axes) return false;
    const auto has_one_element = [&](std::int64_t axis) {
      const auto at = from_front(axis, shape->size());
      return at && (*shape)[*at].is_one();
    };
    const bool does_nothing = axes->empty() && int_attribute(node, "noop_with_empty_axes", 0) != 0;
    if (!does_nothing && (axes->empty() || !std::ranges::all_of(*axes, has_one_element))) {
      return false;
    }
  } else if (int_attribute(node, "noop_with_empty_axes", 0) == 0) {
    return false;
  }
  return becomes(local, node, 0);
}

constexpr LocalRule kIdentities[] = {
    {"Abs", repeats},
    {"Add", without_neutral<0>},
    {"And", without_neutral<1>},
    {"CastLike", casts_to_known},
    {"Ceil", repeats},
    {"Clip", has_no_bounds},
    {"Concat", joins_one_part},
    {"Div", without_neutral_second<1>},
    {"Dropout", does_not_train},
    {"Floor", repeats},
    {"Max", has_one_operand},
    {"Mean", has_one_operand},
    {"Min", has_one_operand},
    {"Mul", without_neutral<1>},
    {"Neg", undoes},
    {"Not", undoes},
    {"Or", without_neutral<0>},
    {"Pad", pads_nothing},
    {"Pow", without_neutral_second<1>},
    {"ReduceMax", reduces_nothing},
    {"ReduceMean", reduces_nothing},
    {"ReduceMin", reduces_nothing},
    {"ReduceProd", reduces_nothing},
    {"ReduceSum", reduces_nothing},
    {"Relu", repeats},
    {"Slice", cuts_nothing},
    {"Split", splits_into_one},
    {"Sub", without_neutral_second<0>},
    {"Sum", has_one_operand},
    {"Where", choice_is_known},
};
static_assert(std::ranges::is_sorted(kIdentities, {}, &LocalRule::op));

}  // namespace

std::size_t remove_identities(onnx::Model& model) { return apply_rules(model, kIdentities); }

}  // namespace jaxport::pass
