// SPDX-License-Identifier: Apache-2.0
#include "lower/prepare.h"

#include <array>
#include <cmath>
#include <string_view>

#include "lower/ctx.h"
#include "onnx/schema.h"
#include "raise/raise.h"

namespace jaxport::lower {
namespace {

using axis::Kind;
using axis::Use;

struct MacroOp {
  std::string_view macro, op;
};
constexpr std::array<MacroOp, 5> kMacroOps{{{"attention", "Attention"},
                                            {"log_softmax", "LogSoftmax"},
                                            {"logsumexp", "ReduceLogSumExp"},
                                            {"rope", "RotaryEmbedding"},
                                            {"softmax", "Softmax"}}};

std::string_view op_of(const axis::Node& node) {
  if (node.name == "norm") {
    return *node.attr("center")->get_if<bool>() ? "LayerNormalization" : "RMSNormalization";
  }
  for (const MacroOp& entry : kMacroOps) {
    if (entry.macro == node.name) return entry.op;
  }
  return {};
}

// ONNX keeps the epsilon of a normalisation in f32.
bool fits_attribute(const axis::Node& node) {
  if (node.name != "norm" || node.dtype != DType::kF64) return true;
  const double eps = *node.attr("eps")->get_if<double>();
  return static_cast<double>(static_cast<float>(eps)) == eps;
}

// ONNX Runtime takes 7 times as long for PRelu and for ReduceLogSumExp as for their parts.
bool is_slow(const axis::Node& node, target::Target target) {
  return target == target::Target::kOnnxRuntime &&
         (node.name == "logsumexp" || node.name == "prelu");
}

bool has_lowering(const axis::Node& node, int opset, target::Target target) {
  if (is_slow(node, target)) return false;
  const bool is_double = node.dtype == DType::kF64;
  if (node.kind == Kind::kPointwise) {
    // ONNX Runtime has no f64 kernels for activations, but for their parts.
    return (!is_double || node.name == "relu") && find_row(node.name, opset) != nullptr;
  }
  // Narrower floats are computed in f32 where they have no kernel.
  return fits_attribute(node) &&
         target::runs(target, op_of(node), opset, is_double ? DType::kF64 : DType::kF32);
}

Use expand_missing(axis::Graph& graph, const Use& use, int opset, target::Target target) {
  if (!raise::is_raised(*use.node)) return {};
  if (!has_lowering(*use.node, opset, target)) return raise::expand(graph, use);
  if (use.node->name != "logsumexp") return {};
  return graph.reduce("reduce_log_sum_exp", graph.child(use, 0), graph.role(use, "s"),
                      use.node->dtype);
}

// sum(x) / n and sum(x) * (1/n) over n elements.
Use mean(axis::Graph& graph, const Use& use, const axis::UseCounts& uses) {
  const bool divides = use.node->is(Kind::kPointwise, "div");
  if (!divides && !use.node->is(Kind::kPointwise, "mul")) return {};
  if (!is_float(use.node->dtype)) return {};
  const Use sum = graph.child(use, 0), count = graph.child(use, 1);
  if (!sum.node->is(Kind::kReduce, "reduce_sum") || uses[sum.node] > 1) return {};
  const auto factor = graph.scalar_value(count);
  if (!factor || sum.node->dtype != use.node->dtype) return {};
  const Use x = graph.child(sum, 0);
  axis::Labels over;
  for (axis::Label label : x.flat()) {
    if (!axis::contains(sum.flat(), label)) over.push_back(label);
  }
  const Dim size = graph.size_of(over);
  if (!size.is_static()) return {};
  const double n = static_cast<double>(size.value());
  const bool exact = divides ? *factor == n : std::abs(*factor * n - 1) < 1e-7;
  return exact ? graph.reduce("reduce_mean", x, over, use.node->dtype) : Use{};
}

}  // namespace

void prepare(axis::Program& program, int opset, target::Target target) {
  axis::rebuild(program, [&](axis::Graph& graph, const Use& use, const axis::UseCounts&) {
    return expand_missing(graph, use, opset, target);
  });
  axis::rebuild(program, mean);
  for (axis::Program* region : axis::regions(program)) prepare(*region, opset, target);
}

}  // namespace jaxport::lower
