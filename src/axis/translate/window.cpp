// SPDX-License-Identifier: Apache-2.0
// Windows with symbolic padding: "SAME" stays, because ONNX has an attribute for it. Other amounts
// become a pad in front of the window, which has no padding then.
#include <algorithm>
#include <numeric>
#include <utility>

#include "axis/graph/view.h"
#include "axis/translate/translate.h"
#include "axis/translate/unpad.h"
#include "front/combiner.h"

namespace jaxport::axis {
namespace {

using front::ConvParams;
using front::Padding;
using front::Paddings;
using front::WindowParams;

// What jax.lax makes of padding="SAME", which is ONNX's SAME_UPPER: as many windows as strides fit,
// the odd element at the high end.
bool is_same(const Paddings& padding, const Dims& sizes, const Ints& kernel, const Ints& strides) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Dim count = floordiv(sizes[i] + (strides[i] - 1), strides[i]);
    const Dim total = max((count - 1) * strides[i] + kernel[i] - sizes[i], 0);
    const Dim low = floordiv(total, 2);
    if (padding[i].low != low || padding[i].high != total - low) return false;
  }
  return true;
}

std::vector<std::size_t> all_dims(const Paddings& padding) {
  std::vector<std::size_t> dims(padding.size());
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

// The equation without padding and dilation of its first operand, after a pad of it. dims[i]: where
// the window's i-th dim is in the operand.
Views after_pad(Translation& t, const Paddings& padding, const std::vector<std::size_t>& dims,
                double fill) {
  front::Function function;
  front::Eqn window = t.eqn;
  for (front::ValueId& id : window.in) {
    id = function.add_value(t.function.type(id));
    function.params.push_back(id);
  }
  front::Type padded = t.in_type(0);
  front::PadParams pad{Paddings(padded.shape.size())};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    t.require(dims[i] < padded.shape.size(), "'padding' does not fit the operand");
    pad.config[dims[i]] = padding[i];
    Dim& size = padded.shape[dims[i]];
    size = (size - 1) * (padding[i].interior + 1) + 1 + padding[i].low + padding[i].high;
  }
  const front::ValueId filler = function.add_value({padded.dtype, {}});
  function.constants.push_back({filler, jaxport::scalar(padded.dtype, fill), ""});
  const front::ValueId wide = function.add_value(padded);
  function.eqns.push_back({"pad", {window.in[0], filler}, {wide}, pad.attrs()});
  window.in[0] = wide;
  window.out = {function.add_value(t.out_type())};
  front::set_padding(window, Paddings(dims.size()));
  function.results = window.out;
  function.eqns.push_back(std::move(window));
  return t.inliner.run(function, std::move(t.in));
}

// --- a pad before the window becomes padding of the window

// The equation on what was padded. dims[i]: where the window's i-th dim is in the operand. Pads of
// other dims stay as they are.
Views with_more_padding(Translation& t, const Unpadded& operand, Paddings padding,
                        const std::vector<std::size_t>& dims) {
  Ints low = operand.low, high = operand.high;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (padding[i].low.value() < 0 || padding[i].high.value() < 0) return std::nullopt;
    padding[i].low = padding[i].low + std::exchange(low[dims[i]], 0);
    padding[i].high = padding[i].high + std::exchange(high[dims[i]], 0);
  }
  const auto is_padded = [](std::int64_t amount) { return amount != 0; };
  if (std::ranges::any_of(low, is_padded) || std::ranges::any_of(high, is_padded)) {
    return std::nullopt;
  }
  front::Function function;
  front::Eqn window = t.eqn;
  for (std::size_t i = 0; i < window.in.size(); ++i) {
    front::Type type = t.in_type(i);
    if (i == 0) type.shape = operand.shape;
    window.in[i] = function.add_value(type);
    function.params.push_back(window.in[i]);
  }
  window.out = {function.add_value(t.out_type())};
  front::set_padding(window, padding);
  function.results = window.out;
  function.eqns.push_back(std::move(window));
  std::vector<View> operands = t.in;
  operands[0] = operand.view;
  return t.inliner.run(function, std::move(operands));
}

// Whether padding of the window itself gives the same result as the pad.
using IsNeutral = bool (*)(Graph& graph, const Unpadded& operand);

bool is_zero(Graph&, const Unpadded& operand) { return operand.fill == 0; }

