// SPDX-License-Identifier: Apache-2.0
// Chains of constant scales and shifts, such as a batch normalisation in inference: s * x + t.
//
// Behind a contraction or a convolution with a constant weight, the scale goes into the weight; in
// front of one, scale and shift do, the shift only where a convolution pads nothing. Elsewhere
// three steps and more become two. What is added to the features of a convolution is then its third
// operand. Only f32 and f64: narrower floats would round the weights, and once in place of twice.
#include <algorithm>
#include <cmath>
#include <optional>

#include "axis/graph/expr.h"
#include "axis/graph/pattern.h"
#include "front/params.h"
#include "lower/rewrite/rewrite.h"
#include "raise/algebra/views.h"

namespace jaxport::lower {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Labels;
using axis::Node;
using axis::Use;
using axis::UseCounts;

constexpr int kLongestChain = 8;
constexpr int kMostSteps = 4;
// A weight above this many elements is not copied.
constexpr std::int64_t kLargestWeight = std::int64_t{1} << 22;
// s * (x - m) loses digits as s * x - s * m when |s * m| is large against the result. And (x + c) -
// c rounds x when c is large, and a program may want just that.
constexpr double kLargestShift = 16;

// Computed from constants alone, in a few steps.
bool is_known(const Node& node, int depth = kMostSteps) {
  if (node.kind == Kind::kConstant) return true;
  if (depth == 0 || node.edges.empty() || node.kind == Kind::kPrim) return false;
  return std::ranges::all_of(
      node.edges, [&](const axis::Edge& edge) { return is_known(*edge.node, depth - 1); });
}

// All numbers of a known value pass; of one that is not small this is not looked up.
bool all_of(Graph& graph, const Use& use, bool (*test)(double)) {
  constexpr std::int64_t kMostElements = 1 << 16;
  std::int64_t elements = 1;
  for (const Dim& size : use.node->sizes) {
    if (!size.is_static()) return false;
    elements *= size.value();
  }
  if (elements > kMostElements) return false;
  const Tensor values = raise::evaluated(graph, use, use.flat());
  for (std::int64_t i = 0; i < values.size(); ++i) {
    if (!test(values.at(i))) return false;
  }
  return true;
}

bool is_moderate(Graph& graph, const Use& shift) {
  return all_of(graph, shift, [](double value) { return std::abs(value) <= kLargestShift; });
}

bool is_wide(const Node& node) { return node.dtype == DType::kF32 || node.dtype == DType::kF64; }

// A weight times the scale keeps its digits: no infinity that a sum would turn into NaN, nothing
// that leaves the range of f32 before it meets x. Zero is fine, and NaN gives NaN either way.
bool is_tame(Graph& graph, const Use& scale) {
  return all_of(graph, scale, [](double value) {
    constexpr int kLargestScaleExponent = 40;
    if (value == 0 || std::isnan(value)) return true;
    return std::isfinite(value) && std::abs(std::ilogb(value)) <= kLargestScaleExponent;
  });
}

// scale * x + shift
struct Affine {
  Use x;
  Use scale, shift;  // empty: 1 and 0
  int steps = 0;
};

// Takes one step of the chain; false when x is none.
bool take_step(Graph& graph, Affine& a) {
  const Node& node = *a.x.node;
  if (node.kind != Kind::kPointwise || !is_wide(node) || node.edges.size() != 2) return false;
  const std::string_view name = node.name;
  const bool adds = name == "add" || name == "sub", multiplies = name == "mul" || name == "div";
  if (!adds && !multiplies) return false;
  const Use lhs = graph.child(a.x, 0), rhs = graph.child(a.x, 1);
  const bool left = is_known(*lhs.node), right = is_known(*rhs.node);
  if (left == right || (left && (name == "sub" || name == "div"))) return false;
  const Use constant = left ? lhs : rhs;
  if (adds && constant.labels.empty() && !is_moderate(graph, constant)) return false;
  if (adds) {
    const Use shift = name == "sub" ? -constant : constant;
    const Use scaled = a.scale ? shift * a.scale : shift;
    a.shift = a.shift ? scaled + a.shift : scaled;
  } else {
    const Use scale = name == "div" ? 1 / constant : constant;
    a.scale = a.scale ? scale * a.scale : scale;
  }
  a.x = left ? rhs : lhs;
  ++a.steps;
  return true;
}

// The chain that ends at `root`; values inside it have no other use.
Affine affine_of(Graph& graph, const Use& root, const UseCounts& uses) {
  Affine a{root, {}, {}, 0};
  while (a.steps < kLongestChain && (a.steps == 0 || uses[a.x.node] <= 1)) {
    if (!take_step(graph, a)) break;
  }
  return a;
}

// A weight that may be multiplied with numbers of this dtype: JAX allows products of operands that
// differ in dtype from each other and from the result.
bool is_own_weight(const Graph& graph, const Use& weight, DType dtype, const UseCounts& uses) {
  if (!is_known(*weight.node) || uses[weight.node] > 1) return false;
  if (weight.node->dtype != dtype) return false;
  const Dim size = graph.size_of(weight.flat());
  return size.is_static() && size.value() <= kLargestWeight;
}

Labels contracted(const Use& lhs, const Use& result) {
  return axis::without(lhs.flat(), result.flat());
}

// x * scale, with the scale in the weight of the contraction x; empty when it does not go in.
Use scaled_contraction(Graph& graph, const Use& x, const Use& scale, const UseCounts& uses) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Use weight = graph.child(x, i), other = graph.child(x, 1 - i);
    const Labels own = axis::within(weight.flat(), x.flat());
    const bool fits = axis::without(scale.flat(), own).empty();
    if (!fits || !is_own_weight(graph, weight, scale.node->dtype, uses)) continue;
    return graph.contract(other, weight * scale, contracted(other, x), x.node->dtype);
  }
  return {};
}

