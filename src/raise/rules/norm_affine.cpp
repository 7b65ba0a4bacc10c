// SPDX-License-Identifier: Apache-2.0
// norm(x) * w and norm(x) + b become operands of the norm when w and b vary along the normalised
// axes only, or, of a group or instance norm, when they are parameters with channels outside of
// these axes. Constant numbers are repeated: the op has a scale anyhow.
#include "axis/graph/expr.h"
#include "raise/algebra/views.h"
#include "raise/engine/ops.h"
#include "raise/engine/rules.h"

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
  bool (*allowed)(const NormOp& norm);
  Use (*absorbed)(NormOp norm, const Use& operand);
};
constexpr Absorption kScale{takes_scale, with_scale};
constexpr Absorption kBias{takes_bias, with_bias};

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
      return m.miss(root, "the operand varies along axes that are not normalised");
    }
    if (!is_subset(labels, value.flat())) {
      return m.miss(root, "the operand varies along axes that the value lacks");
    }
    // A norm that was made at this very root has no count yet.
    if (m.uses[value.node] > 1) {
      return m.miss(root, "the normalised value has other uses");
    }
    return what.absorbed(norm, operand);
  }
  return {};
}

Use match_scale(const Matcher& m, const Use& root) { return absorb(m, root, kScale); }
Use match_bias(const Matcher& m, const Use& root) { return absorb(m, root, kBias); }

}  // namespace

Rules norm_affine_rules() {
  static const Rule kRules[] = {
      {"norm_scale", {"mul"}, match_scale},
      {"norm_bias", {"add"}, match_bias},
  };
  return kRules;
}

}  // namespace jaxport::raise
