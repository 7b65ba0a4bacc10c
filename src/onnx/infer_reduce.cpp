// SPDX-License-Identifier: Apache-2.0
// Reductions, scans along an axis, and normalisations.
#include <algorithm>

#include "onnx/infer.h"

namespace jaxport::onnx {
namespace {

Dims reduced(const Inference& n, const Dims& in, const std::vector<bool>& is_reduced) {
  const bool keeps_dims = n.attr("keepdims", 1) != 0;
  Dims out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_reduced[i])
      out.push_back(in[i]);
    else if (keeps_dims)
      out.push_back(1);
  }
  return out;
}

// The axes are an attribute up to opset 17 (ReduceSum: 12), an input from then on.
void reduce(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr) return;
  const std::optional<Ints> axes = n.has(1) ? n.ints(1) : n.attr_ints("axes");
  if (n.has(1) && !axes) return;
  const bool is_listed = axes && !axes->empty();
  if (!is_listed && n.attr("noop_with_empty_axes", 0) != 0) return n.set(0, *in);
  std::vector<bool> is_reduced(in->size(), !is_listed);
  if (is_listed) {
    for (std::int64_t axis : *axes) is_reduced[n.from_front(axis, in->size())] = true;
  }
  n.set(0, reduced(n, *in, is_reduced));
}

void arg_reduce(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr) return;
  std::vector<bool> is_reduced(in->size(), false);
  is_reduced[n.axis("axis", 0, in->size())] = true;
  n.set(0, reduced(n, *in, is_reduced));
}

// Batch and channels stay; each spatial axis becomes 1.
void global_pool(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr || in->size() < 2) return;
  Dims out(in->size(), 1);
  std::copy_n(in->begin(), 2, out.begin());
  n.set(0, std::move(out));
}

// Mean and InvStdDev keep the axes before `axis`; the rest are 1.
void layer_normalization(Inference& n) {
  const auto stash = dtype_from_onnx(static_cast<int>(n.attr("stash_type", 1)));
  n.set_dtype(1, stash.value_or(DType::kF32));
  n.set_dtype(2, stash.value_or(DType::kF32));
  const Dims* in = n.shape(0);
  if (in == nullptr) return;
  n.set(0, *in);
  const std::size_t axis = n.axis("axis", -1, in->size());
  Dims moments(in->size(), 1);
  std::copy_n(in->begin(), axis, moments.begin());
  n.set(1, moments);
  n.set(2, std::move(moments));
}

// In training mode results 1 and 2 are the running mean and variance.
void batch_normalization(Inference& n) {
  same_as_input(n);
  if (const Dims* mean = n.shape(3)) n.set(1, *mean);
  if (const Dims* variance = n.shape(4)) n.set(2, *variance);
}

constexpr InferenceRule kInferReduceRules[] = {
    {"ArgMax", arg_reduce},
    {"ArgMin", arg_reduce},
    {"BatchNormalization", batch_normalization},
    {"CumProd", same_as_input},
    {"CumSum", same_as_input},
    {"GlobalAveragePool", global_pool},
    {"GlobalLpPool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"GroupNormalization", same_as_input},
    {"Hardmax", same_as_input},
    {"InstanceNormalization", same_as_input},
    {"LRN", same_as_input},
    {"LayerNormalization", layer_normalization},
    {"LogSoftmax", same_as_input},
    {"LpNormalization", same_as_input},
    {"MeanVarianceNormalization", same_as_input},
    {"RMSNormalization", same_as_input},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"Softmax", same_as_input},
};
static_assert(std::ranges::is_sorted(kInferReduceRules, {}, &InferenceRule::op));

}  // namespace

std::span<const InferenceRule> reduce_rules() { return kInferReduceRules; }

}  // namespace jaxport::onnx
