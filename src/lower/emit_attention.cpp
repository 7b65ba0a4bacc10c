// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "lower/attention.h"
#include "lower/emitter.h"

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

Dim size_of(const Labels& labels, const Dims& sizes) {
  Dim size = 1;
  for (Label label : labels) size = size * sizes[static_cast<std::size_t>(label)];
  return size;
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

// The bias as [time, keys], or with batch and heads in front when it has them; time and keys are
// always present.
Value Emitter::attention_bias(const Node& node, const Labels& batch, const Labels& heads,
                              const Labels& rows, const Labels& columns) {
  const Edge& edge = node.edges[3];
  const LabelSet mine(node.sizes.size(), edge.axes);
  Arrangement to;
  if (mine.has_any(batch) || mine.has_any(heads)) {
    to.push_back(mine.has_any(batch) ? batch : Labels{});
    to.push_back(mine.has_any(heads) ? heads : Labels{});
  }
  to.push_back(rows);
  to.push_back(columns);
  return bring_full(edge, node.sizes, to);
}

void Emitter::emit_attention(const Node& node) {
  const AttentionLabels labels(node);
  const LabelSet out(node.sizes.size(), node.out);
  const AttentionRoles roles(node, wanted_order(node, out).value_or(axis::flatten(node.out)));
  auto order_in = [&](std::size_t i, const Labels& some) {
    const Edge& edge = node.edges[i];
    return sorted_like(
        some, axis::flatten(is_constant(edge) ? edge.axes : arrangements(edge, node.sizes)[0]));
  };
  const Labels key_size = order_in(0, labels.key_size), time = order_in(0, labels.time);
  const Labels keys = order_in(1, labels.keys), value_size = order_in(2, labels.value_size);
  auto operands = [&](const Form& form) {
    return std::array<Arrangement, 3>{
        form.arrange(joined(form.heads, labels.group), time, key_size),
        form.arrange(form.heads, keys, key_size), form.arrange(form.heads, keys, value_size)};
  };
  Form best;
  double best_price = std::numeric_limits<double>::infinity();
  for (const Form& form : forms(labels.batch)) {
    if (!size_of(joined(form.heads, labels.group), node.sizes).is_static()) continue;
    double cost = (form.three ? 0 : 0.5) + (form.heads.empty() ? 0.25 : 0) +
                  (form.heads == roles.heads ? 0 : 0.2) + (form.batch == roles.batch ? 0 : 0.1);
    const auto arrangement = operands(form);
    for (std::size_t i = 0; i < 3; ++i) {
      const Edge& edge = node.edges[i];
      const LabelSet mine(node.sizes.size(), edge.axes);
      Arrangement present;
      for (const Labels& dim : arrangement[i]) present.push_back(mine.keep(dim));
      cost += price(edge, node.sizes, present);
      if (!is_constant(edge) && !mine.has_all(axis::flatten(arrangement[i]))) cost += kExpandPrice;
    }
    if (cost < best_price) best_price = cost, best = form;
  }
  const auto arrangement = operands(best);
  Values in;
  for (std::size_t i = 0; i < 3; ++i)
    in.push_back(bring_full(node.edges[i], node.sizes, arrangement[i]));
  const Labels heads = joined(best.heads, labels.group);
  if (node.edges.size() > 3) in.push_back(attention_bias(node, best.batch, heads, time, keys));
  onnx::Args args{{"scale", *node.attr("scale")->get_if<double>()}};
  if (best.three) {
    args.emplace_back("q_num_heads", size_of(heads, node.sizes).value());
    args.emplace_back("kv_num_heads", size_of(best.heads, node.sizes).value());
  }
  if (*node.attr("causal")->get_if<bool>()) args.emplace_back("is_causal", 1);
  if (const double cap = *node.attr("cap")->get_if<double>(); cap != 0)
    args.emplace_back("softcap", cap);
  if (mantissa_bits(node.dtype) < mantissa_bits(DType::kF32))
    args.emplace_back("softmax_precision", onnx_number(DType::kF32));
  define(node, op_.call("Attention", in, args), best.arrange(heads, time, value_size));
}

}  // namespace jaxport::lower
