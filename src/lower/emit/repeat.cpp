// SPDX-License-Identifier: Apache-2.0
#include "lower/emit/repeat.h"

#include <algorithm>

namespace jaxport::lower {

using axis::Label;
using axis::Labels;
using onnx::Value;

std::optional<Ints> repeats_of(const Arrangement& to, const LabelSet& mine, const Dims& sizes) {
  Ints times;
  Dim row = 1;  // what follows the last repetition
  for (const Labels& dim : to) {
    const Labels kept = mine.keep(dim);
    Dim count = 1, length = 1;
    for (Label label : dim) {
      Dim& factor = mine.has(label) ? length : count;
      factor = factor * sizes[label];
    }
    const bool is_repeated = !count.is_one();
    const bool leads = std::equal(kept.begin(), kept.end(), dim.begin());
    if (is_repeated && (kept.empty() || !leads || !count.is_static())) return std::nullopt;
    times.push_back(is_repeated ? count.value() : 1);
    row = is_repeated ? Dim(1) : row * length;
  }
  const bool repeats = std::ranges::any_of(times, [](std::int64_t n) { return n > 1; });
  const bool is_short = row.is_static() && row.value() < Preferences::kShortRow;
  return repeats && is_short ? std::optional(times) : std::nullopt;
}

// Resize takes scales without axes from opset 13 on. Other dtypes have no kernel in ONNX Runtime,
// and would be cast there and back.
bool has_repeat(const onnx::Builder& op, DType dtype) {
  constexpr DType kTypes[] = {DType::kF32, DType::kI32, DType::kI8, DType::kU8};
  return op.opset() >= 13 && std::ranges::find(kTypes, dtype) != std::ranges::end(kTypes);
}

Value repeated(onnx::Builder& op, const Value& x, const Ints& times) {
  Dims shape = x.shape();
  MutableTensor scales = allocate(DType::kF32, {std::ssize(times)});
  for (std::size_t i = 0; i < times.size(); ++i) {
    shape[i] = shape[i] * times[i];
    scales.as<float>()[i] = static_cast<float>(times[i]);
  }
  return op.call_with_shape("Resize", {x, {}, op.constant(scales.tensor)},
                            {{"mode", "nearest"},
                             {"coordinate_transformation_mode", "asymmetric"},
                             {"nearest_mode", "floor"}},
                            shape);
}

std::optional<Dims> tiles_of(const Arrangement& to, const LabelSet& mine, const Dims& sizes) {
  Dims times;
  bool tiles = false;
  for (const Labels& dim : to) {
    const Labels kept = mine.keep(dim);
    Dim count = 1;
    for (Label label : dim) {
      if (!mine.has(label)) count = count * sizes[label];
    }
    const bool trails = std::equal(kept.rbegin(), kept.rend(), dim.rbegin());
    if (!count.is_one() && !trails) return std::nullopt;
    tiles |= !count.is_one() && !kept.empty();
    times.push_back(count);
  }
  return tiles ? std::optional(times) : std::nullopt;
}

// ONNX Runtime has kernels for all other dtypes that JAX has.
bool has_tile(DType dtype) { return dtype != DType::kF16 && dtype != DType::kBF16; }

Value tiled(ShapeValues& shapes, const Value& x, const Dims& times) {
  Dims shape = x.shape();
  for (std::size_t i = 0; i < times.size(); ++i) shape[i] = shape[i] * times[i];
  return x.builder().call_with_shape("Tile", {x, shapes.shape(times)}, {}, shape);
}

}  // namespace jaxport::lower
