// SPDX-License-Identifier: Apache-2.0
// jnp.searchsorted, and with it digitize, histogram and interp: a scan that halves an interval. In
// a table that is known to be in order the elements below each query are counted instead. A table
// that is not known stays a scan: where it is out of order, the scan alone gives JAX's positions.
#include "lower/rows/search.h"

#include <algorithm>

#include "axis/graph/expr.h"
#include "lower/rewrite/rewrite.h"
#include "raise/algebra/views.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Node;
using axis::Program;
using axis::Use;

bool has_operands(const Use& use, std::string_view name, std::size_t count) {
  return use.node->is(Kind::kPointwise, name) && use.node->edges.size() == count;
}

bool is_in_order(const Tensor& table) {
  if (is_integer(table.dtype)) {
    for (std::int64_t i = 1; i < table.size(); ++i) {
      if (table.int_at(i) < table.int_at(i - 1)) return false;
    }
    return true;
  }
  // NaN is in no order with anything; one element is compared with itself.
  for (std::int64_t i = 0; i < table.size(); ++i) {
    if (!(table.at(i) >= table.at(std::max<std::int64_t>(i - 1, 0)))) return false;
  }
  return is_float(table.dtype);
}

// The body of the scan over its inputs: constants, then the ends of the interval.
class Halving {
 public:
  Halving(Program& body, std::size_t consts) : graph_(*body.graph), consts_(consts) {
    if (body.outputs.size() != 2) return;
    for (const axis::View& view : body.outputs) {
      if (axis::flatten(view.dims) != view.use.flat()) return;  // dims in another order
    }
    if (body.outputs[0].use.labels.size() != body.outputs[1].use.labels.size()) return;
    high_ = body.outputs[1].use;
    low_ = {body.outputs[0].use.node, high_.labels};
  }

  // Whether the query is one of the constants, and the body halves the interval around its place.
  bool matches() {
    if (!low_ || !has_operands(low_, "select_n", 3) || !has_operands(high_, "select_n", 3)) {
      return false;
    }
    const Use test = graph_.child(high_, 0);
    if (graph_.child(low_, 0) != test) return false;
    // The upper end moves where the query is at or before the element in the middle.
    for (const bool is_left : {true, false}) {
      const std::size_t moved = is_left ? 2 : 1, kept = 3 - moved;
      const Use middle = graph_.child(high_, moved);
      if (!is_input(graph_.child(high_, kept), 1) || !is_input(graph_.child(low_, moved), 0) ||
          graph_.child(low_, kept) != middle || !is_middle(middle)) {
        continue;
      }
      is_left_ = is_left;
      return is_test(test, middle);
    }
    return false;
  }

  const Tensor& table() const { return table_->data; }
  std::size_t query() const { return query_; }
  bool is_left() const { return is_left_; }

 private:
  // Carry i, over all axes in order.
  bool is_input(const Use& use, std::int64_t i) const {
    return use.node->kind == Kind::kInput && use.labels == high_.labels &&
           use.node->get<std::int64_t>("index") == static_cast<std::int64_t>(consts_) + i;
  }

  // low + (high - low) / 2
  bool is_middle(const Use& use) {
    if (!has_operands(use, "add", 2) || use.labels != high_.labels) return false;
    for (const std::size_t i : {0u, 1u}) {
      const Use half = graph_.child(use, 1 - i);
      if (!is_input(graph_.child(use, i), 0) || !has_operands(half, "div", 2)) continue;
      const Use length = graph_.child(half, 0);
      return graph_.scalar_value(graph_.child(half, 1)) == 2 && has_operands(length, "sub", 2) &&
             is_input(graph_.child(length, 0), 1) && is_input(graph_.child(length, 1), 0);
    }
    return false;
  }

