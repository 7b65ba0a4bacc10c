// SPDX-License-Identifier: Apache-2.0
// A vision transformer rotates its patches and leaves the tokens before them as they are:
// concat(x[:n], rope(x[n:])). In front of an attention this is one rotation of the whole sequence,
// whose tables turn by 0 where nothing turned: cos is 1 and sin is 0.
//
// x * 1 - y * 0 is x for every finite y, but for the sign of a zero, which products with a key do
// not show. Where y is infinite the row of such a query is NaN anyway.
#include <algorithm>
#include <optional>

#include "axis/graph/parts.h"
#include "axis/graph/pattern.h"
#include "lower/rewrite/rewrite.h"
#include "raise/algebra/part.h"
#include "raise/engine/ops.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Part;
using axis::Use;
using axis::UseCounts;
using raise::AttentionOp;
using raise::PartialRopeOp;
using raise::RopeOp;

// Positions of the sequence that a concat joins, rotated or as they are.
struct Stretch {
  Part part;
  Use rope;    // empty: as they are
  Labels run;  // the labels of its positions
};

bool is_rope(const Use& use) {
  return use && (raise::is<RopeOp>(*use.node) || raise::is<PartialRopeOp>(*use.node));
}

std::optional<Stretch> stretch_of(Graph& graph, const Use& piece, const Labels& run) {
  if (run.size() == 1) {
    const auto [inner, product] = raise::opened(graph, piece, run[0]);
    if (is_rope(inner)) {
      auto part = axis::part_of(graph, graph.child(inner, 0), product);
      return part ? std::optional(Stretch{*part, inner, product}) : std::nullopt;
    }
  }
  auto part = axis::part_of(graph, piece, run);
  return part ? std::optional(Stretch{*part, {}, run}) : std::nullopt;
}

// All pieces of a concat, when they are the parts of one value in order and one of them is rotated.
std::vector<Stretch> stretches(Graph& graph, const Use& joined) {
  std::vector<Stretch> found;
  const std::vector<Use> pieces = graph.children(joined);
  const axis::Concat concat = axis::Concat::of(graph, joined);
  const Label whole = concat.to[0];
  int ropes = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto one = stretch_of(graph, pieces[i], concat.pieces[i]);
    if (!one) return {};
    const Dim end = found.empty() ? Dim(0) : found.back().part.limit;
    if (!(one->part.start == end)) return {};
    ropes += one->rope ? 1 : 0;
    found.push_back(*one);
    Part& part = found.back().part;
    part.base = raise::renamed(part.base, part.whole, {whole});
    if (!(part.base == found.front().part.base)) return {};
  }
  const bool is_whole = found.back().part.limit == graph.size(whole);
  return is_whole && ropes == 1 ? found : std::vector<Stretch>{};
}

// A table for all positions; empty when it does not vary along those it has.
Use padded(Graph& graph, const std::vector<Stretch>& all, Use table, double rest, Label whole) {
  std::vector<Use> operands;
  std::vector<std::optional<Label>> labels;
  for (const Stretch& one : all) {
    const Dim size = one.part.limit - one.part.start;
    const auto label = size.is_one() ? std::nullopt : std::optional(graph.label(size));
    if (one.rope && !(axis::within(one.run, table.flat()) == one.run)) return {};
    operands.push_back(one.rope ? raise::merged(graph, table, one.run, *label)
                                : graph.scalar(rest, table.node->dtype));
    labels.push_back(label);
  }
  return graph.concat(operands, labels, whole);
}

template <class Op>
Use rotated_whole(Graph& graph, const std::vector<Stretch>& all, const Use& rope, Label whole) {
  auto op = raise::read<Op>(rope);
  op.x = all.front().part.base;
  op.cos = padded(graph, all, op.cos, 1, whole);
  op.sin = padded(graph, all, op.sin, 0, whole);
  if (!op.cos || !op.sin) return {};
  const Labels labels = op.x.flat();
  return raise::make(std::move(op), labels);
}

Use whole_operand(Graph& graph, const Use& operand, const UseCounts& uses) {
  if (operand.node->kind != Kind::kConcat || uses[operand.node] > 1) return {};
  const std::vector<Stretch> all = stretches(graph, operand);
  if (all.empty()) return {};
  const Use rope = std::ranges::find_if(all, [](const Stretch& s) { return bool(s.rope); })->rope;
  const Label whole = axis::Concat::of(graph, operand).to[0];
  return raise::is<RopeOp>(*rope.node) ? rotated_whole<RopeOp>(graph, all, rope, whole)
                                       : rotated_whole<PartialRopeOp>(graph, all, rope, whole);
}

}  // namespace

Use whole_rope(Graph& graph, const Use& use, const UseCounts& uses) {
  if (!raise::is<AttentionOp>(*use.node)) return {};
  auto op = raise::read<AttentionOp>(use);
  const Use query = whole_operand(graph, op.query, uses), key = whole_operand(graph, op.key, uses);
  if (!query && !key) return {};
  if (query) op.query = query;
  if (key) op.key = key;
  return raise::make(std::move(op), use.flat());
}

}  // namespace jaxport::lower
