// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "lower/attention.h"
#include "lower/emitter.h"
#include "onnx/subgraph.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Kind;
using axis::Label;
using axis::Labels;

AttentionLabels::AttentionLabels(const axis::Node& node)
    : group(node.role("g")), keys(node.role("s")), key_size(node.role("d")) {
  const std::size_t count = node.sizes.size();
  const LabelSet query(count, node.edges[0].axes), key(count, node.edges[1].axes),
      value(count, node.edges[2].axes);
  const LabelSet out(count, node.out), inner_keys(count, keys), inner_group(count, group);
  for (std::size_t i = 0; i < 3; ++i) {
    for (Label label : axis::flatten(node.edges[i].axes)) {
      const bool shared = query.has(label) ? key.has(label) || value.has(label) : key.has(label);
      if (out.has(label) && shared && !axis::contains(batch, label)) batch.push_back(label);
    }
  }
  for (Label label : axis::flatten(node.edges[0].axes)) {
    if (out.has(label) && !axis::contains(batch, label) && !inner_group.has(label))
      time.push_back(label);
  }
  for (Label label : axis::flatten(node.edges[2].axes)) {
    if (!axis::contains(batch, label) && !inner_keys.has(label)) value_size.push_back(label);
  }
}

namespace {

constexpr int kLongestChain = 6;

// Whether the weight of a projection makes this axis: heads come out of the weight, batch dims do
// not.
bool made_by_weight(const Edge& edge, Label label) {
  const axis::Node* node = edge.node;
  auto axis_of = [](const axis::Pattern& axes, Label wanted) {
    auto found =
        std::ranges::find_if(axes, [&](const Labels& l) { return axis::contains(l, wanted); });
    return found == axes.end() ? -1 : static_cast<int>(found - axes.begin());
  };
  int axis = axis_of(edge.axes, label);
  for (int i = 0; i < kLongestChain && axis >= 0; ++i) {
    const Label here = node->out[static_cast<std::size_t>(axis)][0];
    if (node->kind == Kind::kContract) {
      return std::ranges::any_of(node->edges, [&](const Edge& e) {
        return e.node->kind == Kind::kConstant && axis_of(e.axes, here) >= 0;
      });
    }
    const Edge* next = nullptr;
    for (const Edge& e : node->edges) {
      if (!next && e.node->kind != Kind::kConstant && axis_of(e.axes, here) >= 0) next = &e;
    }
    if (!next) return false;
    axis = axis_of(next->axes, here);
    node = next->node;
  }
  return false;
}

int head_score(const axis::Node& node, Label label) {
  int score = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const Edge& edge = node.edges[i];
    for (const Labels& axis : edge.axes) {
      if (!axis::contains(axis, label)) continue;
      const bool beside = std::ranges::any_of(axis, [&](Label other) {
        return axis::contains(node.role("d"), other) || axis::contains(node.role("g"), other);
      });
      if (beside) score += 2;
    }
    if (made_by_weight(edge, label)) score += 1;
  }
  return score;
}

Labels sorted_like(Labels labels, const Labels& order) {
  auto position = [&](Label label) { return std::ranges::find(order, label) - order.begin(); };
  std::ranges::stable_sort(labels, {}, position);
  return labels;
}

Labels joined(Labels first, const Labels& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// One way to feed the op: which label is the head, how the batch is ordered, three or four dims.
struct Form {
  Labels heads, batch;
  bool three = true;
  Arrangement arrange(const Labels& head_labels, const Labels& time, const Labels& size) const {
    if (three) return {batch, time, joined(head_labels, size)};
    return {batch, head_labels, time, size};
  }
};

std::vector<Form> forms(const Labels& shared) {
  std::vector<Labels> heads{{}};
  for (Label label : shared) heads.push_back({label});
  std::vector<Form> result;
  for (const Labels& head : heads) {
    Labels batch;
    for (Label label : shared) {
      if (!axis::contains(head, label)) batch.push_back(label);
    }
    std::ranges::sort(batch);
    do {
      for (bool three : {true, false}) result.push_back({head, batch, three});
    } while (batch.size() <= 3 && std::next_permutation(batch.begin(), batch.end()));
  }
  return result;
}

}  // namespace

AttentionRoles::AttentionRoles(const axis::Node& node, const Labels& order) {
  const AttentionLabels labels(node);
  int best = -1;
  std::ptrdiff_t best_position = -1;
  for (Label label : labels.batch) {
    if (onnx::can_be_zero(node.sizes[static_cast<std::size_t>(label)])) continue;
    const int score = head_score(node, label);
    auto found = std::ranges::find(order, label);
    const std::ptrdiff_t position = found == order.end() ? -1 : found - order.begin();
    if (score > best || (score == best && position > best_position)) {
      best = score;
      best_position = position;
      heads = {label};
    }
  }
  for (Label label : labels.batch) {
    if (!axis::contains(heads, label)) batch.push_back(label);
  }
  batch = sorted_like(std::move(batch), axis::flatten(node.edges[0].axes));
}

Arrangement bias_arrangement(const axis::Node& node, const AttentionLabels& labels,
                             const AttentionRoles& roles) {
  const LabelSet mine(node.sizes.size(), node.edges[3].axes);
  const Labels heads = joined(roles.heads, labels.group);
  Arrangement dims;
  if (mine.has_any(roles.batch) || mine.has_any(heads)) {
    dims.push_back(mine.has_any(roles.batch) ? roles.batch : Labels{});
    dims.push_back(mine.has_any(heads) ? heads : Labels{});
  }
  dims.push_back(labels.time);
  dims.push_back(labels.keys);
  return dims;
}