// --- convolutions

// Which axis of a positional value dim `dim` of its type is; nullopt for a unit dim.
std::optional<std::size_t> axis_of_dim(const front::Type& type, std::int64_t dim) {
  const auto end = type.shape.begin() + dim;
  if (end->is_one()) return std::nullopt;
  return static_cast<std::size_t>(
      std::count_if(type.shape.begin(), end, [](const Dim& size) { return !size.is_one(); }));
}

Use scaled_convolution(Graph& graph, const Use& x, const Use& scale, const UseCounts& uses) {
  const axis::PrimInfo& conv = *x.node->prim;
  if (x.node->edges.size() != 2 || conv.in[0].dtype != conv.out[0].dtype) return {};
  Use kernel = graph.self(x.node->edges[1].node);
  if (!is_own_weight(graph, kernel, scale.node->dtype, uses)) return {};
  const auto params = front::ConvParams::read(conv.eqn);
  const auto result_axis = axis_of_dim(conv.out[0], params.out[1]);
  const auto kernel_axis = axis_of_dim(conv.in[1], params.rhs[0]);
  if (!result_axis || !kernel_axis) return {};
  const Labels& features = x.labels[*result_axis];
  if (!axis::without(scale.flat(), features).empty()) return {};
  kernel.labels[*kernel_axis] = features;
  const Use scaled = graph.relayout(kernel * scale, kernel.labels);
  Use result = graph.prim(x.node->prim, {graph.child(x, 0), scaled})[x.node->result];
  result.labels = x.labels;
  return result;
}

Use scaled_by_weight(Graph& graph, const Use& x, const Use& scale, const UseCounts& uses) {
  if (!is_wide(*x.node) || uses[x.node] > 1 || !is_tame(graph, scale)) return {};
  if (x.node->kind == Kind::kContract) return scaled_contraction(graph, x, scale, uses);
  if (!x.node->is(Kind::kPrim, "conv_general_dilated")) return {};
  return scaled_convolution(graph, x, scale, uses);
}

// --- chains

// Parameters that one scale and one shift can replace. Literals stay as they are written.
bool is_shorter(const Affine& a) {
  const bool has_axes =
      (a.scale && !a.scale.labels.empty()) || (a.shift && !a.shift.labels.empty());
  return has_axes && a.steps > (a.scale ? 1 : 0) + (a.shift ? 1 : 0);
}

Use after(Graph& graph, const Use& root, const UseCounts& uses) {
  const Affine a = affine_of(graph, root, uses);
  if (a.steps == 0) return {};
  Use y = a.scale ? scaled_by_weight(graph, a.x, a.scale, uses) : Use{};
  if (!y) {
    if (!is_shorter(a) || (a.scale && !is_tame(graph, a.scale))) return {};
    if (a.scale && a.shift && !is_moderate(graph, a.shift)) return {};
    y = a.scale ? a.x * a.scale : a.x;
  }
  return a.shift ? y + a.shift : y;
}

// sum_k (s_k x_k + t_k) w_k = sum_k x_k (s_k w_k) + sum_k t_k w_k
Use before(Graph& graph, const Use& root, const UseCounts& uses) {
  if (!is_wide(*root.node)) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    const Use weight = graph.child(root, i), operand = graph.child(root, 1 - i);
    if (uses[operand.node] > 1) continue;
    if (!is_own_weight(graph, weight, operand.node->dtype, uses)) continue;
    const Affine a = affine_of(graph, operand, uses);
    const Labels over = contracted(operand, root);
    const auto fits = [&](const Use& part) {
      return !part || axis::without(part.flat(), over).empty();
    };
    if (a.steps == 0 || !fits(a.scale) || !fits(a.shift)) continue;
    if ((a.scale && !is_tame(graph, a.scale)) || (a.shift && !is_moderate(graph, a.shift)))
      continue;
    if (!(axis::within(over, a.x.flat()) == over)) continue;
    const DType dtype = root.node->dtype;
    const Use scaled = a.scale ? weight * a.scale : weight;
    Use product = graph.contract(a.x, scaled, over, dtype);
    if (!a.shift) return product;
    return product + graph.contract(a.shift, weight, over, dtype);
  }
  return {};
}

// --- in front of a convolution