// Whether the pad fills in a number that no element is below, so that a maximum ignores it.
bool is_below_all(Graph& graph, const Unpadded& operand) {
  const Use& x = operand.view.use;
  if (operand.fill == -kInfinity) return true;
  if (!x.node->is(Kind::kPointwise, "max")) return false;
  for (std::size_t k : {0u, 1u}) {
    const auto least = graph.scalar_value(graph.child(x, k));
    if (least && operand.fill <= *least) return true;
  }
  return false;
}

// The parameters, which fit the first operand.
WindowParams window_params(const Translation& t) {
  WindowParams window = WindowParams::read(t.eqn);
  t.require(window.size.size() == t.in_shape().size(), "the window has another rank");
  return window;
}

Views reduce_window_over_pad(Translation& t, const WindowParams& window, IsNeutral is_neutral) {
  if (!is_static(window.padding) || !is_float(t.dtype()) || window.is_dilated()) {
    return std::nullopt;
  }
  const auto operand = unpadded(t);
  if (!operand || !is_neutral(t.graph, *operand)) return std::nullopt;
  if (operand->view.use.node->is(Kind::kPrim, "pad")) return std::nullopt;  // see is_padded_twice
  for (std::size_t i = 0; i < window.size.size(); ++i) {  // every window covers a real element
    const bool covers_some = operand->low[i] + window.padding[i].low.value() < window.size[i] &&
                             operand->high[i] + window.padding[i].high.value() < window.size[i];
    if (!covers_some) return std::nullopt;
  }
  return with_more_padding(t, *operand, window.padding, all_dims(window.padding));
}

// Whether a pooling op computes it, rather than strided slices.
bool is_pool(const Translation& t, const WindowParams& window, bool sums) {
  const auto windowed = std::ranges::count_if(window.size, [](std::int64_t n) { return n != 1; });
  return is_float(t.dtype()) && !(sums && t.dtype() == DType::kF64) && windowed <= 3 &&
         !window.is_dilated();
}

Views after_pad_of_all(Translation& t, const Paddings& padding, double fill) {
  return after_pad(t, padding, all_dims(padding), fill);
}

Views reduce_window(Translation& t, const WindowParams& window, double fill) {
  if (is_static(window.padding)) return std::nullopt;
  if (is_pool(t, window, fill == 0) &&
      is_same(window.padding, t.in_shape(), window.size, window.stride)) {
    return std::nullopt;
  }
  return after_pad_of_all(t, window.padding, fill);
}

// The target would merge the Pad into the MaxPool, but not into a second Pad.
bool is_padded_twice(const Translation& t, const Paddings& paddings) {
  const auto is_padded = [](const Padding& dim) {
    return !dim.low.is_zero() || !dim.high.is_zero();
  };
  return t.preferences().merges_pad_into_max_pool && t.in[0].use.node->is(Kind::kPrim, "pad") &&
         is_float(t.dtype()) && std::ranges::any_of(paddings, is_padded);
}

Views reduce_window_max(Translation& t) {
  t.require_operands(1);
  const WindowParams window = window_params(t);
  if (Views pooled = reduce_window_over_pad(t, window, is_below_all)) return pooled;
  return is_padded_twice(t, window.padding) ? after_pad_of_all(t, window.padding, -kInfinity)
                                            : reduce_window(t, window, -kInfinity);
}

Views reduce_window_min(Translation& t) {
  t.require_operands(1);
  return reduce_window(t, window_params(t), kInfinity);
}
Views reduce_window_sum(Translation& t) {
  t.require_operands(1);
  const WindowParams window = window_params(t);
  Views pooled = reduce_window_over_pad(t, window, is_zero);
  return pooled ? pooled : reduce_window(t, window, 0);
}

// Pooling ops of ONNX Runtime make one window of an axis that is a little shorter than a window.
bool may_be_short(const Dims& sizes, const front::WindowParams& window) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (window.stride[i] != 1 && !sizes[i].is_static()) return true;
  }
  return false;
}

