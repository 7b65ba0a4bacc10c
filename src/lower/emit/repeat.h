// SPDX-License-Identifier: Apache-2.0
// Repetitions: jnp.repeat, a broadcast along the end of each dim, and jnp.tile, one along its
// front.
#pragma once

#include <optional>
#include <vector>

#include "axis/graph/graph.h"
#include "lower/layout/label_set.h"
#include "lower/layout/layout.h"
#include "lower/rows/shape_values.h"
#include "onnx/builder.h"

namespace jaxport::lower {

// How often each dim of a layout repeats every element of a value that has the labels `mine`.
// nullopt when nothing is repeated, when other labels are missing, or where Expand is faster
// (Preferences::kShortRow).
std::optional<std::vector<std::int64_t>> repeats_of(const Arrangement& to, const LabelSet& mine,
                                                    const Dims& sizes);
// Whether repeated() can repeat elements of this dtype.
bool has_repeat(const onnx::Builder& op, DType dtype);
// Every element of dim i times[i] times, by Resize.
onnx::Value repeated(onnx::Builder& op, const onnx::Value& x,
                     const std::vector<std::int64_t>& times);

// How often each dim of a layout repeats the whole dim of a value that has the labels `mine`.
// nullopt when no dim of several elements is repeated, or other labels are missing.
std::optional<Dims> tiles_of(const Arrangement& to, const LabelSet& mine, const Dims& sizes);
// Whether tiled() can repeat elements of this dtype.
bool has_tile(DType dtype);
// Dim i times[i] times, by Tile.
onnx::Value tiled(ShapeValues& shapes, const onnx::Value& x, const Dims& times);

}  // namespace jaxport::lower
