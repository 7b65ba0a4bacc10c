// SPDX-License-Identifier: Apache-2.0
#include "target/precision_plan.h"

#include <algorithm>
#include <numeric>
#include <ranges>

#include "onnx/check.h"
#include "onnx/walk.h"
#include "target/borders.h"
#include "target/kernel_facts.h"
#include "target/precision_ops.h"
#include "target/widening.h"

namespace jaxport::target {

using onnx::Graph;
using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

namespace {

// Constants of fewer elements are not worth a Cast where they are used in f32.
constexpr std::int64_t kFewElements = 1024;
constexpr int kMostPasses = 4;

bool is_slow(const Target& target, std::string_view op, DType half) {
  const KernelFacts& facts = kernel_facts(target);
  const auto ops = half == DType::kF16 ? facts.slow_f16_ops : facts.slow_bf16_ops;
  return std::ranges::find(ops, op) != ops.end();
}

}  // namespace

PrecisionPlan::PrecisionPlan(onnx::Model& model, const Target& target, const Precision& precision)
    : model_(model),
      target_(target),
      precision_(precision),
      magnitudes_(model),
      numbers_(model, precision.dtype) {
  const std::size_t values = model.values.size();
  is_fixed_.resize(values);
  is_statistic_.resize(values);
  stored_half_.resize(values);
  modes_.resize(values, Mode::kNone);
  classes_.resize(values);
  parents_.resize(values);
  std::iota(parents_.begin(), parents_.end(), ValueId{0});
  for (ValueId id : model.graph.inputs) is_fixed_[id] = true;
  collect(model.graph);
  for (const Node* node : nodes_) {
    if (!node->out.empty() && key(*node) != kAbsent) modes_[key(*node)] = first_mode(*node);
    join(*node);
  }
  for (ValueId id = 0; id < values; ++id) class_of(id).is_large |= numbers_.is_large(id);
  for (const Node* node : nodes_) {
    if (mode(*node) == Mode::kHalf && accumulates(*node)) modes_[key(*node)] = Mode::kFull;
    count(*node);
  }
  for (ValueId id : model.graph.outputs) {
    if (is_free(id)) ++(precision.io ? class_of(id).half_uses : class_of(id).full_uses);
  }
  for (int round = 0; round < kMostPasses && make_light_nodes_full(); ++round) continue;
  for (ValueId id = 0; id < values; ++id) stored_half_[id] = is_half_class(classes_[id]);
}

// --- the values and nodes of the model

bool PrecisionPlan::is_f32(ValueId id) const {
  return id != kAbsent && model_.values[id].type && model_.values[id].type->dtype == DType::kF32;
}

ValueId PrecisionPlan::key(const Node& node) {
  const auto first = std::ranges::find_if(node.out, [](ValueId id) { return id != kAbsent; });
  return first == node.out.end() ? kAbsent : *first;
}

PrecisionPlan::Mode PrecisionPlan::mode(const Node& node) const {
  return key(node) == kAbsent ? Mode::kNone : modes_[key(node)];
}

void PrecisionPlan::collect(const Graph& graph) {
  for (const onnx::Initializer& constant : graph.initializers) is_fixed_[constant.value] = true;
  for (const Node& node : graph.nodes) {
    onnx::for_each_subgraph(node, [this](const Graph& body) { collect(body); });
    nodes_.push_back(&node);
  }
}

// --- classes of values that are one dtype

ValueId PrecisionPlan::find(ValueId id) const {
  while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
  return id;
}

void PrecisionPlan::unite(ValueId a, ValueId b) {
  if (a == kAbsent || b == kAbsent || !is_free(a) || !is_free(b)) return;
  const ValueId from = find(b), to = find(a);
  parents_[from] = to;
  classes_[to].is_carry |= classes_[from].is_carry;
  classes_[to].leaves_call |= classes_[from].leaves_call;
}

void PrecisionPlan::join(const Node& node) {
  if (mode(node) == Mode::kFollows) {
    for (ValueId id : node.in) unite(key(node), id);
    for (ValueId id : node.out) unite(key(node), id);
  }
  for (const Border& border : borders(node)) {
    for (std::size_t i = 0; i < border.body->inputs.size(); ++i) {
      unite(border.body->inputs[i], border.given(i));
    }
    for (std::size_t i = 0; i < border.body->outputs.size(); ++i) {
      unite(border.result_of(i), border.body->outputs[i]);
      unite(border.carried(i), border.body->outputs[i]);
      if (border.carried(i) != kAbsent) class_of(border.carried(i)).is_carry = true;
      if (onnx::open_body(node)) class_of(border.body->outputs[i]).leaves_call = true;
    }
  }
}

// --- nodes

PrecisionPlan::Mode PrecisionPlan::first_mode(const Node& node) {
  const auto f32 = [this](ValueId id) { return is_f32(id); };
  if (std::ranges::none_of(node.in, f32) && std::ranges::none_of(node.out, f32)) {
    return Mode::kNone;
  }
  if (!borders(node).empty()) return Mode::kNone;
  if (!node.domain.empty()) return Mode::kFull;
  const HalfConduct conduct = half_conduct(node);
  mark_statistics(node, conduct);
  if (conduct.role == HalfRole::kFull || is_slow(target_, node.op, precision_.dtype)) {
    return Mode::kFull;
  }
  if (conduct.role == HalfRole::kMoves) {
    return runs_in_half(node) ? Mode::kFollows : Mode::kFull;
  }
  return may_be_half(node) && runs_in_half(node) ? Mode::kHalf : Mode::kFull;
}

void PrecisionPlan::mark_statistics(const Node& node, const HalfConduct& conduct) {
  const bool copies_one =
      conduct.role == HalfRole::kMoves && node.in[0] != kAbsent && is_statistic_[node.in[0]];
  if (!conduct.is_statistic && !copies_one) return;
  for (ValueId id : node.out) {
    if (id != kAbsent) is_statistic_[id] = true;
  }
}

// As the node would with halves in the place of each f32.
bool PrecisionPlan::runs_in_half(const Node& node) {
  std::vector<ValueId> replaced;
  for (const auto* ids : {&node.in, &node.out}) {
    for (ValueId id : *ids) {
      if (!is_f32(id)) continue;
      model_.values[id].type->dtype = precision_.dtype;
      replaced.push_back(id);
    }
  }
  const auto widenings = widenings_for(model_, node, target_, magnitudes_);
  for (ValueId id : replaced) model_.values[id].type->dtype = DType::kF32;
  return widenings && widenings->empty();
}

bool PrecisionPlan::may_be_half(const Node& node) const {
  if (node.op == "Cast") {
    const auto& from = model_.values[node.in[0]].type;
    return from && (from->dtype == DType::kBool || bit_width(from->dtype) <= 8);
  }
  const bool is_light = half_conduct(node).role == HalfRole::kLight;
  const auto allows = [&](ValueId id) {
    if (!is_f32(id)) return true;
    if (numbers_.is_large(id) || (is_light && is_statistic_[id])) return false;
    const bool is_input = std::ranges::find(model_.graph.inputs, id) != model_.graph.inputs.end();
    return !is_fixed(id) || is_input || numbers_.fits(id);
  };
  return std::ranges::all_of(node.in, allows) && std::ranges::all_of(node.out, allows);
}

// A carry that each step adds to is a sum over all steps.
bool PrecisionPlan::accumulates(const Node& node) {
  constexpr std::string_view kOps[] = {"Add", "Div", "Mul", "Sub", "Sum"};
  return std::ranges::binary_search(kOps, node.op) && class_of(key(node)).is_carry;
}

// --- who wants what

void PrecisionPlan::count(const Node& node) {
  count_fixed_operands(node);
  const Mode its = mode(node);
  if (its != Mode::kHalf && its != Mode::kFull) return;
  const bool half = its == Mode::kHalf;
  for (ValueId id : node.in) {
    if (is_free(id)) ++(half ? class_of(id).half_uses : class_of(id).full_uses);
  }
  for (ValueId id : node.out) {
    if (is_free(id)) ++(half ? class_of(id).half_results : class_of(id).full_results);
  }
}

// What is copied from inputs and constants only comes in their dtype.
void PrecisionPlan::count_fixed_operands(const Node& node) {
  const auto note = [this](ValueId from, ValueId to) {
    if (to == kAbsent || !is_f32(from) || !is_fixed(from) || !is_free(to)) return;
    const bool half = numbers_.fits(from) || precision_.io;
    ++(half ? class_of(to).half_results : class_of(to).full_results);
  };
  const bool has_choice = std::ranges::any_of(node.in, [this](ValueId id) { return is_free(id); });
  if (mode(node) == Mode::kFollows && !has_choice) {
    for (ValueId id : node.in) note(id, key(node));
  }
  for (const Border& border : borders(node)) {
    for (std::size_t i = 0; i < border.body->inputs.size(); ++i) {
      const ValueId given = border.given(i);
      if (given != kAbsent && !numbers_.fits(given)) note(given, border.body->inputs[i]);
    }
  }
}

void PrecisionPlan::make_full(const Node& node) {
  modes_[key(node)] = Mode::kFull;
  for (ValueId id : node.in) {
    if (is_free(id)) --class_of(id).half_uses, ++class_of(id).full_uses;
  }
  for (ValueId id : node.out) {
    if (is_free(id)) --class_of(id).half_results, ++class_of(id).full_results;
  }
}

bool PrecisionPlan::is_used_in_full_only(const Node& node) const {
  return std::ranges::all_of(node.out, [this](ValueId id) {
    if (id == kAbsent || !is_free(id)) return true;
    const Class& c = classes_[find(id)];
    return c.half_uses == 0 && c.full_uses > 0 && !c.leaves_call;
  });
}

// Backwards: a node becomes full when all nodes behind it are.
bool PrecisionPlan::make_light_nodes_full() {
  bool changed = false;
  for (const Node* node : std::views::reverse(nodes_)) {
    const bool is_light =
        mode(*node) == Mode::kHalf && half_conduct(*node).role == HalfRole::kLight;
    if (!is_light || !is_used_in_full_only(*node)) continue;
    make_full(*node);
    changed = true;
  }
  return changed;
}

bool PrecisionPlan::is_half_class(const Class& c) const {
  if (c.is_large) return false;
  if (c.half_results > 0 && c.full_results == 0) return true;
  return c.half_uses > 0 && c.full_uses == 0;
}

// --- what is asked

bool PrecisionPlan::is_half(const Node& node) const {
  const Mode its = mode(node);
  return its == Mode::kHalf || (its == Mode::kFollows && is_half(key(node)));
}

bool PrecisionPlan::is_stored_half(const onnx::Initializer& constant) const {
  return is_f32(constant.value) && numbers_.fits(constant.value) &&
         constant.view.size() >= kFewElements;
}

}  // namespace jaxport::target