// reduce_window_sum where the function is a + b and starts from 0. Maxima and minima stay: pooling
// ops ignore NaN, and the function does not.
Views window_sum_of_function(Translation& t) {
  if (may_be_short(t.in_shape(), window_params(t))) return std::nullopt;
  const auto combiners = front::combiners(*front::get_region(t.eqn, "jaxpr"));
  if (combiners.size() != 1 || combiners[0].primitive != "add") return std::nullopt;
  if (t.graph.scalar_value(t.in[1].use) != 0) return std::nullopt;
  front::Function function;
  const front::ValueId operand = function.add_value(t.in_type(0)),
                       result = function.add_value({t.dtype(), t.out_shape()});
  front::Attrs attrs = t.eqn.attrs;
  std::erase_if(attrs,
                [](const auto& attr) { return attr.first == "jaxpr" || attr.first == "consts"; });
  function.params = {operand};
  function.eqns.push_back({"reduce_window_sum", {operand}, {result}, std::move(attrs)});
  function.results = {result};
  return t.inliner.run(function, {t.in[0]});
}

// A function of the user's: padding is what the function does not see.
Views reduce_window_with_function(Translation& t) {
  if (t.eqn.in.size() == 2) {
    if (Views sum = window_sum_of_function(t)) return sum;
  }
  t.require_operands(2);
  const Paddings padding = window_params(t).padding;
  if (is_static(padding)) return std::nullopt;
  const auto combiners = front::combiners(*front::get_region(t.eqn, "jaxpr"));
  t.require(combiners.size() == 1,
            "symbolic padding of several operands, or with a function that is "
            "not one of add, mul, max, min, and, or, xor");
  return after_pad_of_all(t, padding, combiners[0].neutral);
}

std::vector<std::size_t> spatial_dims(const Ints& order) {
  return {order.begin() + 2, order.end()};
}

Dims spatial_sizes(const Dims& shape, const Ints& order) {
  Dims sizes;
  for (std::size_t dim : spatial_dims(order)) sizes.push_back(shape[dim]);
  return sizes;
}

bool is_dilated(const Padding& dim) { return dim.interior != 0; }

bool is_same_conv(const Translation& t, const ConvParams& conv) {
  const auto is_one = [](std::int64_t step) { return step == 1; };
  const bool is_dilated_kernel = !std::ranges::all_of(conv.rhs_dilation, is_one);
  if (is_dilated_kernel && t.preferences().refuses_dilated_same) return false;
  if (std::ranges::any_of(conv.padding, is_dilated)) return false;
  Ints kernel;
  for (const Dim& size : spatial_sizes(t.in_shape(1), conv.rhs)) kernel.push_back(size.value());
  return is_same(conv.padding, spatial_sizes(t.in_shape(), conv.lhs), kernel, conv.stride);
}

Views conv_over_pad(Translation& t, const ConvParams& conv) {
  if (std::ranges::any_of(conv.padding, is_dilated)) return std::nullopt;
  const auto operand = unpadded(t);
  if (!operand || !is_zero(t.graph, *operand)) return std::nullopt;
  return with_more_padding(t, *operand, conv.padding, spatial_dims(conv.lhs));
}

bool has_no_elements(const Dims& shape) { return std::ranges::any_of(shape, &Dim::is_zero); }

Views conv_general_dilated(Translation& t) {
  t.require_operands(2);
  const ConvParams conv = ConvParams::read(t.eqn);
  t.require(t.in_shape(0).size() == conv.lhs.size() && t.in_shape(1).size() == conv.rhs.size(),
            "'dimension_numbers' do not fit the operands");
  if (has_no_elements(t.in_shape(0)) || has_no_elements(t.in_shape(1))) {
    // A sum of nothing, or of padding.
    return {{{t.graph.scalar(0, t.dtype()), broadcast_dims(t.graph, t.out_shape())}}};
  }
  if (is_static(conv.padding)) return conv_over_pad(t, conv);
  if (is_same_conv(t, conv)) return std::nullopt;
  return after_pad(t, conv.padding, spatial_dims(conv.lhs), 0);
}

constexpr TranslationRow kWindowRows[] = {
    // sorted by primitive
    {"conv_general_dilated", conv_general_dilated}, {"reduce_window", reduce_window_with_function},
    {"reduce_window_max", reduce_window_max},       {"reduce_window_min", reduce_window_min},
    {"reduce_window_sum", reduce_window_sum},
};
static_assert(std::ranges::is_sorted(kWindowRows, {}, &TranslationRow::primitive));

}  // namespace

std::span<const TranslationRow> window_translations() { return kWindowRows; }

}  // namespace jaxport::axis
