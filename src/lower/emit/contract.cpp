// SPDX-License-Identifier: Apache-2.0
// Contractions: MatMul with the activation's rows kept as they are and the weight folded to [K][N],
// or a batched MatMul of two activations, in the cheapest arrangement.
#include <algorithm>

#include "lower/emit/cheapest.h"
#include "lower/emit/emission.h"
#include "lower/macro/macro.h"

namespace jaxport::lower {

using axis::Edge;
using axis::Label;
using axis::Labels;
using axis::Node;

namespace {

// One way to multiply.
struct Product {
  double price;
  std::size_t x;  // which edge is the left operand
  Arrangement left, right, result;
};

// The labels of a contraction seen from its left operand.
struct ContractLabels {
  LabelSet left, right, contracted, batch, fresh;  // fresh: only in the right operand
  ContractLabels(const axis::Node& node, const axis::Edge& x, const axis::Edge& y)
      : left(node.sizes.size(), x.axes),
        right(node.sizes.size(), y.axes),
        contracted(node.sizes.size()),
        batch(node.sizes.size()),
        fresh(node.sizes.size()) {
    const LabelSet out(node.sizes.size(), node.out);
    for (Label label = 0; label < static_cast<Label>(node.sizes.size()); ++label) {
      if (left.has(label) && right.has(label)) (out.has(label) ? batch : contracted).add({label});
      if (right.has(label) && !left.has(label)) fresh.add({label});
    }
  }
};

// Rows of the left operand: its dims without the contracted labels.
Arrangement rows_of(const Arrangement& seen, const LabelSet& contracted) {
  Arrangement rows;
  for (const Labels& dim : seen) {
    if (Labels rest = contracted.drop(dim); !rest.empty() || dim.empty())
      rows.push_back(std::move(rest));
  }
  return rows;
}

Arrangement with(Arrangement arrangement, const Labels& last) {
  arrangement.push_back(last);
  return arrangement;
}

// MatMul broadcasts leading dims: batch labels first, one dim of plain rows last.
Arrangement rows_with_batch_first(const Arrangement& rows, const LabelSet& batch) {
  const Arrangement split = split_by(rows, batch);
  Labels last;
  for (const Labels& dim : split) {
    if (!dim.empty() && !batch.has_any(dim)) last = dim;
  }
  Arrangement result;
  for (const Labels& dim : split) {
    if (last.empty() || dim != last) result.push_back(dim);
  }
  result.push_back(last);
  return result;
}

// MatMul takes a matrix and a vector, but ONNX Runtime 1.31 misreads the vector once it has fused a
// Transpose of the matrix into the product. One column, which may have no labels, is safe.
bool needs_column(const Arrangement& rows, const Labels& columns) {
  return !rows.empty() || !columns.empty();
}

bool needs_batch_dim(const axis::Node& node) {
  const MacroRow* macro = find_macro(node);
  return macro && macro->needs_batch_dim;
}

bool starts_with_unit(const Arrangement& arrangement) {
  return !arrangement.empty() && arrangement[0].empty();
}

// One Reshape before all projections is better than one after each.
double missing_batch_dim(const Emission& e, const Node& node, const Arrangement& wish,
                         const Arrangement& result) {
  const bool is_needed = std::ranges::any_of(e.plan.facts.users(&node), [](const auto& user) {
    return user.node && needs_batch_dim(*user.node);
  });
  const bool missing = starts_with_unit(wish) && !starts_with_unit(result);
  return is_needed && missing ? kReshapePrice + 0.5 : 0;
}

// W . x for x whose last dim but one is contracted: nothing is to be transposed, which takes 0.64
// to 0.91 of the time of Transpose, MatMul, Transpose. The weight is a row vector when it has no
// label of its own.
void consider_constant_left(const Emission& e, const Node& node, std::size_t weight,
                            const Arrangement& x, Arrangement left, std::vector<Product>& ways) {
  const Labels &rows = left[0], &inner = left[1];
  if (x.size() < 2 || x[x.size() - 2] != inner || x.back() == inner) return;
  Arrangement result = x;
  result[x.size() - 2] = rows;
  if (rows.empty()) {
    result.erase(result.end() - 2);
    left.erase(left.begin());
  }
  ways.push_back({regret(e, node, result), weight, left, x, result});
}

void consider_constant_weight(const Emission& e, const Node& node, std::size_t x,
                              std::vector<Product>& ways) {
  const Edge &edge = node.edges[x], &weight = node.edges[1 - x];
  const ContractLabels labels(node, edge, weight);
  const bool has_batch = !labels.batch.empty();
  const LabelSet out(node.sizes.size(), node.out);
  std::vector<Arrangement> candidates = e.values.arrangements(edge, node.sizes);
  auto wish = wanted(e, node, out);
  if (wish && !wish_for(e, node)->is_for_order() && !has_batch) {
    Arrangement rows = rows_of(*wish, labels.fresh);
    candidates.push_back(with(std::move(rows), labels.contracted.keep(axis::flatten(edge.axes))));
  }
  Labels columns = labels.fresh.keep(wish ? axis::flatten(*wish) : axis::flatten(weight.axes));
  for (const Arrangement& seen : candidates) {
    const Labels inner = labels.contracted.keep(axis::flatten(seen));
    Arrangement rows = rows_of(seen, labels.contracted);
    if (has_batch) rows = rows_with_batch_first(rows, labels.batch);
    const Arrangement left = with(rows, inner);
    Arrangement right;
    if (has_batch) {
      for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
        right.push_back(!rows[i].empty() && labels.batch.has_all(rows[i]) ? rows[i] : Labels{});
      }
    }
    right.push_back(inner);
    const bool has_columns = needs_column(rows, columns);
    if (has_columns) right.push_back(columns);
    const Arrangement result = has_columns ? with(rows, columns) : rows;
    double cost = e.values.price(edge, node.sizes, left) + regret(e, node, result);
    if (wish) cost += missing_batch_dim(e, node, *wish, result);
    ways.push_back({cost, x, left, right, result});
    if (!has_batch) consider_constant_left(e, node, 1 - x, seen, {columns, inner}, ways);
  }
}

void consider_two_activations(const Emission& e, const Node& node, std::size_t x,
                              std::vector<Product>& ways) {
  const Edge &lhs = node.edges[x], &rhs = node.edges[1 - x];
  const ContractLabels labels(node, lhs, rhs);
  const bool has_batch = !labels.batch.empty();
  auto offer = [&](const Arrangement& left, const Arrangement& right, const Arrangement& result) {
    const double cost =
        e.values.price(lhs, node.sizes, left) + e.values.price(rhs, node.sizes, right);
    ways.push_back({cost + regret(e, node, result), x, left, right, result});
  };
  for (const Arrangement& seen : e.values.arrangements(lhs, node.sizes)) {
    const Labels order = axis::flatten(seen);
    for (const Arrangement& other : e.values.arrangements(rhs, node.sizes)) {
      const Labels other_order = axis::flatten(other);
      const Labels columns = labels.batch.drop(labels.contracted.drop(other_order));
      std::vector<Labels> inners{labels.contracted.keep(order)};
      if (Labels alternative = labels.contracted.keep(other_order); alternative != inners[0]) {
        inners.push_back(std::move(alternative));
      }
      for (const Labels& inner : inners) {
        if (!has_batch) {
          const Arrangement rows = rows_of(seen, labels.contracted);
          const bool has_columns = needs_column(rows, columns);
          const Arrangement right = has_columns ? Arrangement{inner, columns} : Arrangement{inner};
          offer(with(rows, inner), right, has_columns ? with(rows, columns) : rows);
          continue;
        }
        const Labels rows = labels.batch.drop(labels.contracted.drop(order));
        Arrangement batch;
        for (Label label : labels.batch.keep(order)) batch.push_back({label});
        for (int units = starts_with_unit(seen) ? 1 : 0; units <= 1; ++units) {
          Arrangement lead(static_cast<std::size_t>(units));
          lead.insert(lead.end(), batch.begin(), batch.end());
          offer(with(with(lead, rows), inner), with(with(lead, inner), columns),
                with(with(lead, rows), columns));
        }
      }
    }
  }
}

// preferred_element_type: products are formed in the result's type.
Value product(Emission& e, std::string_view op, const Node& node, Values factors) {
  for (Value& factor : factors) factor = cast(factor, node.dtype);
  return e.op.call(op, factors);
}

}  // namespace

void emit_contract(Emission& e, const Node& node) {
  const ContractLabels labels(node, node.edges[0], node.edges[1]);
  if (labels.contracted.empty()) {
    auto [factors, arrangement] = broadcast_operands(e, node);
    return e.values.define(node, product(e, "Mul", node, std::move(factors)), arrangement);
  }
  std::vector<Product> ways;
  for (std::size_t x : {0, 1}) {
    if (e.values.is_constant(node.edges[x])) continue;
    if (e.values.is_constant(node.edges[1 - x])) {
      consider_constant_weight(e, node, x, ways);
    } else {
      consider_two_activations(e, node, x, ways);
    }
  }
  const Product best = cheapest_of(std::move(ways), &Product::price);
  Values factors{e.values.bring(node.edges[best.x], node.sizes, best.left),
                 e.values.bring(node.edges[1 - best.x], node.sizes, best.right)};
  e.values.define(node, product(e, "MatMul", node, std::move(factors)), best.result);
}

}  // namespace jaxport::lower
