// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding takes [batch, time, heads * size] or [batch, heads, time, size].
#include <algorithm>

#include "axis/graph/pattern.h"
#include "lower/emit/emission.h"
#include "lower/macro/macro.h"
#include "raise/engine/ops.h"

namespace jaxport::lower {
namespace {

using axis::Label;
using axis::Labels;
using axis::Node;
using axis::Use;
using axis::within;
using axis::without;
using raise::PartialRopeOp;
using raise::RopeOp;

// A rotary embedding of a whole head or of a part: its operands and the role of each label. Wishes
// and emission both use it.
struct Rope {
  explicit Rope(const RopeOp& op);
  explicit Rope(const PartialRopeOp& op);
  Use x, cos, sin;
  Labels head;  // the size of a head, in the order that the op expects
  Labels half;  // the last dim of the tables
  Labels time;  // labels of the tables that are not in `half`: positions, perhaps of a batch
  Labels rest;  // the other labels of the value: batch and heads
  bool is_interleaved = false, is_partial = false;

 private:
  Labels tables() const {
    Labels labels = cos.flat();
    axis::add_new(labels, sin.flat());
    return labels;
  }
  void name_the_others() {
    const Labels all = x.flat();
    time = without(within(all, tables()), half);
    rest = without(without(all, head), time);
  }
};

Rope::Rope(const RopeOp& op) : x(op.x), cos(op.cos), sin(op.sin) {
  const Labels pair{op.pair};
  // The axis of the value that holds the two halves.
  const Labels& axis = *std::ranges::find_if(
      x.labels, [&](const Labels& labels) { return axis::contains(labels, op.pair); });
  half = within(axis, tables());
  // Tables that do not vary along a head rotate all of its pairs by the same angle.
  if (half.empty()) half.assign(std::ranges::find(axis, op.pair) + 1, axis.end());
  const Labels both = within(axis, joined(half, pair));
  is_interleaved = both.size() > 1 && both.back() == op.pair;
  head = is_interleaved ? joined(half, pair) : joined(pair, half);
  name_the_others();
}

Rope::Rope(const PartialRopeOp& op)
    : x(op.x),
      cos(op.cos),
      sin(op.sin),
      head(op.head),
      half(op.pairs),
      is_interleaved(op.is_interleaved),
      is_partial(true) {
  name_the_others();
}

// One way to feed the op.
struct RopeForm {
  Labels heads, batch, time;
  bool three = true;
  Arrangement arrange(const Labels& head) const;
  // [time, size / 2] when the whole batch shares the tables, else [batch, time, size / 2].
  Arrangement tables(const Rope& rope) const;
};

Arrangement RopeForm::arrange(const Labels& head) const {
  if (three) return {batch, time, joined(heads, head)};
  return {batch, heads, time, head};
}

Arrangement RopeForm::tables(const Rope& rope) const {
  const bool shared = within(batch, rope.time).empty() && !batch.empty();
  if (shared) return {time, rope.half};
  return {batch, time, rope.half};
}

// The form that fits dims [batch][time][heads, size] in this order best.
RopeForm natural_form(const Rope& rope, const Arrangement& dims) {
  const Labels order = axis::flatten(dims);
  const auto dim_of = [&](Label label) {
    return std::ranges::find_if(dims, [&](const Labels& d) { return axis::contains(d, label); });
  };
  RopeForm form;
  form.time = within(order, rope.time);
  // Positions of a batch: the tables have its dim too.
  if (form.time.size() > 1 && dim_of(form.time[0]) != dim_of(form.time[1])) {
    form.batch = {form.time[0]};
    form.time.erase(form.time.begin());
  }
  const auto first_position = form.time.empty() ? std::ranges::find(order, rope.head[0])
                                                : std::ranges::find(order, form.time.front());
  for (Label label : within(order, rope.rest)) {
    const bool before = std::ranges::find(order, label) < first_position;
    (before ? form.batch : form.heads).push_back(label);
  }
  if (!form.heads.empty() || form.batch.size() < 2 || form.time.empty()) return form;
  form.heads = {form.batch.back()};
  form.batch.pop_back();
  form.three = false;
  return form;
}

std::vector<RopeForm> forms(const Rope& rope) {
  std::vector<Labels> heads{{}};
  for (Label label : rope.rest) heads.push_back({label});
  std::vector<RopeForm> result;
  for (const Labels& head : heads) {
    for (std::size_t lead = 0; lead < std::max<std::size_t>(1, rope.time.size()); ++lead) {
      const auto middle = rope.time.begin() + static_cast<std::ptrdiff_t>(lead);
      Labels batch = joined(without(rope.rest, head), Labels(rope.time.begin(), middle));
      const Labels time(middle, rope.time.end());
      std::ranges::sort(batch);
      do {
        for (bool three : {true, false}) result.push_back({head, batch, time, three});
      } while (batch.size() <= 3 && std::next_permutation(batch.begin(), batch.end()));
    }
  }
  return result;
}

double rope_price(const Emission& e, const Node& node, const Rope& rope, const RopeForm& form) {
  const Arrangement value = form.arrange(rope.head), table = form.tables(rope);
  double cost = e.values.price(edge(rope.x), node.sizes, value) + regret(e, node, value) +
                (form.three ? 0 : 0.5) + (form.heads.empty() ? 0.25 : 0);
  cost += e.values.price_full(edge(rope.cos), node.sizes, table);
  cost += e.values.price_full(edge(rope.sin), node.sizes, table);
  return cost;
}

void emit(Emission& e, const Node& node, const Rope& rope) {
  const Dims& sizes = node.sizes;
  const RopeForm best = cheapest_of(forms(rope), [&](const RopeForm& form) {
    const bool is_possible = size_of(form.heads, sizes).is_static();
    return is_possible ? rope_price(e, node, rope, form) : kNever;
  });
  const Arrangement arrangement = best.arrange(rope.head), table = best.tables(rope);
  Values in{e.values.bring_full(edge(rope.x), sizes, arrangement),
            e.values.bring_full(edge(rope.cos), sizes, table),
            e.values.bring_full(edge(rope.sin), sizes, table)};
  if (table.size() == 2) {
    // Tables that the batch shares are taken by position ids of shape [batch, time] only.
    in.push_back(e.shapes.positions(size_of(best.batch, sizes), size_of(best.time, sizes)));
  }
  onnx::Args args;
  if (rope.is_interleaved) args.emplace_back("interleaved", 1);
  // ONNX Runtime 1.23 asks for the number of heads beside the size of what is rotated, too.
  const Dim heads = size_of(best.heads, sizes);
  if (best.three || (rope.is_partial && heads.is_static()))
    args.emplace_back("num_heads", heads.value());
  if (rope.is_partial) {
    args.emplace_back("rotary_embedding_dim", 2 * size_of(rope.half, sizes).value());
  }
  e.values.define(node, e.op.call("RotaryEmbedding", in, args), arrangement);
}

// [batch][time][heads, size of a head] in the order of the result; tables as the op takes them.
MaybeWish wish(const Rope& rope, std::size_t i, const MaybeWish& own) {
  const RopeForm form = natural_form(rope, own ? own->dims : rope.x.labels);
  return Wish{kStrong, i == 0 ? form.arrange(rope.head) : form.tables(rope)};
}

template <class Op>
void emit_rope(Emission& e, const Node& node) {
  emit(e, node, Rope(raise::read<Op>(node)));
}
template <class Op>
MaybeWish rope_wish(const Node& node, std::size_t i, const MaybeWish& own) {
  return wish(Rope(raise::read<Op>(node)), i, own);
}
template <class Op>
MacroRow row() {
  return {.name = Op::kName,
          .op = "RotaryEmbedding",
          .emit = emit_rope<Op>,
          .wish = rope_wish<Op>,
          .needs_batch_dim = true};
}

}  // namespace

MacroRow rope_macro() { return row<RopeOp>(); }
MacroRow partial_rope_macro() { return row<PartialRopeOp>(); }

}  // namespace jaxport::lower
