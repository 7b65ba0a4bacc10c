// SPDX-License-Identifier: Apache-2.0
// Ops that read or write by index.
#include <algorithm>

#include "onnx/infer.h"

namespace jaxport::onnx {
namespace {

// data[:axis] + indices + data[axis+1:]
void gather(Inference& n) {
  const Dims *data = n.shape(0), *indices = n.shape(1);
  if (data == nullptr || indices == nullptr) return;
  const auto axis = static_cast<std::ptrdiff_t>(n.axis("axis", 0, data->size()));
  Dims out(data->begin(), data->begin() + axis);
  out.insert(out.end(), indices->begin(), indices->end());
  out.insert(out.end(), data->begin() + axis + 1, data->end());
  n.set(0, std::move(out));
}

void gather_elements(Inference& n) {
  if (const Dims* indices = n.shape(1)) n.set(0, *indices);
}

// indices[:-1] + data[batch_dims + indices[-1]:]
void gather_nd(Inference& n) {
  const Dims *data = n.shape(0), *indices = n.shape(1);
  if (data == nullptr || indices == nullptr || indices->empty()) return;
  if (!indices->back().is_static()) return;
  const std::int64_t taken = n.attr("batch_dims", 0) + indices->back().value();
  if (taken < 0 || taken > static_cast<std::int64_t>(data->size())) {
    n.fail("the indices have too many parts");
  }
  Dims out(indices->begin(), indices->end() - 1);
  out.insert(out.end(), data->begin() + taken, data->end());
  n.set(0, std::move(out));
}

void top_k(Inference& n) {
  const Dims* in = n.shape(0);
  const auto k = n.number(1);
  if (in == nullptr || !k) return;
  Dims out = *in;
  out[n.axis("axis", -1, in->size())] = static_cast<std::int64_t>(*k);
  n.set(0, out);
  n.set(1, std::move(out));
}

constexpr InferenceRule kInferIndexRules[] = {
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"ScatterElements", same_as_input},
    {"ScatterND", same_as_input},
    {"TensorScatter", same_as_input},
    {"TopK", top_k},
};
static_assert(std::ranges::is_sorted(kInferIndexRules, {}, &InferenceRule::op));

}  // namespace

std::span<const InferenceRule> index_rules() { return kInferIndexRules; }

}  // namespace jaxport::onnx
