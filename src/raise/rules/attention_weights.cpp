// SPDX-License-Identifier: Apache-2.0
#include "raise/rules/attention_weights.h"

#include <cmath>

#include "axis/graph/expr.h"
#include "raise/algebra/views.h"
#include "raise/engine/ops.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Use;

constexpr int kMostSteps = 8;

bool is_softmax(const Use& use) { return is<SoftmaxOp>(*use.node); }

// Goes down one operation at a time.
class Descent {
 public:
  Descent(const Matcher& m, const Use& use) : m_(m), graph_(m.graph) { enter(use, 1); }

  std::optional<Weights> run() {
    for (int i = 0; i < kMostSteps && !is_softmax(weights_.softmax); ++i) {
      const Use use = weights_.softmax;
      if (!convert(use) && !select(use) && !product(use)) return std::nullopt;
    }
    if (!is_softmax(weights_.softmax)) return std::nullopt;
    return std::move(weights_);
  }

 private:
  // `edges`: how often the operation above refers to the value.
  bool enter(const Use& use, std::uint32_t edges) {
    weights_.softmax = use;
    weights_.narrowest = narrower(weights_.narrowest, use.node->dtype);
    weights_.is_shared = weights_.is_shared || m_.uses[use.node] > edges;
    return true;
  }

  bool convert(const Use& use) {
    if (!is_pointwise(use, "convert_element_type")) return false;
    const Use inner = graph_.child(use, 0);
    return is_float(inner.node->dtype) && enter(inner, 1);
  }

  bool select(const Use& use) {
    if (!is_pointwise(use, "select_n") || use.node->edges.size() != 3) return false;
    const std::vector<Use> operands = graph_.children(use);
    if (operands[0].node->dtype != DType::kBool) return false;
    return nan_test(operands) || infinity_test(operands) || guard(operands);
  }

  // select(w is NaN, 0, w)
  bool nan_test(const std::vector<Use>& operands) {
    const Use &test = operands[0], &w = operands[1];
    if (!is_pointwise(test, "ne") || graph_.scalar_value(operands[2]) != 0.0) return false;
    if (graph_.child(test, 0) != w || graph_.child(test, 1) != w) return false;
    weights_.has_no_nan = tests_values_ = true;
    return enter(w, 3);
  }

  // select(w == inf, large, w), a part of nan_to_num: weights are at most 1
  bool infinity_test(const std::vector<Use>& operands) {
    const Use &test = operands[0], &w = operands[1];
    if (!is_pointwise(test, "eq")) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto value = graph_.scalar_value(graph_.child(test, i));
      if (!value || !std::isinf(*value) || graph_.child(test, 1 - i) != w) continue;
      tests_values_ = true;
      return enter(w, 2);
    }
    return false;
  }

  // select(m, w, 0) and select(m, 0, w)
  bool guard(const std::vector<Use>& operands) {
    for (std::size_t i : {1u, 2u}) {
      if (graph_.scalar_value(operands[i]) != 0.0) continue;
      add(Kind::kMask, i == 1 ? operands[0] : logical_not(operands[0]));
      return enter(operands[3 - i], 1);
    }
    return false;
  }

  // w * float(m), w * factor and w / factor. XLA computes the first as select(m, w, 0). Below a
  // test for NaN or infinity, the factor must not make any.
  bool product(const Use& use) {
    const bool divides = is_pointwise(use, "div");
    if (!divides && !is_pointwise(use, "mul")) return false;
    const std::vector<Use> operands = graph_.children(use);
    for (std::size_t i = 0; i < (divides ? 1 : 2); ++i) {
      const Use &w = operands[i], &factor = operands[1 - i];
      if (const Use mask = converted_bool(graph_, factor); mask && !divides) {
        add(Kind::kMask, mask);
        return enter(w, 1);
      }
      const auto number = graph_.scalar_value(factor);
      if (!number && (!is_softmax(w) || tests_values_)) continue;
      add(divides ? Kind::kDivide : Kind::kMultiply, factor);
      return enter(w, 1);
    }
    return false;
  }

  using Kind = Weights::Step::Kind;
  void add(Kind kind, const Use& use) { weights_.steps.push_back({kind, use}); }

  const Matcher& m_;
  Graph& graph_;
  Weights weights_;
  bool tests_values_ = false;  // NaN or infinity is replaced further out
};

}  // namespace

std::optional<Weights> weights_of(const Matcher& m, const Use& use) {
  return Descent(m, use).run();
}

}  // namespace jaxport::raise
