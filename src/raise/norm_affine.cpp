// SPDX-License-Identifier: Apache-2.0
// norm(x) * w and norm(x) + b become operands of the norm when w and b vary along the normalised
// axes only, or, of a group or instance norm, when they are parameters with channels outside of
// these axes. Constant numbers are repeated: the op has a scale anyhow.
#include "axis/expr.h"
#include "raise/rules.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Labels;
using axis::Use;

// The norm with one more operand, and the attribute that says so; or with its scale multiplied.
Use with_operand(Graph& graph, const Use& norm, const Use& operand, std::string_view name) {
  std::vector<Use> operands = graph.children(norm);
  if (flag(*norm.node, name)) {
    operands[1] = operand * operands[1];
  } else {
    operands.push_back(operand);
  }
  front::Attrs attrs = norm.node->attrs;
  for (auto& [key, attr] : attrs) {
    if (key == name) attr = front::Attr{true};
  }
  const Labels out = operands.front().flat();
  return graph.macro("norm", std::move(operands), out, norm.node->dtype,
                     {{"a", graph.role(norm, "a")}}, std::move(attrs));
}

bool takes_scale(const axis::Node& norm) {
  const bool has_number = flag(norm, "scale") && norm.edges[1].axes.empty();
  return (!flag(norm, "scale") || has_number) && !flag(norm, "bias");
}

// No target has an rms norm with a bias.
bool takes_bias(const axis::Node& norm) { return flag(norm, "center") && !flag(norm, "bias"); }

struct Absorption {
  std::string_view rule, attr;
  bool (*allowed)(const axis::Node& norm);
};
constexpr Absorption kScale{"norm_scale", "scale", takes_scale};
constexpr Absorption kBias{"norm_bias", "bias", takes_bias};

// A scale or bias of channels: one number for each, and no axis that might be a batch.
bool is_channel_parameter(const Graph& graph, const Use& operand) {
  const Kind kind = operand.node->kind;
  return (kind == Kind::kConstant || kind == Kind::kInput) && operand.labels.size() == 1 &&
         graph.size_of(operand.flat()).is_static();
}

// What the norm has already varies in the same way.
bool fits_operands(Graph& graph, const Use& norm, const Labels& along, bool is_inside) {
  for (std::size_t i = 1; i < norm.node->edges.size(); ++i) {
    if (is_subset(graph.child(norm, i).flat(), along) != is_inside) return false;
  }
  return true;
}

Use absorb(const Matcher& m, const Use& root, const Absorption& what) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Use norm = m.graph.child(root, i);
    if (!norm.node->is(Kind::kMacro, "norm") || !what.allowed(*norm.node)) continue;
    const Use operand = m.graph.child(root, 1 - i);
    const Labels labels = operand.flat();
    if (labels.empty() && !m.graph.is_constant(operand)) continue;
    const Labels along = m.graph.role(norm, "a");
    const bool is_inside = is_subset(labels, along);
    const bool has_channels = flag(*norm.node, "center") && is_channel_parameter(m.graph, operand);
    if ((!is_inside && !has_channels) || !fits_operands(m.graph, norm, along, is_inside)) {
      return m.miss(what.rule, root, "the operand varies along axes that are not normalised");
    }
    if (!is_subset(labels, norm.flat())) {
      return m.miss(what.rule, root, "the operand varies along axes that the value lacks");
    }
    // A norm that was made at this very root has no count yet.
    if (m.uses[norm.node] > 1) {
      return m.miss(what.rule, root, "the normalised value has other uses");
    }
    return with_operand(m.graph, norm, operand, what.attr);
  }
  return {};
}

Use match_scale(const Matcher& m, const Use& root) { return absorb(m, root, kScale); }
Use match_bias(const Matcher& m, const Use& root) { return absorb(m, root, kBias); }