// Every element of the result sees the whole kernel: a shift of x is one of the result.
bool is_unpadded(const front::ConvParams& conv) {
  return std::ranges::all_of(conv.padding, [](const front::Padding& dim) {
    return dim.low.is_zero() && dim.high.is_zero() && dim.interior == 0;
  });
}

// Which axes of a convolution's values are features; nullopt when one of them has a unit dim.
struct FeatureAxes {
  std::size_t x, kernel_in, kernel_out, result;
};
std::optional<FeatureAxes> feature_axes(const axis::PrimInfo& conv,
                                        const front::ConvParams& params) {
  const auto x = axis_of_dim(conv.in[0], params.lhs[1]),
             kernel_in = axis_of_dim(conv.in[1], params.rhs[1]),
             kernel_out = axis_of_dim(conv.in[1], params.rhs[0]),
             result = axis_of_dim(conv.out[0], params.out[1]);
  if (!x || !kernel_in || !kernel_out || !result) return std::nullopt;
  return FeatureAxes{*x, *kernel_in, *kernel_out, *result};
}

// conv(s x + t, w) = conv(x, s w) + sum over all but the result's features of t w
Use before_convolution(Graph& graph, const Use& root, const UseCounts& uses) {
  const axis::PrimInfo& conv = *root.node->prim;
  const Use operand = graph.child(root, 0);
  Use kernel = graph.self(root.node->edges[1].node);
  if (!is_wide(*root.node) || conv.in[0].dtype != conv.out[0].dtype || uses[operand.node] > 1 ||
      !is_own_weight(graph, kernel, operand.node->dtype, uses)) {
    return {};
  }
  const Affine a = affine_of(graph, operand, uses);
  if (a.steps == 0) return {};
  const auto params = front::ConvParams::read(conv.eqn);
  const auto axes = feature_axes(conv, params);
  const bool is_one_group = params.feature_groups.is_one() && params.batch_groups == 1;
  if (!axes || !is_one_group) return {};
  const Labels features = operand.labels[axes->x];
  const auto fits = [&](const Use& part) {
    return !part || axis::without(part.flat(), features).empty();
  };
  if (!fits(a.scale) || !fits(a.shift)) return {};
  if (a.scale && !is_tame(graph, a.scale)) return {};
  if (a.shift && (!is_unpadded(params) || !is_moderate(graph, a.shift))) return {};
  if (!axis::without(operand.flat(), a.x.flat()).empty()) return {};
  kernel.labels[axes->kernel_in] = features;
  const Use scaled = a.scale ? kernel * a.scale : kernel;
  Use result = graph.prim(root.node->prim, {graph.relayout(a.x, operand.labels),
                                            graph.relayout(scaled, kernel.labels)})[0];
  result.labels = root.labels;
  if (!a.shift) return result;
  const Labels summed = axis::without(kernel.flat(), kernel.labels[axes->kernel_out]);
  Use bias = reduce_sum(kernel * a.shift, summed);
  bias.labels = {root.labels[axes->result]};
  return result + bias;
}

// --- what is added to a convolution

// conv + bias as one primitive with three operands; empty when the operands are something else.
Use biased(Graph& graph, const Use& conv, const Use& bias, const UseCounts& uses) {
  if (!conv.node->is(Kind::kPrim, "conv_general_dilated") || conv.node->edges.size() != 2 ||
      uses[conv.node] > 1 || bias.labels.empty() || !is_known(*bias.node)) {
    return {};
  }
  const auto params = front::ConvParams::read(conv.node->prim->eqn);
  const auto axis = axis_of_dim(conv.node->prim->out[0], params.out[1]);
  if (!axis || !axis::without(bias.flat(), conv.labels[*axis]).empty()) return {};
  const std::vector<Use> operands = graph.children(conv);
  if (std::ranges::all_of(operands, [](const Use& use) { return is_known(*use.node); })) return {};
  auto info = std::make_shared<axis::PrimInfo>(*conv.node->prim);
  const Labels& features = conv.labels[*axis];
  info->in.push_back({bias.node->dtype, {graph.size_of(features)}});
  graph.set_location(conv.node->location);
  const Use whole = graph.relayout(bias, {features});
  return {graph.prim(info, {operands[0], operands[1], whole})[0].node, conv.labels};
}

}  // namespace

Use fold_affine(Graph& graph, const Use& use, const UseCounts& uses) {
  if (use.node->kind == Kind::kContract) return before(graph, use, uses);
  if (use.node->is(Kind::kPrim, "conv_general_dilated")) {
    return before_convolution(graph, use, uses);
  }
  return after(graph, use, uses);
}

Use conv_bias(Graph& graph, const Use& use, const UseCounts& uses) {
  if (!use.node->is(Kind::kPointwise, "add") || !is_wide(*use.node)) return {};
  const Use lhs = graph.child(use, 0), rhs = graph.child(use, 1);
  const Use found = biased(graph, lhs, rhs, uses);
  return found ? found : biased(graph, rhs, lhs, uses);
}

}  // namespace jaxport::lower
