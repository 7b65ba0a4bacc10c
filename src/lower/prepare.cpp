// SPDX-License-Identifier: Apache-2.0
#include "lower/prepare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "lower/ctx.h"
#include "lower/norm.h"
#include "lower/resize.h"
#include "lower/rewrite.h"
#include "onnx/schema.h"
#include "raise/raise.h"

namespace jaxport::lower {
namespace {

using axis::Kind;
using axis::Use;

struct MacroOp {
  std::string_view macro, op;
};
constexpr std::array<MacroOp, 10> kMacroOps{{{"attention", "Attention"},
                                             {"gru", "GRU"},
                                             {"log_softmax", "LogSoftmax"},
                                             {"logsumexp", "ReduceLogSumExp"},
                                             {"lstm", "LSTM"},
                                             {"partial_rope", "RotaryEmbedding"},
                                             {"resize", "Resize"},
                                             {"rnn", "RNN"},
                                             {"rope", "RotaryEmbedding"},
                                             {"softmax", "Softmax"}}};

std::string_view op_of(const axis::Node& node) {
  if (node.name == "norm") {
    if (node.attr("native")) return "GroupNormalization";
    if (NormLabels(node).is_instance()) return "InstanceNormalization";
    return *node.attr("center")->get_if<bool>() ? "LayerNormalization" : "RMSNormalization";
  }
  for (const MacroOp& entry : kMacroOps) {
    if (entry.macro == node.name) return entry.op;
  }
  return {};
}

// ONNX keeps numbers such as the epsilon of a normalisation in f32. The definition of Attention
// multiplies both operands with the root of its scale, in f32 too.
bool fits_attributes(const axis::Node& node) {
  if (node.kind != Kind::kMacro || node.dtype != DType::kF64) return true;
  const auto fits = [](double value) {
    return static_cast<double>(static_cast<float>(value)) == value;
  };
  return std::ranges::all_of(node.attrs, [&](const auto& attr) {
    const auto* value = attr.second.template get_if<double>();
    if (value && node.name == "attention" && attr.first == "scale") {
      const double root = std::sqrt(*value);
      return fits(root) && root * root == *value;
    }
    return !value || fits(*value);
  });
}

// Whether the op is zero for rows that are masked everywhere, where it must be.
bool keeps_zero_rows(const axis::Node& node, target::Target target) {
  const front::Attr* zero_rows = node.attr("zero_rows");
  return target::preferences(target).zeroes_masked_rows || !zero_rows ||
         !*zero_rows->get_if<bool>();
}

// LayerNormalization and RMSNormalization need a scale of all normalised axes. Where their sizes
// are symbolic it must be there: one of ones would have to be made at run time.
bool has_scale(const axis::Node& node) {
  if (node.name != "norm" || NormLabels(node).is_instance()) return true;
  const axis::Labels given =
      *node.attr("scale")->get_if<bool>() ? axis::flatten(node.edges[1].axes) : axis::Labels{};
  return std::ranges::all_of(node.role("a"), [&](axis::Label label) {
    return axis::contains(given, label) || node.sizes[static_cast<std::size_t>(label)].is_static();
  });
}

// ONNX Runtime takes 7 times as long for PRelu and for ReduceLogSumExp as for their parts.
bool is_slow(const axis::Node& node, target::Target target) {
  return target == target::Target::kOnnxRuntime &&
         (node.name == "logsumexp" || node.name == "prelu" ||
          (node.name == "resize" && is_slow_resize(node)));
}

bool is_relu_cell(const axis::Node& node) {
  if (!node.is(Kind::kPrim, "rnn")) return false;
  return *front::find(node.prim->eqn.attrs, "activation")->get_if<std::string>() == "Relu";
}

// ONNX Runtime's Elu, Celu and Selu subtract 1 from an exponential: near zero no digit is right.
// Its LogSoftmax in f64 takes a sum that is NaN for 1e-20, and gives 46 beside a NaN. The Relu of
// its RNN makes 0 of NaN.
bool is_wrong(const axis::Node& node, target::Target target) {
  return target == target::Target::kOnnxRuntime &&
         (node.name == "celu" || node.name == "elu" || node.name == "selu" ||
          (node.name == "log_softmax" && node.dtype == DType::kF64) || is_relu_cell(node));
}

// Integers are copied; no other dtype can stand in for them.
bool has_resize(const axis::Node& node, int opset, target::Target target) {
  constexpr int kSinceAxes = 18;
  const DType dtype = is_float(node.dtype) && node.dtype != DType::kF64 ? DType::kF32 : node.dtype;
  return opset >= kSinceAxes && target::runs(target, "Resize", opset, dtype);
}

bool has_lowering(const axis::Node& node, int opset, target::Target target) {
  if (is_slow(node, target) || is_wrong(node, target)) return false;
  const bool is_double = node.dtype == DType::kF64;
  if (node.kind == Kind::kPointwise) {
    // ONNX Runtime has no f64 kernels for activations, but for their parts. It has one for Relu,
    // but does not load a Relu of f64 before a Clip.
    return !is_double && find_row(node.name, opset) != nullptr;
  }
  if (node.name == "resize") return has_resize(node, opset, target);
  // Narrower floats are computed in f32 where they have no kernel.
  return fits_attributes(node) && keeps_zero_rows(node, target) && has_scale(node) &&
         target::runs(target, op_of(node), opset, is_double ? DType::kF64 : DType::kF32);
}

// The op adds its mask; a number that absorbs the score replaces it.
Use without_mask(axis::Graph& graph, const Use& attention) {
  std::vector<Use> operands = graph.children(attention);
  operands.pop_back();
  const axis::Node& node = *attention.node;
  axis::Roles roles = node.roles;
  for (auto& [name, labels] : roles) labels = graph.role(attention, name);
  return graph.macro("attention", std::move(operands), attention.flat(), node.dtype,
                     std::move(roles), node.attrs);
}

Use expand_missing(axis::Graph& graph, const Use& use, int opset, target::Target target) {
  if (!raise::is_raised(*use.node)) return {};
  if (!has_lowering(*use.node, opset, target)) return raise::expand(graph, use);
  if (use.node->is(Kind::kMacro, "attention") && use.node->edges.size() > 4)
    return without_mask(graph, use);
  if (use.node->name != "logsumexp") return {};
  return graph.reduce("reduce_log_sum_exp", graph.child(use, 0), graph.role(use, "s"),
                      use.node->dtype);
}

}  // namespace

void prepare(axis::Program& program, const Options& options) {
  const int opset = options.opset;
  axis::rebuild(program, [&](axis::Graph& graph, const Use& use, const axis::UseCounts& uses) {
    Use found = expand_missing(graph, use, opset, options.target);
    if (!found) found = narrow_norm(graph, use, uses, opset, options.target);
    return !found && options.native_norms ? native_norm(graph, use, opset) : found;
  });
  axis::rebuild(program, [&](axis::Graph& graph, const Use& use, const axis::UseCounts& uses) {
    Use found = mean(graph, use, uses);
    if (!found) found = window_mean(graph, use, uses, opset);
    if (!found) found = gather_inside(graph, use);
    if (!found) found = triangle(graph, use);
    if (!found) found = eye(graph, use);
    if (!found && options.target == target::Target::kOnnxRuntime) found = exact_sigmoid(graph, use);
    return found ? found : scatter_inside(graph, use);
  });
  axis::rebuild(program, fold_affine);
  for (axis::Program* region : axis::regions(program)) prepare(*region, options);
}

}  // namespace jaxport::lower
