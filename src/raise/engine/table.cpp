// SPDX-License-Identifier: Apache-2.0
// The table of all that raising makes: ops, activations and recurrent cells.
#include <algorithm>
#include <type_traits>

#include "raise/engine/ops.h"
#include "raise/engine/raise.h"
#include "raise/rules/activation.h"
#include "raise/rules/recurrent.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Use;

template <class Op>
constexpr OpRow row() {
  OpRow row{Op::kName, kind_of<Op>(),
            [](Graph&, const Use& use) { return read<Op>(use).expand(); }};
  if constexpr (requires(const Op& op) { op.user_name(); }) {
    row.user_name = [](const axis::Node& node) { return read<Op>(node).user_name(); };
  }
  return row;
}

template <class... Op>
std::vector<OpRow> rows_of(std::type_identity<std::tuple<Op...>>) {
  return {row<Op>()...};
}

std::vector<OpRow> all_rows() {
  std::vector<OpRow> rows = rows_of(std::type_identity<AllOps>{});
  for (const Activation& activation : activations()) {
    rows.push_back({activation.name, axis::Kind::kPointwise, expand_activation});
  }
  for (const RecurrentOp& op : kRecurrentOps) {
    rows.push_back({op.name, axis::Kind::kPrim, expand_recurrent});
  }
  std::ranges::sort(rows, {}, &OpRow::name);
  return rows;
}

}  // namespace

const OpRow* find_op(const axis::Node& node) {
  static const std::vector<OpRow> kRows = all_rows();
  const auto found = std::ranges::lower_bound(kRows, node.name, {}, &OpRow::name);
  return found != kRows.end() && node.is(found->kind, found->name) ? &*found : nullptr;
}

Use expand(Graph& graph, const Use& use) {
  const OpRow* op = find_op(*use.node);
  return op ? op->expand(graph, use) : Use{};
}

bool is_raised(const axis::Node& node) { return find_op(node) != nullptr; }

}  // namespace jaxport::raise