constexpr std::string_view kScaleRoots[] = {"mul"};
constexpr std::string_view kScaleNearMisses[] = {
    // The scale varies along the batch axis.
    R"(func @scale_of_other_axis(%x: f32[4,8], %w: f32[4,1]) -> (%y) {
  %n: f32[] = constant 8.0
  %eps: f32[] = constant 1e-05
  %sq: f32[4,8] = square %x
  %ssq: f32[4] = reduce_sum %sq {axes = (1)}
  %msq: f32[4] = div %ssq %n
  %safe: f32[4] = add %msq %eps
  %inv: f32[4] = rsqrt %safe
  %col: f32[4,1] = reshape %inv {new_sizes = (4, 1)}
  %nrm: f32[4,8] = mul %x %col
  %y: f32[4,8] = mul %nrm %w
  return %y
})",
    R"(func @norm_used_twice(%x: f32[4,8], %w: f32[1,8]) -> (%nrm, %y) {
  %n: f32[] = constant 8.0
  %eps: f32[] = constant 1e-05
  %sq: f32[4,8] = square %x
  %ssq: f32[4] = reduce_sum %sq {axes = (1)}
  %msq: f32[4] = div %ssq %n
  %safe: f32[4] = add %msq %eps
  %inv: f32[4] = rsqrt %safe
  %col: f32[4,1] = reshape %inv {new_sizes = (4, 1)}
  %nrm: f32[4,8] = mul %x %col
  %y: f32[4,8] = mul %nrm %w
  return %nrm %y
})"};
// flax.nnx.RMSNorm
const Rule kNormScale{
    .name = "norm_scale",
    .roots = kScaleRoots,
    .match = match_scale,
    .sample = R"(func @rms_norm_with_scale(%x: f32[B,8], %w: f32[8]) -> (%y) {
  %n: f32[] = constant 8.0
  %zero: f32[] = constant 0.0
  %eps: f32[] = constant 1e-06
  %sq: f32[B,8] = square %x
  %ssq: f32[B] = reduce_sum %sq {axes = (1)}
  %msq: f32[B] = div %ssq %n
  %msq1: f32[B,1] = reshape %msq {new_sizes = (B, 1)}
  %cen: f32[B,8] = sub %x %zero
  %safe: f32[B,1] = add %msq1 %eps
  %inv: f32[B,1] = rsqrt %safe
  %row: f32[1,8] = reshape %w {new_sizes = (1, 8)}
  %mul: f32[B,8] = mul %inv %row
  %y: f32[B,8] = mul %cen %mul
  return %y
})",
    .near_misses = kScaleNearMisses,
};

constexpr std::string_view kBiasRoots[] = {"add"};
constexpr std::string_view kBiasNearMisses[] = {
    // A residual.
    R"(func @bias_of_all_axes(%x: f32[4,8], %b: f32[4,8]) -> (%y) {
  %n: f32[] = constant 8.0
  %eps: f32[] = constant 1e-05
  %sum: f32[4] = reduce_sum %x {axes = (1)}
  %mean: f32[4] = div %sum %n
  %mean1: f32[4,1] = reshape %mean {new_sizes = (4, 1)}
  %cen: f32[4,8] = sub %x %mean1
  %sq: f32[4,8] = square %cen
  %ssq: f32[4] = reduce_sum %sq {axes = (1)}
  %var: f32[4] = div %ssq %n
  %safe: f32[4] = add %var %eps
  %inv: f32[4] = rsqrt %safe
  %col: f32[4,1] = reshape %inv {new_sizes = (4, 1)}
  %nrm: f32[4,8] = mul %cen %col
  %y: f32[4,8] = add %nrm %b
  return %y
})"};
// The spelling of keras: x * i * w + (b - mean * i * w)
const Rule kNormBias{
    .name = "norm_bias",
    .roots = kBiasRoots,
    .match = match_bias,
    .sample = R"(func @keras_layer_norm(%x: f32[B,8], %w: f32[8], %b: f32[8]) -> (%y) {
  %n: f32[] = constant 8.0
  %eps: f32[] = constant 0.001
  %sum: f32[B] = reduce_sum %x {axes = (1)}
  %col: f32[B,1] = broadcast_in_dim %sum {shape = (B, 1), broadcast_dimensions = (0)}
  %mean: f32[B,1] = div %col %n
  %cen: f32[B,8] = sub %x %mean
  %sq: f32[B,8] = square %cen
  %ssq: f32[B] = reduce_sum %sq {axes = (1)}
  %ssc: f32[B,1] = broadcast_in_dim %ssq {shape = (B, 1), broadcast_dimensions = (0)}
  %var: f32[B,1] = div %ssc %n
  %safe: f32[B,1] = add %var %eps
  %inv: f32[B,1] = rsqrt %safe
  %row: f32[1,8] = broadcast_in_dim %w {shape = (1, 8), broadcast_dimensions = (1)}
  %i: f32[B,8] = mul %inv %row
  %xi: f32[B,8] = mul %x %i
  %mi: f32[B,8] = mul %mean %i
  %bias: f32[1,8] = broadcast_in_dim %b {shape = (1, 8), broadcast_dimensions = (1)}
  %off: f32[B,8] = sub %bias %mi
  %y: f32[B,8] = add %xi %off
  return %y
})",
    .near_misses = kBiasNearMisses,
};

constexpr const Rule* kRules[] = {&kNormScale, &kNormBias};

}  // namespace

Rules norm_affine_rules() { return kRules; }

}  // namespace jaxport::raise
