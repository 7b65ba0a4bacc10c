// SPDX-License-Identifier: Apache-2.0
// Convolution as a matrix product over the windows of the input.
#include <limits>

#include "onnx/attributes.h"
#include "onnx/expr.h"
#include "target/compose.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Node;
using onnx::Value;
using onnx::Values;

struct Window {
  std::int64_t size, stride, dilation;
};

// Every `stride`-th element along `axis`, once for each tap of the window, on a new axis at `at`.
// Ends count from the back, so that symbolic sizes need no arithmetic.
Value unfolded(Builder& op, const Value& x, std::int64_t axis, std::int64_t at, const Window& w) {
  const std::int64_t reach = (w.size - 1) * w.dilation;
  Values taps;
  for (std::int64_t k = 0; k < w.size; ++k) {
    const std::int64_t start = k * w.dilation, rest = reach - start;
    const std::int64_t end = rest == 0 ? std::numeric_limits<std::int64_t>::max() : -rest;
    const Value tap =
        op.Slice(x, op.ints({start}), op.ints({end}), op.ints({axis}), op.ints({w.stride}));
    taps.push_back(op.Unsqueeze(tap, op.ints({at})));
  }
  return taps.size() == 1 ? taps[0] : op.Concat(taps, onnx::Args{{"axis", at}});
}

Value padded(Builder& op, const Value& x, const Ints& pads) {
  const std::size_t spatial = pads.size() / 2;
  Ints all(2 * x.rank(), 0);
  for (std::size_t i = 0; i < spatial; ++i) {
    all[2 + i] = pads[i];
    all[x.rank() + 2 + i] = pads[spatial + i];
  }
  return op.Pad(x, op.ints(all));
}

// "SAME_UPPER": as many windows as the stride needs to reach the end, half of the padding before.
Value padded_to_same(Builder& op, const Value& x, const std::vector<Window>& windows) {
  Ints strides, spans;
  Dims shape = x.shape();
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    strides.push_back(w.stride);
    spans.push_back((w.size - 1) * w.dilation + 1);
    Dim& size = shape[2 + i];
    size = max(floordiv(size + w.stride - 1, w.stride) * w.stride - w.stride + spans[i], size);
  }
  const auto all = [&](std::int64_t number) { return op.ints(Ints(windows.size(), number)); };
  const Value sizes = op.Shape(x, onnx::Args{{"start", 2}}), steps = op.ints(strides);
  const Value last = (sizes - all(1)) / steps;  // the first element of the last window
  const Value total = max(last * steps + op.ints(spans) - sizes, all(0));
  const Value low = total / all(2), none = op.ints({0, 0});
  const Value pads = op.Concat(Values{none, low, none, total - low}, onnx::Args{{"axis", 0}});
  return op.call_with_shape("Pad", {x, pads}, {}, std::move(shape));
}

}  // namespace

// x[N, C, spatial…] becomes [N, group, C/group * taps, windows], the weight [group, O/group,
// C/group * taps]; their product is the result with its windows in one axis.
std::optional<Value> compose_conv(Builder& op, const Node& node) {
  const Value weight(&op, node.in[1]);
  const std::size_t spatial = weight.rank() - 2;
  const std::int64_t group = int_attribute(node, "group", 1), out = weight.shape()[0].value();
  const Ints strides = ints_attribute(node, "strides").value_or(Ints(spatial, 1)),
             dilations = ints_attribute(node, "dilations").value_or(Ints(spatial, 1));
  std::vector<Window> taps;
  for (std::size_t i = 0; i < spatial; ++i) {
    taps.push_back({weight.shape()[2 + i].value(), strides[i], dilations[i]});
  }
  Value x(&op, node.in[0]);
  x = node.attr("auto_pad")
          ? padded_to_same(op, x, taps)
          : padded(op, x, ints_attribute(node, "pads").value_or(Ints(2 * spatial, 0)));
  std::int64_t depth = weight.shape()[1].value();
  for (std::size_t i = 0; i < spatial; ++i) {
    const auto at = static_cast<std::int64_t>(2 + i);
    x = unfolded(op, x, at + static_cast<std::int64_t>(i), at, taps[i]);
    depth *= taps[i].size;
  }
  const Value columns = op.Reshape(x, op.ints({0, group, depth, -1}));
  const Value rows = op.Reshape(weight, op.ints({group, out / group, depth}));
  const Value windows = op.Shape(x, onnx::Args{{"start", static_cast<std::int64_t>(2 + spatial)}});
  const Value shape = op.Concat(Values{op.ints({0, out}), windows}, onnx::Args{{"axis", 0}});
  Value result = op.Reshape(op.MatMul(rows, columns), shape);
  if (node.in.size() < 3) return result;
  Ints bias_shape(spatial + 1, 1);
  bias_shape[0] = out;
  return result + op.Reshape(Value(&op, node.in[2]), op.ints(bias_shape));
}

}  // namespace jaxport::target
