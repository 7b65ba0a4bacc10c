// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "axis/pattern.h"
#include "lower/cheapest.h"
#include "lower/emission.h"
#include "lower/rope.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Label;
using axis::Labels;
using axis::Node;
using axis::within;
using axis::without;

namespace {

Labels joined(Labels first, const Labels& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Dim size_of(const Labels& labels, const Dims& sizes) {
  Dim size = 1;
  for (Label label : labels) size = size * sizes[static_cast<std::size_t>(label)];
  return size;
}

Labels table_labels(const axis::Node& node) {
  Labels labels;
  for (std::size_t i : {1u, 2u}) axis::add_new(labels, axis::flatten(node.edges[i].axes));
  return labels;
}

// The axis of the value that holds the two halves.
const Labels& head_axis(const axis::Node& node, Label p) {
  return *std::ranges::find_if(node.edges[0].axes,
                               [&](const Labels& axis) { return axis::contains(axis, p); });
}

}  // namespace

RopeLabels::RopeLabels(const axis::Node& node) {
  const Labels tables = table_labels(node), all = axis::flatten(node.edges[0].axes);
  if (node.name == "partial_rope") {
    head = node.role("w");
    half = node.role("c");
    interleaved = *node.attr("interleaved")->get_if<bool>();
  } else {
    const Label p = node.role("p")[0];
    const Labels& axis = head_axis(node, p);
    half = within(axis, tables);
    // Tables that do not vary along a head rotate all of its pairs by the same angle.
    if (half.empty()) half.assign(std::ranges::find(axis, p) + 1, axis.end());
    const Labels both = within(axis, joined(half, {p}));
    interleaved = both.size() > 1 && both.back() == p;
    head = interleaved ? joined(half, {p}) : joined({p}, half);
  }
  time = without(within(all, tables), half);
  rest = without(without(all, head), time);
}

Arrangement RopeForm::arrange(const Labels& head) const {
  if (three) return {batch, time, joined(heads, head)};
  return {batch, heads, time, head};
}

Arrangement RopeForm::tables(const RopeLabels& labels) const {
  const bool shared = within(batch, labels.time).empty() && !batch.empty();
  if (shared) return {time, labels.half};
  return {batch, time, labels.half};
}

RopeForm natural_form(const RopeLabels& labels, const Arrangement& dims) {
  const Labels order = axis::flatten(dims);
  const auto dim_of = [&](Label label) {
    return std::ranges::find_if(dims, [&](const Labels& d) { return axis::contains(d, label); });
  };
  RopeForm form;
  form.time = within(order, labels.time);
  // Positions of a batch: the tables have its dim too.
  if (form.time.size() > 1 && dim_of(form.time[0]) != dim_of(form.time[1])) {
    form.batch = {form.time[0]};
    form.time.erase(form.time.begin());
  }
  const auto first_position = form.time.empty() ? std::ranges::find(order, labels.head[0])
                                                : std::ranges::find(order, form.time.front());
  for (Label label : within(order, labels.rest)) {
    const bool before = std::ranges::find(order, label) < first_position;
    (before ? form.batch : form.heads).push_back(label);
  }
  if (!form.heads.empty() || form.batch.size() < 2 || form.time.empty()) return form;
  form.heads = {form.batch.back()};
  form.batch.pop_back();
  form.three = false;
  return form;
}

namespace {

std::vector<RopeForm> forms(const RopeLabels& labels) {
  std::vector<Labels> heads{{}};
  for (Label label : labels.rest) heads.push_back({label});
  std::vector<RopeForm> result;
  for (const Labels& head : heads) {
    for (std::size_t lead = 0; lead < std::max<std::size_t>(1, labels.time.size()); ++lead) {
      const auto middle = labels.time.begin() + static_cast<std::ptrdiff_t>(lead);
      Labels batch = joined(without(labels.rest, head), Labels(labels.time.begin(), middle));
      const Labels time(middle, labels.time.end());
      std::ranges::sort(batch);
      do {
        for (bool three : {true, false}) result.push_back({head, batch, time, three});
      } while (batch.size() <= 3 && std::next_permutation(batch.begin(), batch.end()));
    }
  }
  return result;
}

double rope_price(const Emission& e, const Node& node, const RopeLabels& labels,
                  const RopeForm& form) {
  const Arrangement value = form.arrange(labels.head), table = form.tables(labels);
  double cost = e.values.price(node.edges[0], node.sizes, value) + regret(e, node, value) +
                (form.three ? 0 : 0.5) + (form.heads.empty() ? 0.25 : 0);
  for (std::size_t i : {1u, 2u}) cost += e.values.price_full(node.edges[i], node.sizes, table);
  return cost;
}

}  // namespace

void emit_rope(Emission& e, const Node& node) {
  const RopeLabels labels(node);
  const Dims& sizes = node.sizes;
  const RopeForm best = cheapest_of(forms(labels), [&](const RopeForm& form) {
    const bool is_possible = size_of(form.heads, sizes).is_static();
    return is_possible ? rope_price(e, node, labels, form) : kNever;
  });
  const Arrangement arrangement = best.arrange(labels.head), table = best.tables(labels);
  Values in{e.values.bring_full(node.edges[0], sizes, arrangement)};
  for (std::size_t i : {1u, 2u}) in.push_back(e.values.bring_full(node.edges[i], sizes, table));
  if (table.size() == 2) {
    // Tables that the batch shares are taken by position ids of shape [batch, time] only.
    in.push_back(e.shapes.positions(size_of(best.batch, sizes), size_of(best.time, sizes)));
  }
  onnx::Args args;
  if (labels.interleaved) args.emplace_back("interleaved", 1);
  if (best.three) args.emplace_back("num_heads", size_of(best.heads, sizes).value());
  if (node.name == "partial_rope") {
    args.emplace_back("rotary_embedding_dim", 2 * size_of(labels.half, sizes).value());
  }
  e.values.define(node, e.op.call("RotaryEmbedding", in, args), arrangement);
}

}  // namespace jaxport::lower
