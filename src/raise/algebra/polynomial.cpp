// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/polynomial.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "axis/graph/expr.h"
#include "axis/graph/parts.h"
#include "axis/graph/pattern.h"

namespace jaxport::raise {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

namespace {

// Bounds that no cell comes near; they keep a rule linear.
constexpr std::size_t kMostMonomials = 24;
constexpr int kDeepestPolynomial = 12;

// What a pick or a slice takes of each value that varies along the label it runs over.
class Restriction {
 public:
  Restriction(Graph& graph, const Use& use)
      : graph_(graph),
        slice_(use.node->kind == Kind::kPick ? of_one(graph, use) : axis::Slice::of(graph, use)) {}

  Use operator()(Use operand) const {
    if (!axis::contains(operand.flat(), slice_.from[0])) return operand;
    // The context may see the axis of the result as a product.
    std::optional<Label> whole;
    axis::Substitution seen;
    if (!slice_.to.empty()) {
      whole = graph_.label(graph_.size_of(slice_.to));
      seen.set(*whole, slice_.to);
    }
    return seen(graph_.slice(std::move(operand), slice_.from[0], whole, slice_.start, slice_.limit,
                             slice_.stride));
  }

 private:
  // A pick is a slice of size 1.
  static axis::Slice of_one(Graph& graph, const Use& use) {
    const axis::Pick pick = axis::Pick::of(graph, use);
    return {pick.along, {}, pick.index, pick.index + 1, 1};
  }

  Graph& graph_;
  const axis::Slice slice_;
};

Use sunk_within(Graph& graph, const Use& use, int depth) {
  if (use.node->kind == Kind::kRelayout && depth > 0) {
    const Use inner = graph.child(use, 0);
    return inner ? sunk_within(graph, inner, depth - 1) : use;
  }
  const bool restricts = use.node->kind == Kind::kPick || use.node->kind == Kind::kSlice;
  if (!restricts || depth == 0) return use;
  const Use inner = sunk_within(graph, graph.child(use, 0), depth - 1);
  const axis::Node& node = *inner.node;
  if (node.kind != Kind::kPointwise && node.kind != Kind::kContract) return use;
  const Restriction restricted(graph, use);
  const std::vector<Use> below = graph.children(inner);
  std::vector<Use> operands;
  std::ranges::transform(below, std::back_inserter(operands), restricted);
  if (node.kind == Kind::kPointwise) {
    return graph.pointwise(node.name, std::move(operands), node.dtype, node.attrs);
  }
  const Labels over = axis::without(axis::within(below[0].flat(), below[1].flat()), inner.flat());
  return graph.contract(operands[0], operands[1], over, node.dtype);
}

// The contraction of value `i`, which is joined of pieces along what is contracted, as a sum of
// contractions of its pieces.
std::vector<Use> contractions_of_pieces(Graph& graph, const Use& contract, std::size_t i) {
  const std::vector<Use> operands = graph.children(contract);
  const Use &joined = operands[i], &other = operands[1 - i];
  const bool is_stack = joined.node->kind == Kind::kStack;
  if (!is_stack && joined.node->kind != Kind::kConcat) return {};
  const axis::Concat concat = is_stack ? axis::Concat{{}, axis::Stack::of(graph, joined).along}
                                       : axis::Concat::of(graph, joined);
  const Labels& along = concat.to;
  if (along.size() != 1 || axis::contains(contract.flat(), along[0])) return {};
  const Labels over = axis::without(axis::within(joined.flat(), other.flat()), contract.flat());
  std::vector<Use> sum;
  Dim start = 0;
  for (std::size_t j = 0; j < joined.node->edges.size(); ++j) {
    std::optional<Label> piece;
    if (!is_stack && !concat.pieces[j].empty()) piece = concat.pieces[j][0];
    const Dim limit = start + (piece ? graph.size(*piece) : Dim(1));
    const Use part = graph.slice(other, along[0], piece, start, limit, 1);
    Labels over_piece = axis::without(over, along);
    if (piece) over_piece.push_back(*piece);
    sum.push_back(graph.contract(graph.child(joined, j), part, over_piece, contract.node->dtype));
    start = limit;
  }
  return sum;
}

class Expansion {
 public:
  Expansion(Graph& graph, const IsAtom& is_atom) : graph_(graph), is_atom_(is_atom) {}

