// SPDX-License-Identifier: Apache-2.0
// The labels and attributes of a resize node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "axis/graph.h"
#include "lower/label_set.h"
#include "lower/layout.h"
#include "onnx/builder.h"

namespace jaxport::lower {

struct ResizeAxis {
  axis::Label from, to;
};
std::vector<ResizeAxis> resize_axes(const axis::Node& node);
const std::string& resize_mode(const axis::Node& node);

// ONNX Runtime takes longer for the node than for its contractions.
bool is_slow_resize(const axis::Node& node);

// How often each dim of a layout repeats every element of a value that has the labels `mine`.
// nullopt when nothing is repeated, when other labels are missing, or where Expand is faster: it
// copies whole rows, but single elements slowly.
std::optional<std::vector<std::int64_t>> repeats_of(const Arrangement& to, const LabelSet& mine,
                                                    const Dims& sizes);
// Whether repeated() can repeat elements of this dtype.
bool has_repeat(const onnx::Builder& op, DType dtype);
// Every element of dim i times[i] times, by Resize.
onnx::Value repeated(onnx::Builder& op, const onnx::Value& x,
                     const std::vector<std::int64_t>& times);

}  // namespace jaxport::lower
