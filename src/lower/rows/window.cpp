// SPDX-License-Identifier: Apache-2.0
// Reductions of windows: a pooling op where there is one, else strided slices combined one dim at a
// time.
#include "lower/rows/window.h"

#include <algorithm>
#include <numeric>

#include "front/combiner.h"

namespace jaxport::lower {
namespace {

bool is_windowed(const Window& window, std::size_t i) {
  return window.size[i] != 1 || window.stride[i] != 1 || window.padding[i].low != 0 ||
         window.padding[i].high != 0;
}

// Dims outside the window first: pooling takes [N, C, spatial…].
Order window_order(const front::Eqn& eqn, std::span<const front::Type>,
                   std::span<const front::Type>) {
  const auto window = front::WindowParams::read(eqn);
  Ints outside, inside;
  for (std::int64_t i = 0; i < std::ssize(window.size); ++i) {
    (window.size[i] == 1 && window.stride[i] == 1 ? outside : inside).push_back(i);
  }
  outside.insert(outside.end(), inside.begin(), inside.end());
  return {{outside}, {outside}};
}

Window permuted(const Window& window, const Ints& perm) {
  Window result;
  result.is_same = window.is_same;
  for (std::int64_t dim : perm) {
    const auto i = static_cast<std::size_t>(dim);
    result.size.push_back(window.size[i]);
    result.stride.push_back(window.stride[i]);
    result.dilation.push_back(window.dilation[i]);
    result.padding.push_back(window.padding[i]);
  }
  return result;
}

// From the first to the last of `count` windows. What follows the last one does no harm where the
// count is symbolic, and may be 0: an end below 0 would be counted from the other end.
Dim extent(const Window& window, const Dim& count, std::size_t i) {
  const bool is_known = count.is_static() && count.value() > 0;
  return is_known ? (count - 1) * window.stride[i] + 1 : count * window.stride[i];
}

// Combines `size` shifted slices along one dim.
Value slide(Ctx& c, Value x, const Window& window, std::size_t i, std::string_view combine) {
  const Dim count = window_count(window, x.shape(), i);
  Dims shape = x.shape();
  shape[i] = count;
  const Value axis = c.ints({static_cast<std::int64_t>(i)}), step = c.ints({window.stride[i]});
  Value result;
  for (std::int64_t k = 0; k < window.size[i]; ++k) {
    const Dim start = k * window.dilation[i], end = start + extent(window, count, i);
    const Value part =
        c.op.call_with_shape("Slice", {x, c.dim(start), c.dim(end), axis, step}, {}, shape);
    result = result ? c.op.call(combine, {result, part}) : part;
  }
  return result;
}

Value slide_all(Ctx& c, Value x, const Window& window, std::string_view combine, double neutral) {
  x = padded(c, x, like(x, neutral), window.padding);
  for (std::size_t i = 0; i < window.size.size(); ++i) {
    if (window.size[i] != 1 || window.stride[i] != 1) x = slide(c, x, window, i, combine);
  }
  return x;
}

// Attributes of a pooling op over the dims inside the window; nullopt when the op cannot say it.
std::optional<onnx::Args> pool_args(const Window& window, std::size_t outside,
                                    bool takes_dilation) {
  Ints kernel, strides, dilations, low, high;
  for (std::size_t i = outside; i < window.size.size(); ++i) {
    const PadDim& pad = window.padding[i];
    const std::int64_t reach = (window.size[i] - 1) * window.dilation[i] + 1;
    if (pad.interior != 0 || pad.low < 0 || pad.high < 0 || pad.low >= reach || pad.high >= reach)
      return std::nullopt;
    kernel.push_back(window.size[i]);
    strides.push_back(window.stride[i]);
    dilations.push_back(window.dilation[i]);
    low.push_back(pad.low);
    high.push_back(pad.high);
  }
  const bool dilated = std::ranges::any_of(dilations, [](std::int64_t d) { return d != 1; });
  if (kernel.empty() || kernel.size() > 3 || (dilated && !takes_dilation)) return std::nullopt;
  low.insert(low.end(), high.begin(), high.end());
  onnx::Args args{{"kernel_shape", kernel}, {"strides", strides}};
  if (window.is_same) {
    args.emplace_back("auto_pad", "SAME_UPPER");
  } else if (std::ranges::all_of(low, [](std::int64_t pad) { return pad == 0; })) {
    // ONNX Runtime fuses a Pad before a MaxPool that has explicit pads, as if it padded with -inf.
    args.emplace_back("auto_pad", "VALID");
  } else {
    args.emplace_back("pads", low);
  }
  if (dilated) args.emplace_back("dilations", dilations);
  return args;
}

// Runs `pool` on x with its leading dims folded to [N, C]; unit dims among them go first.
template <class Pool>
Value pooled(Ctx& c, Value x, std::size_t outside, const Dims& result, Pool pool) {
  if (outside == 2) return pool(x);
  if (outside < 2) {
    const Value axes = c.ints(outside == 0 ? Ints{0, 1} : Ints{0});
    return c.op.Squeeze(pool(c.op.Unsqueeze(x, axes)), axes);
  }
  const auto inside = x.shape().begin() + static_cast<std::ptrdiff_t>(outside);
  Dims folded;
  std::copy_if(x.shape().begin(), inside, std::back_inserter(folded),
               [](const Dim& size) { return !size.is_one(); });
  folded.insert(folded.begin(), folded.size() < 2 ? 2 - folded.size() : 0, Dim(1));
  for (; folded.size() > 2; folded.pop_back()) folded[1] = folded[1] * folded.back();
  folded.insert(folded.end(), inside, x.shape().end());
  return c.reshape(pool(c.reshape(x, folded)), result);
}

// Padding at the high end that no window reaches is not there.
void trim_padding(Window& window, const Dims& operand) {
  for (std::size_t i = 0; i < operand.size(); ++i) {
    PadDim& pad = window.padding[i];
    if (!operand[i].is_static() || operand[i] == Dim(0) || pad.interior != 0 || pad.high <= 0) {
      continue;
    }
    const std::int64_t size = operand[i].value() + pad.low;
    const std::int64_t reach = (window.size[i] - 1) * window.dilation[i] + 1;
    const std::int64_t last = (size + pad.high - reach) / window.stride[i] * window.stride[i];
    pad.high = std::max<std::int64_t>(0, last + reach - size);
  }
}

// What a pooling op sees: the dims outside the window first.
struct WindowPlan {
  Window window;
  std::size_t outside = 0;  // leading dims that the window does not touch
  Dims result;
};

WindowPlan plan_of(const front::Eqn& eqn, const Dims& operand, const Dims& result) {
  const Ints perm = window_order(eqn, {}, {}).in[0];
  Window window = window_of(eqn);
  trim_padding(window, operand);
  WindowPlan plan{permuted(window, perm), 0, {}};
  while (plan.outside < perm.size() && !is_windowed(plan.window, plan.outside)) ++plan.outside;
  for (std::int64_t dim : perm) plan.result.push_back(result[dim]);
  return plan;
}
WindowPlan plan_of(Ctx& c) { return plan_of(c.eqn(), c.in_type(0).shape, c.out_type().shape); }

Results reduce_window_max(Ctx& c) {
  auto [x] = c.in<1>();
  const WindowPlan plan = plan_of(c);
  const auto args = pool_args(plan.window, plan.outside, true);
  if (args && is_float(x.dtype())) {
    return pooled(c, x, plan.outside, plan.result, [&](Value v) { return c.op.MaxPool(v, *args); });
  }
  return slide_all(c, x, plan.window, "Max", -kInfinity);
}

Results reduce_window_min(Ctx& c) {
  auto [x] = c.in<1>();
  const WindowPlan plan = plan_of(c);
  const auto args = pool_args(plan.window, plan.outside, true);
  if (args && is_float(x.dtype())) {
    auto pool = [&](Value v) { return -c.op.MaxPool(-v, *args); };
    return pooled(c, x, plan.outside, plan.result, pool);
  }
  return slide_all(c, x, plan.window, "Min", kInfinity);
}

std::optional<onnx::Args> average_args(const WindowPlan& plan, int opset, bool counts_padding) {
  auto args = pool_args(plan.window, plan.outside, opset >= 19);
  if (args) args->emplace_back("count_include_pad", counts_padding ? 1 : 0);
  return args;
}

// AveragePool counts padding, so the sum is the average times the window's volume.
Value window_sum(Ctx& c, Value x) {
  const WindowPlan plan = plan_of(c);
  const auto args = average_args(plan, c.op.opset(), true);
  if (!args || x.dtype() != DType::kF32) return slide_all(c, x, plan.window, "Add", 0);
  auto pool = [&](Value v) { return c.op.AveragePool(v, *args) * volume(plan.window); };
  return pooled(c, x, plan.outside, plan.result, pool);
}

// Narrow floats are summed in f32 and rounded once.
Results reduce_window_sum(Ctx& c) {
  auto [x] = c.in<1>();
  const bool is_narrow = is_float(x.dtype()) && bit_width(x.dtype()) < 32;
  return cast(window_sum(c, is_narrow ? cast(x, DType::kF32) : x), x.dtype());
}

// A sum divided by the number of its elements, see window_mean().
Results reduce_window_mean(Ctx& c) {
  auto [x] = c.in<1>();
  const WindowPlan plan = plan_of(c);
  const auto args = average_args(plan, c.op.opset(), c.param<bool>("counts_padding"));
  const Value wide = cast(x, DType::kF32);
  auto pool = [&](Value v) { return c.op.AveragePool(v, *args); };
  return cast(pooled(c, wide, plan.outside, plan.result, pool), x.dtype());
}

// What a combining primitive is in ONNX.
struct CombineRow {
  std::string_view primitive, of_numbers, of_integers, of_truths;
};
constexpr CombineRow kCombineRows[] = {
    {"add", "Add", "Add", "Or"},      {"and", "", "BitwiseAnd", "And"},
    {"max", "Max", "Max", "Or"},      {"min", "Min", "Min", "And"},
    {"mul", "Mul", "Mul", "And"},     {"or", "", "BitwiseOr", "Or"},
    {"xor", "", "BitwiseXor", "Xor"},
};

std::string_view combining_op(std::string_view primitive, DType dtype) {
  const auto* row = std::ranges::find(kCombineRows, primitive, &CombineRow::primitive);
  if (dtype == DType::kBool) return row->of_truths;
  return is_integer(dtype) ? row->of_integers : row->of_numbers;
}

// A function of the user's. The initial value counts once in each window, padding not at all.
Results reduce_window(Ctx& c) {
  const auto combiners = front::combiners(*front::get_region(c.eqn(), "jaxpr"));
  if (combiners.empty()) {
    c.unsupported("the function is not one of add, mul, max, min, and, or, xor");
  }
  const Window window = window_of(c.eqn());
  Values results;
  for (std::size_t i = 0; i < combiners.size(); ++i) {
    const Value x = c.in(i), init = c.in(combiners.size() + i);
    const std::string_view op = combining_op(combiners[i].primitive, x.dtype());
    const Value slid = slide_all(c, x, window, op, combiners[i].neutral);
    results.push_back(c.op.call(op, {init, slid}));
  }
  return results;
}

constexpr Row kWindowRows[] = {{"reduce_window", reduce_window},
                               {"reduce_window_max", reduce_window_max, 0, window_order},
                               {"reduce_window_mean", reduce_window_mean, 0, window_order},
                               {"reduce_window_min", reduce_window_min, 0, window_order},
                               {"reduce_window_sum", reduce_window_sum, 0, window_order}};
static_assert(std::ranges::is_sorted(kWindowRows, {}, &Row::primitive));

}  // namespace

Window window_of(const front::Eqn& eqn) {
  auto [size, stride, dilation, padding] = front::WindowParams::read(eqn);
  // Symbolic padding of a window that got here is "SAME", see axis/translate/window.cpp.
  const bool is_same = !is_static(padding);
  return {size, stride, dilation, is_same ? PadConfig(size.size()) : static_config(padding),
          is_same};
}

std::int64_t volume(const Window& window) {
  std::int64_t volume = 1;
  for (std::int64_t size : window.size) volume *= size;
  return volume;
}

bool can_average(const front::Eqn& eqn, const front::Type& operand, int opset) {
  const bool is_wide = operand.dtype == DType::kF64;
  return is_float(operand.dtype) && !is_wide &&
         average_args(plan_of(eqn, operand.shape, operand.shape), opset, true).has_value();
}

Dim window_count(const Window& window, const Dims& padded, std::size_t i) {
  const std::int64_t reach = (window.size[i] - 1) * window.dilation[i];
  return max(floordiv(padded[i] - reach - 1, window.stride[i]) + 1, Dim(0));
}

Values window_elements(Ctx& c, Value padded, const Window& window) {
  const std::size_t rank = window.size.size();
  Dims counts;
  for (std::size_t i = 0; i < rank; ++i) counts.push_back(window_count(window, padded.shape(), i));
  if (rank == 0) return {padded};
  Ints axes(rank), at(rank, 0);
  std::iota(axes.begin(), axes.end(), 0);
  Values elements;
  for (std::size_t changed = rank; changed > 0;) {
    Dims starts, ends;
    for (std::size_t i = 0; i < rank; ++i) {
      starts.emplace_back(at[i] * window.dilation[i]);
      ends.push_back(starts[i] + extent(window, counts[i], i));
    }
    const Values slice{padded, c.shape(starts), c.shape(ends), c.ints(axes), c.ints(window.stride)};
    elements.push_back(c.op.call_with_shape("Slice", slice, {}, counts));
    changed = rank;  // the next element: the last dim runs fastest
    while (changed > 0 && ++at[changed - 1] == window.size[changed - 1]) at[--changed] = 0;
  }
  return elements;
}

std::span<const Row> window_rows() { return kWindowRows; }

}  // namespace jaxport::lower