// A form, with labels in the order that the operands have them in already.
struct Emitter::AttentionPlan {
  const Node& node;
  AttentionLabels labels;
  Form form;

  Labels query_heads() const { return joined(form.heads, labels.group); }
  Arrangement operand(std::size_t i) const {
    if (i == 0) return form.arrange(query_heads(), labels.time, labels.key_size);
    if (i == 3) return bias_arrangement(node, labels, {form.heads, form.batch});
    return form.arrange(form.heads, labels.keys, i == 1 ? labels.key_size : labels.value_size);
  }
  Arrangement result() const { return form.arrange(query_heads(), labels.time, labels.value_size); }
  Dim size_of(const Labels& some) const {
    Dim size = 1;
    for (Label label : some) size = size * node.sizes[static_cast<std::size_t>(label)];
    return size;
  }
  // Three dims need the number of heads as an attribute. ONNX Runtime divides by it, and a size of
  // 0 ends the process. The last dim must be static too: ONNX's shape inference takes a symbolic
  // one for 0, and a Scan or Loop around the op allocates its results by that.
  bool is_possible() const {
    return !onnx::can_be_zero(size_of(form.heads)) &&
           (!form.three ||
            (size_of(query_heads()).is_static() && size_of(labels.value_size).is_static()));
  }
};

double Emitter::attention_price(const AttentionPlan& plan) const {
  const Node& node = plan.node;
  double sum = regret(node, plan.result());
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    const Edge& edge = node.edges[i];
    if (is_constant(edge)) continue;
    const LabelSet mine(node.sizes.size(), edge.axes);
    const Arrangement wanted = plan.operand(i);
    Arrangement present;
    for (const Labels& dim : wanted) present.push_back(mine.keep(dim));
    sum +=
        i == 3 ? broadcastable(edge, node.sizes, present).first : price(edge, node.sizes, present);
    if (!mine.has_all(axis::flatten(wanted))) sum += kExpandPrice;
  }
  return sum;
}

Emitter::AttentionPlan Emitter::attention_plan(const Node& node) const {
  AttentionPlan best{node, AttentionLabels(node), {}};
  const auto order = [&](std::size_t i, Labels& some) {
    const Edge& edge = node.edges[i];
    const Arrangement now = is_constant(edge) ? edge.axes : arrangements(edge, node.sizes)[0];
    some = sorted_like(std::move(some), axis::flatten(now));
  };
  order(0, best.labels.key_size);
  order(0, best.labels.time);
  order(1, best.labels.keys);
  order(2, best.labels.value_size);
  const LabelSet out(node.sizes.size(), node.out);
  const AttentionRoles roles(node, wanted_order(node, out).value_or(axis::flatten(node.out)));
  AttentionPlan plan = best;
  double best_price = std::numeric_limits<double>::infinity();
  for (const Form& form : forms(best.labels.batch)) {
    plan.form = form;
    if (!plan.is_possible()) continue;
    const double preference = (form.three ? 0 : 0.5) + (form.heads.empty() ? 0.25 : 0) +
                              (form.heads == roles.heads ? 0 : 0.2) +
                              (form.batch == roles.batch ? 0 : 0.1);
    const double cost = attention_price(plan) + preference;
    if (cost < best_price) best_price = cost, best.form = form;
  }
  return best;
}

// ONNX Runtime wants two to four dims, with time and keys present; leading unit dims may be absent.
Value Emitter::attention_bias(const AttentionPlan& plan) {
  const Node& node = plan.node;
  const Edge& edge = node.edges[3];
  const LabelSet mine(node.sizes.size(), edge.axes);
  const Arrangement dims = plan.operand(3);
  if (plan.labels.time.empty() || !mine.has_all(axis::flatten(dims)))
    return bring_full(edge, node.sizes, dims);
  const auto [cost, present] = broadcastable(edge, node.sizes, dims);
  return bring(edge, node.sizes, present.size() <= 4 ? present : dims);
}

void Emitter::emit_attention(const Node& node) {
  const AttentionPlan plan = attention_plan(node);
  Values in;
  for (std::size_t i = 0; i < 3; ++i)
    in.push_back(bring_full(node.edges[i], node.sizes, plan.operand(i)));
  if (node.edges.size() > 3) in.push_back(attention_bias(plan));
  onnx::Args args{{"scale", *node.attr("scale")->get_if<double>()}};
  if (plan.form.three) {
    args.emplace_back("q_num_heads", plan.size_of(plan.query_heads()).value());
    args.emplace_back("kv_num_heads", plan.size_of(plan.form.heads).value());
  }
  if (*node.attr("causal")->get_if<bool>()) args.emplace_back("is_causal", 1);
  if (const double cap = *node.attr("cap")->get_if<double>(); cap != 0)
    args.emplace_back("softcap", cap);
  if (mantissa_bits(node.dtype) < mantissa_bits(DType::kF32))
    args.emplace_back("softmax_precision", onnx_number(DType::kF32));
  define(node, op_.call("Attention", in, args), plan.result());
}

}  // namespace jaxport::lower
