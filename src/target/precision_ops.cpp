// SPDX-License-Identifier: Apache-2.0
#include "target/precision_ops.h"

#include <algorithm>

#include "target/conduct.h"

namespace jaxport::target {
namespace {

struct Row {
  std::string_view op;
  HalfConduct conduct;
};
constexpr HalfConduct kHeavy{HalfRole::kHeavy, false, false};
constexpr HalfConduct kFull{HalfRole::kFull, false, false};
constexpr HalfConduct kFullBounded{HalfRole::kFull, false, true};
constexpr HalfConduct kStatistic{HalfRole::kFull, true, false};
constexpr HalfConduct kBoundedStatistic{HalfRole::kFull, true, true};
constexpr HalfConduct kLight{HalfRole::kLight, false, false};
constexpr HalfConduct kLightBounded{HalfRole::kLight, false, true};
constexpr HalfConduct kMoves{HalfRole::kMoves, false, false};

// Others are light. The norms with a stash_type (LayerNormalization, RMSNormalization,
// GroupNormalization) have their statistics in f32 by the specification.
constexpr Row kRows[] = {
    // sorted by op
    {"Acos", kFullBounded},
    {"Acosh", kFullBounded},
    {"AffineGrid", kFull},
    {"ArgMax", kFull},
    {"ArgMin", kFull},
    {"Asin", kFullBounded},
    {"Asinh", kFullBounded},
    {"Atan", kFullBounded},
    {"Atanh", kFullBounded},
    {"Attention", kHeavy},
    {"Ceil", kFull},
    {"Col2Im", kStatistic},
    {"ConstantOfShape", kFull},
    {"Conv", kHeavy},
    {"ConvTranspose", kHeavy},
    {"Cos", kFullBounded},
    {"Cosh", kFull},
    {"CumProd", kStatistic},
    {"CumSum", kStatistic},
    {"DFT", kStatistic},
    {"DeformConv", kHeavy},
    {"Det", kStatistic},
    {"Einsum", kHeavy},
    {"Equal", kFull},
    {"Erf", kLightBounded},
    {"Exp", kBoundedStatistic},
    {"EyeLike", kFull},
    {"Floor", kFull},
    {"GRU", kHeavy},
    {"Gemm", kHeavy},
    {"GlobalAveragePool", kFull},
    {"Greater", kFull},
    {"GreaterOrEqual", kFull},
    {"GridSample", kFull},
    {"GroupNormalization", kLightBounded},
    {"HardSigmoid", kLightBounded},
    {"InstanceNormalization", kFullBounded},
    {"LSTM", kHeavy},
    {"LayerNormalization", kLightBounded},
    {"Less", kFull},
    {"LessOrEqual", kFull},
    {"Log", kBoundedStatistic},
    {"LogSoftmax", kFull},
    {"LpNormalization", kFullBounded},
    {"MatMul", kHeavy},
    {"Mean", kFull},
    {"MeanVarianceNormalization", kFullBounded},
    {"Mod", kFull},
    {"Multinomial", kFull},
    {"Pow", kStatistic},
    {"RMSNormalization", kLightBounded},
    {"RNN", kHeavy},
    {"RandomNormal", kFull},
    {"RandomNormalLike", kFull},
    {"RandomUniform", kFull},
    {"RandomUniformLike", kFull},
    {"Range", kFull},
    {"Reciprocal", kStatistic},
    {"ReduceL1", kStatistic},
    {"ReduceL2", kStatistic},
    {"ReduceLogSum", kStatistic},
    {"ReduceLogSumExp", kStatistic},
    {"ReduceMean", kStatistic},
    {"ReduceProd", kStatistic},
    {"ReduceSum", kStatistic},
    {"ReduceSumSquare", kStatistic},
    {"RoiAlign", kFull},
    {"Round", kFull},
    {"STFT", kStatistic},
    {"Sigmoid", kLightBounded},
    {"Sin", kFullBounded},
    {"Sinh", kFull},
    {"Softmax", kFullBounded},
    {"Softplus", kFull},
    {"Softsign", kLightBounded},
    {"Sqrt", kBoundedStatistic},
    {"Sum", kLight},
    {"Tan", kFull},
    {"Tanh", kLightBounded},
    {"TopK", kFull},
};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::op));

}  // namespace

HalfConduct half_conduct(const onnx::Node& node) {
  const bool scatters = node.op == "ScatterElements" || node.op == "ScatterND";
  if (scatters) return node.attr("reduction") == nullptr ? kMoves : kFull;
  const OpConduct conduct = conduct_of(node.op);
  if (conduct.integers == Conduct::kCopies) return kMoves;
  const auto* row = std::ranges::lower_bound(kRows, node.op, {}, &Row::op);
  return row != std::end(kRows) && row->op == node.op ? row->conduct : kLight;
}

}  // namespace jaxport::target
