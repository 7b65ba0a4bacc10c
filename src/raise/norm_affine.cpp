// SPDX-License-Identifier: Apache-2.0
// norm(x) * w and norm(x) + b become operands of the norm when w and b vary along the normalised
// axes only, or, of a group or instance norm, when they are parameters with channels outside of
// these axes. Constant numbers are repeated: the op has a scale anyhow.
#include "axis/expr.h"
#include "raise/ops.h"
#include "raise/rules.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Labels;
using axis::Use;

bool takes_scale(const NormOp& norm) {
  const bool has_number = norm.scale && norm.scale.labels.empty();
  return (!norm.scale || has_number) && !norm.bias;
}
Use with_scale(NormOp norm, const Use& scale) {
  norm.scale = norm.scale ? scale * norm.scale : scale;
  return make(norm, norm.x.flat());
}

// No target has an rms norm with a bias.
bool takes_bias(const NormOp& norm) { return norm.center && !norm.bias; }
Use with_bias(NormOp norm, const Use& bias) {
  norm.bias = bias;
  return make(norm, norm.x.flat());
}

struct Absorption {
  std::string_view rule;
  bool (*allowed)(const NormOp& norm);
  Use (*absorbed)(NormOp norm, const Use& operand);
};
constexpr Absorption kScale{"norm_scale", takes_scale, with_scale};
constexpr Absorption kBias{"norm_bias", takes_bias, with_bias};

// A scale or bias of channels: one number for each, and no axis that might be a batch.
bool is_channel_parameter(const Graph& graph, const Use& operand) {
  const Kind kind = operand.node->kind;
  return (kind == Kind::kConstant || kind == Kind::kInput) && operand.labels.size() == 1 &&
         graph.size_of(operand.flat()).is_static();
}

// What the norm has already varies in the same way.
bool fits_operands(const NormOp& norm, bool is_inside) {
  const auto fits = [&](const Use& operand) {
    return !operand || is_subset(operand.flat(), norm.along) == is_inside;
  };
  return fits(norm.scale) && fits(norm.bias);
}

Use absorb(const Matcher& m, const Use& root, const Absorption& what) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Use value = m.graph.child(root, i);
    if (!is<NormOp>(*value.node)) continue;
    const auto norm = read<NormOp>(value);
    if (!what.allowed(norm)) continue;
    const Use operand = m.graph.child(root, 1 - i);
    const Labels labels = operand.flat();
    if (labels.empty() && !m.graph.is_constant(operand)) continue;
    const bool is_inside = is_subset(labels, norm.along);
    const bool has_channels = norm.center && is_channel_parameter(m.graph, operand);
    if ((!is_inside && !has_channels) || !fits_operands(norm, is_inside)) {
      return m.miss(what.rule, root, "the operand varies along axes that are not normalised");
    }
    if (!is_subset(labels, value.flat())) {
      return m.miss(what.rule, root, "the operand varies along axes that the value lacks");
    }
    // A norm that was made at this very root has no count yet.
    if (m.uses[value.node] > 1) {
      return m.miss(what.rule, root, "the normalised value has other uses");
    }
    return what.absorbed(norm, operand);
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
