// SPDX-License-Identifier: Apache-2.0
// Ops that make tensors from sizes and scalars.
#include <algorithm>
#include <cmath>

#include "onnx/infer.h"

namespace jaxport::onnx {
namespace {

void constant(Inference& n) {
  const Tensor* value = n.attr_tensor("value");
  if (value == nullptr) return;
  n.set_type(0, {value->dtype, to_dims(value->shape)});
}

void constant_of_shape(Inference& n) {
  const Tensor* value = n.attr_tensor("value");
  n.set_dtype(0, value != nullptr ? value->dtype : DType::kF32);
  if (const auto sizes = n.ints(0)) n.set(0, to_dims(*sizes));
}

// The slice [start, end) of the input's shape; both bounds are clamped to the rank.
void shape(Inference& n) {
  const Dims* in = n.shape(0);
  if (in == nullptr) return;
  const auto rank = static_cast<std::int64_t>(in->size());
  const auto position = [rank](std::int64_t bound) {
    return std::clamp<std::int64_t>(bound < 0 ? bound + rank : bound, 0, rank);
  };
  const std::int64_t start = position(n.attr("start", 0)), end = position(n.attr("end", rank));
  n.set(0, {std::max<std::int64_t>(0, end - start)});
}

void size(Inference& n) { n.set(0, {}); }

void range(Inference& n) {
  const auto start = n.number(0), limit = n.number(1), delta = n.number(2);
  if (!start || !limit || !delta) return;
  if (*delta == 0) n.fail("delta is 0");
  const double count = std::ceil((*limit - *start) / *delta);
  if (!(count < 0x1p53)) n.fail("more elements than a tensor has");
  n.set(0, {static_cast<std::int64_t>(std::max(0.0, count))});
}

void one_hot(Inference& n) {
  const Dims* indices = n.shape(0);
  const auto depth = n.number(1);
  if (indices == nullptr || !depth) return;
  const std::size_t axis = n.axis("axis", -1, indices->size() + 1);
  Dims out = *indices;
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<std::int64_t>(*depth));
  n.set(0, std::move(out));
}

void random(Inference& n) {
  if (const auto sizes = n.attr_ints("shape")) n.set(0, to_dims(*sizes));
}

void window(Inference& n) {
  if (const auto size = n.number(0)) n.set(0, {static_cast<std::int64_t>(*size)});
}

constexpr InferenceRule kInferGeneratorRules[] = {
    {"BlackmanWindow", window}, {"Constant", constant},    {"ConstantOfShape", constant_of_shape},
    {"EyeLike", same_as_input}, {"HammingWindow", window}, {"HannWindow", window},
    {"OneHot", one_hot},        {"RandomNormal", random},  {"RandomUniform", random},
    {"Range", range},           {"Shape", shape},          {"Size", size},
};
static_assert(std::ranges::is_sorted(kInferGeneratorRules, {}, &InferenceRule::op));

}  // namespace

std::span<const InferenceRule> generator_rules() { return kInferGeneratorRules; }

}  // namespace jaxport::onnx
