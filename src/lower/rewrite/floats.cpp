// SPDX-License-Identifier: Apache-2.0
#include "lower/rewrite/floats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string_view>

#include "axis/graph/expr.h"
#include "front/params.h"
#include "lower/rewrite/rewrite.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Node;
using axis::Use;

constexpr int kDeepestFact = 8;
constexpr int kMostFacts = 64;  // nodes that one question may look at
constexpr std::int64_t kMaxElements = 1 << 16;

bool has_nan(const Tensor& data) {
  if (data.size() > kMaxElements) return true;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    if (std::isnan(data.at(i))) return true;
  }
  return false;
}

// Walks down from a value; each fact says how it passes through a node.
class Walk {
 public:
  explicit Walk(Graph& graph) : graph_(graph) {}

  bool is_never_nan(const Use& use, int depth = kDeepestFact) {
    const Node& node = *use.node;
    if (!is_float(node.dtype)) return !is_complex(node.dtype);
    if (depth == 0 || ++seen_ > kMostFacts) return false;
    if (node.kind == Kind::kConstant) return !has_nan(node.data);
    if (node.kind == Kind::kIota) return true;
    if (moves_elements(node)) return all_never_nan(use, depth - 1);
    if (node.is(Kind::kReduce, "reduce_max") || node.is(Kind::kReduce, "reduce_min")) {
      return all_never_nan(use, depth - 1);
    }
    if (node.kind != Kind::kPointwise) return false;
    if (node.name == "select_n" && node.edges.size() == 3) return chooses_no_nan(use, depth - 1);
    // Functions that give a number for every number and every infinity.
    constexpr std::array<std::string_view, 16> kTotal{
        "abs", "atan", "ceil",  "clamp",    "convert_element_type",
        "erf", "exp",  "floor", "logistic", "max",
        "min", "neg",  "relu",  "sigmoid",  "sign",
        "tanh"};
    return std::ranges::binary_search(kTotal, node.name) && all_never_nan(use, depth - 1);
  }

  bool is_whole(const Use& use, int depth = kDeepestFact) {
    const Node& node = *use.node;
    if (depth == 0 || ++seen_ > kMostFacts) return false;
    if (node.kind == Kind::kIota) return true;
    if (moves_elements(node)) {
      const auto parts = operands(use);
      return std::ranges::all_of(parts, [&](const Use& part) { return is_whole(part, depth - 1); });
    }
    return node.is(Kind::kPointwise, "convert_element_type") &&
           !is_float(node.edges[0].node->dtype) && !is_complex(node.edges[0].node->dtype);
  }

 private:
  // The operands in the context of `use`, or, where a kRelayout cuts axes elsewhere, each over
  // labels of its own: what holds for all elements holds in any order.
  std::vector<Use> operands(const Use& use) {
    std::vector<Use> found = graph_.children(use);
    if (!found.empty()) return found;
    for (const axis::Edge& edge : use.node->edges) found.push_back(graph_.self(edge.node));
    return found;
  }

  bool all_never_nan(const Use& use, int depth) {
    return std::ranges::all_of(operands(use),
                               [&](const Use& operand) { return is_never_nan(operand, depth); });
  }

  // x where it is a number, and something else that is none of NaN where x is NaN.
  bool chooses_no_nan(const Use& use, int depth) {
    const Use test = graph_.child(use, 0), otherwise = graph_.child(use, 1),
              chosen = graph_.child(use, 2);
    const auto is_guarded = [&](const Use& x, std::string_view tells) {
      const Node& node = *test.node;
      if (node.kind != Kind::kPointwise || node.name != tells) return false;
      if (node.name == "is_finite") return graph_.child(test, 0) == x;
      return graph_.child(test, 0) == x && graph_.child(test, 1) == x;
    };
    if (is_guarded(otherwise, "ne")) return is_never_nan(chosen, depth);
    if (is_guarded(chosen, "eq") || is_guarded(chosen, "is_finite"))
      return is_never_nan(otherwise, depth);
    return is_never_nan(otherwise, depth) && is_never_nan(chosen, depth);
  }

  Graph& graph_;
  int seen_ = 0;
};

}  // namespace

bool moves_elements(const Node& node) {
  return node.kind == Kind::kConcat || node.kind == Kind::kPick || node.kind == Kind::kRelayout ||
         node.kind == Kind::kSlice || node.kind == Kind::kStack;
}

bool is_never_nan(Graph& graph, const Use& use) { return Walk(graph).is_never_nan(use); }
bool is_whole(Graph& graph, const Use& use) { return Walk(graph).is_whole(use); }

namespace {

Use marked_with(Graph& graph, const Use& use, const char* mark) {
  auto marked = std::make_shared<axis::PrimInfo>(*use.node->prim);
  front::set(marked->eqn.attrs, mark, true);
  return {graph.prim(marked, graph.children(use))[use.node->result].node, use.labels};
}

}  // namespace

Use order_with_signs(Graph& graph, const Use& use) {
  if (!use.node->is(Kind::kPrim, "top_k")) return {};
  const axis::PrimInfo& info = *use.node->prim;
  if (front::find(info.eqn.attrs, "signed_zeros") || !is_float(info.in[0].dtype)) return {};
  return marked_with(graph, use, "signed_zeros");
}

Use order_without_nan(Graph& graph, const Use& use) {
  constexpr std::array<std::string_view, 5> kOrders{"approx_top_k", "argmax", "argmin", "sort",
                                                    "top_k"};
  if (use.node->kind != Kind::kPrim || !std::ranges::binary_search(kOrders, use.node->name))
    return {};
  const axis::PrimInfo& info = *use.node->prim;
  if (front::find(info.eqn.attrs, "no_nan") || !is_float(info.in[0].dtype)) return {};
  const std::vector<Use> operands = graph.children(use);
  const std::size_t keys =
      info.eqn.primitive == "sort" ? front::SortParams::read(info.eqn).keys : 1;
  for (std::size_t i = 0; i < keys; ++i) {
    if (!is_never_nan(graph, operands[i])) return {};
  }
  return marked_with(graph, use, "no_nan");
}

namespace {

// expm1(x) + c loses the digits of a small expm1(x), however it is computed. As it is here, that is
// worth a node only where nothing else reads expm1(x).
Use plain_sum(Graph& graph, const Use& use, const axis::UseCounts& uses) {
  if (use.node->name != "add") return {};
  const Use term = graph.child(use, 0);
  const auto other = graph.scalar_value(graph.child(use, 1));
  const bool absorbs = other && std::abs(*other) >= 1 && term.node->is(Kind::kPointwise, "expm1");
  if (!absorbs || uses[term.node] > 1) return {};
  const Use plain = exp(graph.child(term, 0)) - 1;
  return plain + *other;
}

}  // namespace

Use plain_exponential(Graph& graph, const Use& use, const axis::UseCounts& uses) {
  const Node& node = *use.node;
  if (node.kind != Kind::kPointwise || !is_float(node.dtype) || byte_width(node.dtype) < 4) {
    return {};
  }
  if (node.name != "expm1" && node.name != "log1p") return plain_sum(graph, use, uses);
  const Use x = graph.child(use, 0);
  if (!is_whole(graph, x)) return {};
  return node.name == "expm1" ? exp(x) - 1 : log(x + 1);
}

}  // namespace jaxport::lower
