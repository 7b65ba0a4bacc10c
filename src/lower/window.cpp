// SPDX-License-Identifier: Apache-2.0
// reduce_window_max/min/sum: a pooling op where there is one, else strided slices combined one dim
// at a time.
#include <algorithm>
#include <limits>

#include "lower/pad.h"

namespace jaxport::lower {
namespace {

struct Window {
  Ints size, stride, dilation;
  PadConfig padding;  // with the base dilation as interior
};

Window window_of(Ctx& c) {
  Window window{c.param<Ints>("window_dimensions"),
                c.param<Ints>("window_strides"),
                c.param<Ints>("window_dilation"),
                {}};
  const Ints base_dilation = c.param<Ints>("base_dilation");
  const auto& padding = *c.attr("padding").get_if<front::List>();
  for (std::size_t i = 0; i < padding.size(); ++i) {
    const auto& pair = *padding[i].get_if<front::List>();
    window.padding.push_back(
        {*pair[0].get_if<std::int64_t>(), *pair[1].get_if<std::int64_t>(), base_dilation[i] - 1});
  }
  return window;
}

bool is_windowed(const Window& window, std::size_t i) {
  return window.size[i] != 1 || window.stride[i] != 1 || window.padding[i].low != 0 ||
         window.padding[i].high != 0;
}

// Dims outside the window first: pooling takes [N, C, spatial…].
Order window_order(const front::Eqn& eqn, std::span<const front::Type>,
                   std::span<const front::Type>) {
  const Ints size = front::get_ints(eqn, "window_dimensions"),
             stride = front::get_ints(eqn, "window_strides");
  Ints outside, inside;
  for (std::size_t i = 0; i < size.size(); ++i) {
    (size[i] == 1 && stride[i] == 1 ? outside : inside).push_back(static_cast<std::int64_t>(i));
  }
  outside.insert(outside.end(), inside.begin(), inside.end());
  return {{outside}, {outside}};
}

Window permuted(const Window& window, const Ints& perm) {
  Window result;
  for (std::int64_t dim : perm) {
    const auto i = static_cast<std::size_t>(dim);
    result.size.push_back(window.size[i]);
    result.stride.push_back(window.stride[i]);
    result.dilation.push_back(window.dilation[i]);
    result.padding.push_back(window.padding[i]);
  }
  return result;
}

// Combines `size` shifted slices along one dim.
Value slide(Ctx& c, Value x, const Window& window, std::size_t i, std::string_view combine) {
  const std::int64_t reach = (window.size[i] - 1) * window.dilation[i];
  const Dim count = floordiv(x.shape()[i] - reach - 1, window.stride[i]) + 1;
  Dims shape = x.shape();
  shape[i] = count;
  const Value axis = c.ints({static_cast<std::int64_t>(i)}), step = c.ints({window.stride[i]});
  Value result;
  for (std::int64_t k = 0; k < window.size[i]; ++k) {
    const Dim start = k * window.dilation[i], end = start + (count - 1) * window.stride[i] + 1;
    const Value part =
        c.op.call_with_shape("Slice", {x, c.dim(start), c.dim(end), axis, step}, {}, shape);
    result = result ? c.op.call(combine, {result, part}) : part;
  }
  return result;
}

Value slide_all(Ctx& c, Value x, const Window& window, std::string_view combine, Value init) {
  x = padded(c, x, init, window.padding);
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
  onnx::Args args{{"kernel_shape", kernel}, {"strides", strides}, {"pads", low}};
  if (dilated) args.emplace_back("dilations", dilations);
  return args;
}

// Runs `pool` on x with its leading dims folded to [N, C].
template <class Pool>
Value pooled(Ctx& c, Value x, std::size_t outside, const Dims& result, Pool pool) {
  if (outside == 2) return pool(x);
  Dims folded{1, 1};
  for (std::size_t i = 0; i < outside; ++i) folded[1] = folded[1] * x.shape()[i];
  folded.insert(folded.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(outside),
                x.shape().end());
  return c.reshape(pool(c.reshape(x, folded)), result);
}

struct Plan {
  Window window;
  std::size_t outside = 0;  // leading dims that the window does not touch
  Dims result;
};

Plan plan_of(Ctx& c) {
  const Ints perm = window_order(c.eqn(), {}, {}).in[0];
  Plan plan{permuted(window_of(c), perm), 0, {}};
  while (plan.outside < perm.size() && !is_windowed(plan.window, plan.outside)) ++plan.outside;
  for (std::int64_t dim : perm)
    plan.result.push_back(c.out_type().shape[static_cast<std::size_t>(dim)]);
  return plan;
}

// What never wins a comparison: the smallest and the largest value of a dtype.
Tensor lowest(DType dtype) {
  if (is_float(dtype)) return scalar(dtype, -std::numeric_limits<double>::infinity());
  return int_scalar(dtype, is_signed(dtype) ? std::int64_t{-1} << (bit_width(dtype) - 1) : 0);
}
Tensor highest(DType dtype) {
  if (is_float(dtype)) return scalar(dtype, std::numeric_limits<double>::infinity());
  return int_scalar(dtype, is_signed(dtype) ? ~(std::int64_t{-1} << (bit_width(dtype) - 1)) : -1);
}

Results reduce_window_max(Ctx& c) {
  auto [x] = c.in<1>();
  const Plan plan = plan_of(c);
  const auto args = pool_args(plan.window, plan.outside, true);
  if (args && is_float(x.dtype())) {
    return pooled(c, x, plan.outside, plan.result, [&](Value v) { return c.op.MaxPool(v, *args); });
  }
  return slide_all(c, x, plan.window, "Max", c.constant(lowest(x.dtype())));
}

Results reduce_window_min(Ctx& c) {
  auto [x] = c.in<1>();
  const Plan plan = plan_of(c);
  const auto args = pool_args(plan.window, plan.outside, true);
  if (args && is_float(x.dtype())) {
    auto pool = [&](Value v) { return c.op.Neg(c.op.MaxPool(c.op.Neg(v), *args)); };
    return pooled(c, x, plan.outside, plan.result, pool);
  }
  return slide_all(c, x, plan.window, "Min", c.constant(highest(x.dtype())));
}

// AveragePool counts padding, so the sum is the average times the window's volume.
Value window_sum(Ctx& c, Value x) {
  const Plan plan = plan_of(c);
  auto args = pool_args(plan.window, plan.outside, c.op.opset() >= 19);
  if (!args || x.dtype() != DType::kF32)
    return slide_all(c, x, plan.window, "Add", c.op.scalar_like(x, 0));
  args->emplace_back("count_include_pad", 1);
  double volume = 1;
  for (std::int64_t size : plan.window.size) volume *= static_cast<double>(size);
  auto pool = [&](Value v) {
    return c.op.Mul(c.op.AveragePool(v, *args), c.op.scalar_like(v, volume));
  };
  return pooled(c, x, plan.outside, plan.result, pool);
}

// Narrow floats are summed in f32 and rounded once.
Results reduce_window_sum(Ctx& c) {
  auto [x] = c.in<1>();
  const bool is_narrow = is_float(x.dtype()) && bit_width(x.dtype()) < 32;
  return c.cast(window_sum(c, is_narrow ? c.cast(x, DType::kF32) : x), x.dtype());
}

constexpr Row kRows[] = {{"reduce_window_max", reduce_window_max, 0, window_order},
                         {"reduce_window_min", reduce_window_min, 0, window_order},
                         {"reduce_window_sum", reduce_window_sum, 0, window_order}};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> window_rows() { return kRows; }

}  // namespace jaxport::lower