  // query <= element or element is NaN; for the right side its mirror, which asks for the opposite.
  // Integers have no NaN.
  bool is_test(Use test, const Use& middle) {
    if (has_operands(test, "or", 2)) {
      const std::size_t nan_at = has_operands(graph_.child(test, 1), "ne", 2) ? 1 : 0;
      const Use is_nan = graph_.child(test, nan_at);
      test = graph_.child(test, 1 - nan_at);
      if (!has_operands(is_nan, "ne", 2) || !has_operands(test, "le", 2)) return false;
      const Use last = graph_.child(test, 1);
      if (graph_.child(is_nan, 0) != last || graph_.child(is_nan, 1) != last) return false;
      return is_left_ ? sides(test, 0, middle) : sides(test, 1, middle);
    }
    // Of integers both sides leave the upper end where the test holds.
    if (!is_left_ || !is_integer(graph_.child(test, 0).node->dtype)) return false;
    is_left_ = has_operands(test, "le", 2);
    return (is_left_ || has_operands(test, "lt", 2)) && sides(test, 0, middle);
  }

  bool sides(const Use& test, std::size_t query, const Use& middle) {
    const Use sought = graph_.child(test, query), element = graph_.child(test, 1 - query);
    if (sought.node->kind != Kind::kInput || sought.labels != high_.labels) return false;
    query_ = static_cast<std::size_t>(sought.node->get<std::int64_t>("index"));
    return query_ < consts_ && is_element(element, middle);
  }

  // table[middle]. The operand of a primitive has its dims in order, and so has the result.
  bool is_element(const Use& use, const Use& middle) {
    const Node& node = *use.node;
    const bool reads = node.is(Kind::kPrim, "gather") || node.is(Kind::kPrim, "dynamic_slice");
    if (!reads || node.edges.size() != 2 || use.labels != high_.labels) return false;
    const Node& table = *node.edges[0].node;
    if (table.kind != Kind::kConstant || table.out.size() != 1) return false;
    table_ = &table;
    return node.edges[1].node == middle.node;
  }

  Graph& graph_;
  std::size_t consts_;
  Use low_, high_;
  bool is_left_ = true;
  const Node* table_ = nullptr;
  std::size_t query_ = 0;
};

// The value of an operand that is the same everywhere.
std::optional<double> number_of(Graph& graph, Use use) {
  while (use.node->kind == Kind::kRelayout) use = graph.self(use.node->edges[0].node);
  return graph.scalar_value(use);
}

bool has_enough_steps(const front::ScanParams& scan, std::int64_t size) {
  return scan.length.is_static() && scan.length.value() < 63 &&
         (std::int64_t{1} << scan.length.value()) > size;
}

}  // namespace

Use search_in_order(Graph& graph, const Use& use) {
  if (!use.node->is(Kind::kPrim, "scan") || use.node->result != 1) return {};
  const axis::PrimInfo& info = *use.node->prim;
  if (raise::is_closed(*use.node)) return {};  // computed at export
  const auto scan = front::ScanParams::read(info.eqn);
  if (scan.carries != 2 || info.in.size() != scan.consts + 2 || scan.reverse) return {};
  Halving halving(*info.regions[0], scan.consts);
  if (!halving.matches() || !is_in_order(halving.table())) return {};
  const Tensor& table = halving.table();
  const front::Type& queries = info.in[halving.query()];
  if (!has_enough_steps(scan, table.size()) || !is_counted(table.size(), queries.shape)) return {};
  if (number_of(graph, graph.child(use, scan.consts)) != 0 ||
      number_of(graph, graph.child(use, scan.consts + 1)) != static_cast<double>(table.size())) {
    return {};
  }
  auto found = std::make_shared<axis::PrimInfo>();
  found->eqn.primitive = "search_in_order";
  found->eqn.attrs = {{"is_left", halving.is_left()}};
  found->in = {{table.dtype, {table.size()}}, queries};
  found->out = {{DType::kI32, queries.shape}};
  const Use positions =
      graph.prim(found, {graph.constant(table), graph.child(use, halving.query())})[0];
  return axis::convert({positions.node, use.labels}, use.node->dtype);
}

}  // namespace jaxport::lower
