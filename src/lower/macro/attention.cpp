// SPDX-License-Identifier: Apache-2.0
// Attention takes [batch][time][heads, size of a head] straight from the projections, or four dims.
#include <algorithm>
#include <cmath>

#include "lower/emit/emission.h"
#include "lower/macro/macro.h"
#include "onnx/subgraph.h"
#include "raise/engine/ops.h"

namespace jaxport::lower {
namespace {

using axis::Edge;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Node;
using axis::Use;
using raise::AttentionOp;

// The role of each label of an attention node; wishes and emission both use it.
struct AttentionLabels {
  AttentionLabels(const AttentionOp& op, const Node& node);
  Labels batch;       // shared by query and key or value, and in the result: batch and heads
  Labels time;        // positions of the query
  Labels group;       // heads of the query that share a key head
  Labels keys;        // positions of the key
  Labels key_size;    // contracted between query and key
  Labels value_size;  // only in the value
};

AttentionLabels::AttentionLabels(const AttentionOp& op, const Node& node)
    : group(op.group), keys(op.keys), key_size(op.contracted) {
  const std::size_t count = node.sizes.size();
  const LabelSet query(count, op.query.labels), key(count, op.key.labels),
      value(count, op.value.labels);
  const LabelSet out(count, node.out), inner_keys(count, keys), inner_group(count, group);
  for (const Use* operand : {&op.query, &op.key, &op.value}) {
    for (Label label : operand->flat()) {
      const bool shared = query.has(label) ? key.has(label) || value.has(label) : key.has(label);
      if (out.has(label) && shared && !axis::contains(batch, label)) batch.push_back(label);
    }
  }
  for (Label label : op.query.flat()) {
    if (out.has(label) && !axis::contains(batch, label) && !inner_group.has(label))
      time.push_back(label);
  }
  for (Label label : op.value.flat()) {
    if (!axis::contains(batch, label) && !inner_keys.has(label)) value_size.push_back(label);
  }
}

constexpr int kLongestWay = 6;

// Whether the weight of a projection makes this axis: heads come out of the weight, batch dims do
// not.
bool made_by_weight(const Use& operand, Label label) {
  const Node* node = operand.node;
  auto axis_of = [](const axis::Pattern& axes, Label wanted) {
    auto found =
        std::ranges::find_if(axes, [&](const Labels& l) { return axis::contains(l, wanted); });
    return found == axes.end() ? -1 : static_cast<int>(found - axes.begin());
  };
  int axis = axis_of(operand.labels, label);
  for (int i = 0; i < kLongestWay && axis >= 0; ++i) {
    const Label here = node->out[axis][0];
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

int head_score(const AttentionOp& op, Label label) {
  int score = 0;
  for (const Use* operand : {&op.query, &op.key, &op.value}) {
    for (const Labels& axis : operand->labels) {
      if (!axis::contains(axis, label)) continue;
      const bool beside = std::ranges::any_of(axis, [&](Label other) {
        return axis::contains(op.contracted, other) || axis::contains(op.group, other);
      });
      if (beside) score += 2;
    }
    if (made_by_weight(*operand, label)) score += 1;
  }
  return score;
}

Labels sorted_like(Labels labels, const Labels& order) {
  auto position = [&](Label label) { return std::ranges::find(order, label) - order.begin(); };
  std::ranges::stable_sort(labels, {}, position);
  return labels;
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

// Which of the shared labels is the head, and the order of the others.
struct AttentionRoles {
  Labels heads;  // at most one label
  Labels batch;
};

// `order` is the wanted order of the result's labels.
AttentionRoles roles_in(const Labels& order, const AttentionOp& op, const AttentionLabels& labels,
                        const Dims& sizes) {
  AttentionRoles roles;
  int best = -1;
  std::ptrdiff_t best_position = -1;
  for (Label label : labels.batch) {
    if (onnx::can_be_zero(sizes[label])) continue;
    const int score = head_score(op, label);
    auto found = std::ranges::find(order, label);
    const std::ptrdiff_t position = found == order.end() ? -1 : found - order.begin();
    if (score > best || (score == best && position > best_position)) {
      best = score;
      best_position = position;
      roles.heads = {label};
    }
  }
  for (Label label : labels.batch) {
    if (!axis::contains(roles.heads, label)) roles.batch.push_back(label);
  }
  roles.batch = sorted_like(std::move(roles.batch), op.query.flat());
  return roles;
}

// The mask or bias, which has the labels `mine`, as [time, keys], or with batch and heads in front
// when it has them.
Arrangement bias_arrangement(const LabelSet& mine, const AttentionLabels& labels,
                             const AttentionRoles& roles) {
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
struct AttentionPlan {
  const Node& node;
  AttentionOp op;
  AttentionLabels labels;
  Form form;

  Labels query_heads() const { return joined(form.heads, labels.group); }
  Arrangement query() const { return form.arrange(query_heads(), labels.time, labels.key_size); }
  Arrangement key() const { return form.arrange(form.heads, labels.keys, labels.key_size); }
  Arrangement value() const { return form.arrange(form.heads, labels.keys, labels.value_size); }
  Arrangement bias() const {
    const LabelSet mine(node.sizes.size(), op.bias.labels);
    return bias_arrangement(mine, labels, {form.heads, form.batch});
  }
  Arrangement result() const { return form.arrange(query_heads(), labels.time, labels.value_size); }
  // Three dims need the number of heads as an attribute. ONNX Runtime divides by it, and a size of
  // 0 ends the process. The last dim must be static too: ONNX's shape inference takes a symbolic
  // one for 0, and a Scan or Loop around the op allocates its results by that.
  bool is_possible() const {
    return !onnx::can_be_zero(size_of(form.heads, node.sizes)) &&
           (!form.three || (size_of(query_heads(), node.sizes).is_static() &&
                            size_of(labels.value_size, node.sizes).is_static()));
  }
};

// A cache is longer than what is asked of it: moving it costs more than moving query and result.
double key_weight(const AttentionPlan& plan) {
  constexpr std::int64_t kMuchLonger = 4;
  const Dims& sizes = plan.node.sizes;
  const Dim keys = size_of(plan.labels.keys, sizes), time = size_of(plan.labels.time, sizes);
  if (!keys.is_static() || !time.is_static()) return 1;
  return keys.value() >= kMuchLonger * time.value() ? 4 : 1;
}

double attention_price(const Emission& e, const AttentionPlan& plan) {
  const Dims& sizes = plan.node.sizes;
  double sum = regret(e, plan.node, plan.result());
  sum += e.values.price_full(edge(plan.op.query), sizes, plan.query());
  const double weight = key_weight(plan);
  sum += weight * e.values.price_full(edge(plan.op.key), sizes, plan.key());
  sum += weight * e.values.price_full(edge(plan.op.value), sizes, plan.value());
  if (!plan.op.bias || e.values.is_constant(edge(plan.op.bias))) return sum;
  const LabelSet mine(sizes.size(), plan.op.bias.labels);
  const Arrangement dims = plan.bias();
  sum += e.values.broadcastable(edge(plan.op.bias), sizes, restricted(dims, mine)).price;
  return mine.has_all(axis::flatten(dims)) ? sum : sum + kExpandPrice;
}

AttentionPlan attention_plan(const Emission& e, const Node& node) {
  const auto op = raise::read<AttentionOp>(node);
  AttentionPlan best{node, op, AttentionLabels(op, node), {}};
  const auto order = [&](const Use& operand, Labels& some) {
    const Edge from = edge(operand);
    const Arrangement now =
        e.values.is_constant(from) ? from.axes : e.values.arrangements(from, node.sizes)[0];
    some = sorted_like(std::move(some), axis::flatten(now));
  };
  order(op.query, best.labels.key_size);
  order(op.query, best.labels.time);
  order(op.key, best.labels.keys);
  order(op.value, best.labels.value_size);
  const LabelSet out(node.sizes.size(), node.out);
  const Labels wish = wanted_order(e, node, out).value_or(axis::flatten(node.out));
  const AttentionRoles roles = roles_in(wish, op, best.labels, node.sizes);
  AttentionPlan plan = best;
  best.form = cheapest_of(forms(best.labels.batch), [&](const Form& form) {
    plan.form = form;
    const double preference = (form.three ? 0 : 0.5) + (form.heads.empty() ? 0.25 : 0) +
                              (form.heads == roles.heads ? 0 : 0.2) +
                              (form.batch == roles.batch ? 0 : 0.1);
    return plan.is_possible() ? attention_price(e, plan) + preference : kNever;
  });
  return best;
}

// ONNX Runtime wants two to four dims, with time and keys present; leading unit dims may be absent.
Value attention_bias(Emission& e, const AttentionPlan& plan) {
  const Dims& sizes = plan.node.sizes;
  const Edge from = edge(plan.op.bias);
  const LabelSet mine(sizes.size(), from.axes);
  const Arrangement dims = plan.bias();
  if (plan.labels.time.empty() || !mine.has_all(axis::flatten(dims)))
    return e.values.bring_full(from, sizes, dims);
  const Arrangement present = e.values.broadcastable(from, sizes, dims).dims;
  return e.values.bring(from, sizes, present.size() <= 4 ? present : dims);
}

void emit_attention(Emission& e, const Node& node) {
  const AttentionPlan plan = attention_plan(e, node);
  const AttentionOp& op = plan.op;
  Values in{e.values.bring_full(edge(op.query), node.sizes, plan.query()),
            e.values.bring_full(edge(op.key), node.sizes, plan.key()),
            e.values.bring_full(edge(op.value), node.sizes, plan.value())};
  if (op.bias) in.push_back(attention_bias(e, plan));
  onnx::Args args{{"scale", op.scale}};
  if (plan.form.three) {
    args.emplace_back("q_num_heads", size_of(plan.query_heads(), node.sizes).value());
    args.emplace_back("kv_num_heads", size_of(plan.form.heads, node.sizes).value());
  }
  if (op.is_causal) args.emplace_back("is_causal", 1);
  if (op.cap != 0) args.emplace_back("softcap", op.cap);
  if (mantissa_bits(node.dtype) < mantissa_bits(DType::kF32))
    args.emplace_back("softmax_precision", onnx_number(DType::kF32));
  e.values.define(node, e.op.call("Attention", in, args), plan.result());
}

// [batch][time][heads, size of a head]: the op takes three dims straight from the projections.
MaybeWish attention_wish(const Node& node, std::size_t i, const MaybeWish& own) {
  const auto op = raise::read<AttentionOp>(node);
  const AttentionLabels labels(op, node);
  const Labels order = own ? axis::flatten(own->dims) : axis::flatten(node.out);
  const AttentionRoles roles = roles_in(order, op, labels, node.sizes);
  const Form form{roles.heads, roles.batch};
  switch (i) {
    case AttentionOp::kQuery:
      return Wish{kStrong,
                  form.arrange(joined(roles.heads, labels.group), labels.time, labels.key_size)};
    case AttentionOp::kKey:
      return Wish{kStrong, form.arrange(roles.heads, labels.keys, labels.key_size)};
    case AttentionOp::kValue:
      return Wish{kStrong, form.arrange(roles.heads, labels.keys, labels.value_size)};
    default:
      const LabelSet mine(node.sizes.size(), op.bias.labels);
      return Wish{kStrong, restricted(bias_arrangement(mine, labels, roles), mine)};
  }
}

// The definition of the op multiplies both operands with the root of its scale, in f32.
bool fits_scale(double scale, DType dtype) {
  const double root = std::sqrt(scale);
  return dtype != DType::kF64 || (fits_attribute(root, dtype) && root * root == scale);
}

// Whether the op has the results of the node.
bool is_same(const Node& node, const Options& options) {
  const auto op = raise::read<AttentionOp>(node);
  return (options.preferences().zeroes_masked_rows || !op.zero_rows) &&
         fits_scale(op.scale, node.dtype) && fits_attribute(op.cap, node.dtype);
}

// The op adds its mask; a number that absorbs the score replaces it.
Use without_mask(const Use& use, const Options&) {
  auto op = raise::read<AttentionOp>(use);
  if (!op.mask) return {};
  op.mask = {};
  return raise::make(std::move(op), use.flat());
}

}  // namespace

MacroRow attention_macro() {
  return {.name = AttentionOp::kName,
          .op = "Attention",
          .is_available = is_same,
          .rewritten = without_mask,
          .emit = emit_attention,
          .wish = attention_wish,
          .needs_batch_dim = true};
}

}  // namespace jaxport::lower