  Polynomial of(const Use& use, int depth) {
    if (auto value = graph_.scalar_value(use)) return number(*value);
    if (depth == 0 || is_atom_(use)) return {{1, {use}}};
    const Use seen = sunk(graph_, use);
    if (seen.node->kind == Kind::kContract) return contraction(seen, depth - 1);
    if (seen.node->kind != Kind::kPointwise) return {{1, {seen}}};
    return pointwise(seen, depth - 1);
  }
  bool fails() const { return fails_; }

 private:
  Polynomial pointwise(const Use& use, int depth) {
    const std::string_view name = use.node->name;
    const std::vector<Use> operands = graph_.children(use);
    if (name == "neg") return scaled(of(operands[0], depth), -1);
    if (name == "add" || name == "sub") {
      return sum(of(operands[0], depth), scaled(of(operands[1], depth), name == "add" ? 1 : -1));
    }
    if (name == "mul") return times(of(operands[0], depth), of(operands[1], depth));
    const auto divisor = name == "div" ? graph_.scalar_value(operands[1]) : std::nullopt;
    if (divisor) return times(of(operands[0], depth), number(1 / *divisor));
    return {{1, {use}}};
  }

  Polynomial contraction(const Use& use, int depth) {
    for (std::size_t i : {0, 1}) {
      const std::vector<Use> parts = contractions_of_pieces(graph_, use, i);
      if (parts.empty()) continue;
      Polynomial all;
      for (const Use& part : parts) all = sum(std::move(all), of(part, depth));
      return all;
    }
    return {{1, {use}}};
  }

  // Products with an infinite number do not distribute over sums.
  Polynomial number(double value) {
    if (!std::isfinite(value)) fails_ = true;
    return {{value, {}}};
  }

  static Polynomial scaled(Polynomial polynomial, double by) {
    for (Monomial& monomial : polynomial) monomial.coefficient *= by;
    return polynomial;
  }

  Polynomial sum(Polynomial a, Polynomial b) {
    std::ranges::move(b, std::back_inserter(a));
    return bounded(std::move(a));
  }

  Polynomial times(const Polynomial& a, const Polynomial& b) {
    Polynomial products;
    for (const Monomial& x : a) {
      for (const Monomial& y : b) {
        Monomial& xy = products.emplace_back(x);
        xy.coefficient *= y.coefficient;
        xy.factors.insert(xy.factors.end(), y.factors.begin(), y.factors.end());
      }
    }
    return bounded(std::move(products));
  }

  Polynomial bounded(Polynomial polynomial) {
    fails_ = fails_ || polynomial.size() > kMostMonomials;
    if (fails_) polynomial.clear();
    return polynomial;
  }

  Graph& graph_;
  const IsAtom& is_atom_;
  bool fails_ = false;
};

}  // namespace

std::optional<Polynomial> polynomial(Graph& graph, const Use& use, const IsAtom& is_atom) {
  Expansion expansion(graph, is_atom);
  Polynomial result = expansion.of(use, kDeepestPolynomial);
  if (expansion.fails()) return std::nullopt;
  return result;
}

Use sunk(Graph& graph, const Use& use) { return sunk_within(graph, use, kDeepestPolynomial); }

Use product(Graph& graph, const Monomial& monomial, DType dtype) {
  Use result;
  for (const Use& factor : monomial.factors) {
    result = result ? result * factor : factor;
  }
  return result ? result * monomial.coefficient : graph.scalar(monomial.coefficient, dtype);
}

}  // namespace jaxport::raise
