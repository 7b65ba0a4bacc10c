// SPDX-License-Identifier: Apache-2.0
// Windows with symbolic padding: "SAME" stays, because ONNX has a word for it. Other amounts go to
// a pad of their own, and the window has none.
#include <algorithm>
#include <limits>
#include <utility>

#include "axis/translate.h"
#include "axis/unpad.h"
#include "axis/view.h"
#include "front/combiner.h"

namespace jaxport::axis {
namespace {

using front::Attr;
using front::List;

struct Padding {
  Dims low, high;
  bool is_static = true;
};

Dim to_dim(const Translation& t, const Attr& attr) {
  if (const auto* dim = attr.get_if<Dim>()) return *dim;
  const auto* number = attr.get_if<std::int64_t>();
  t.require(number != nullptr, "'padding' is not a list of sizes");
  return *number;
}

Padding padding_of(const Translation& t) {
  const Attr* attr = front::find(t.eqn.attrs, "padding");
  const auto* pairs = attr ? attr->get_if<List>() : nullptr;
  t.require(pairs != nullptr, "'padding' is not a list of pairs");
  Padding padding;
  for (const Attr& item : *pairs) {
    const auto* pair = item.get_if<List>();
    t.require(pair && pair->size() == 2, "'padding' is not a list of pairs");
    padding.low.push_back(to_dim(t, (*pair)[0]));
    padding.high.push_back(to_dim(t, (*pair)[1]));
    padding.is_static =
        padding.is_static && padding.low.back().is_static() && padding.high.back().is_static();
  }
  return padding;
}

// What jax.lax makes of padding="SAME", which is ONNX's SAME_UPPER: as many windows as strides fit,
// the odd element at the high end.
bool is_same(const Padding& padding, const Dims& sizes, const std::vector<std::int64_t>& kernel,
             const std::vector<std::int64_t>& strides) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Dim count = floordiv(sizes[i] + (strides[i] - 1), strides[i]);
    const Dim total = max((count - 1) * strides[i] + kernel[i] - sizes[i], 0);
    const Dim low = floordiv(total, 2);
    if (padding.low[i] != low || padding.high[i] != total - low) return false;
  }
  return true;
}

// Absent means 1 for each of `count` dims.
std::vector<std::int64_t> dilation_of(const front::Eqn& eqn, std::string_view name,
                                      std::size_t count) {
  const Attr* attr = front::find(eqn.attrs, name);
  if (!attr || attr->is_none()) return std::vector<std::int64_t>(count, 1);
  return front::get_ints(eqn, name);
}

bool is_all_ones(const front::Eqn& eqn, std::string_view name) {
  return std::ranges::all_of(dilation_of(eqn, name, 0), [](std::int64_t n) { return n == 1; });
}

std::vector<std::size_t> all_dims(const Padding& padding) {
  std::vector<std::size_t> dims;
  for (std::size_t i = 0; i < padding.low.size(); ++i) dims.push_back(i);
  return dims;
}

// The equation without padding and dilation of its first operand, after a pad of it. dims[i]: where
// the window's i-th dim is in the operand.
Views after_pad(Translation& t, const Padding& padding, const std::vector<std::size_t>& dims,
                const std::vector<std::int64_t>& dilation, double fill) {
  front::Function function;
  front::Eqn window = t.eqn;
  for (front::ValueId& id : window.in) {
    id = function.add_value(t.function.type(id));
    function.params.push_back(id);
  }
  front::Type padded = t.in_type(0);
  List config(padded.shape.size(),
              Attr{List{{Attr{std::int64_t{0}}, Attr{std::int64_t{0}}, Attr{std::int64_t{0}}}}});
  List none, ones;
  t.require(dilation.size() == dims.size(), "the dilation does not fit the window");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    t.require(dims[i] < padded.shape.size(), "'padding' does not fit the operand");
    config[dims[i]] =
        Attr{List{{Attr{padding.low[i]}, Attr{padding.high[i]}, Attr{dilation[i] - 1}}}};
    Dim& size = padded.shape[dims[i]];
    size = (size - 1) * dilation[i] + 1 + padding.low[i] + padding.high[i];
    none.push_back(Attr{List{{Attr{std::int64_t{0}}, Attr{std::int64_t{0}}}}});
    ones.push_back(Attr{std::int64_t{1}});
  }
  const front::ValueId filler = function.add_value({padded.dtype, {}});
  function.constants.push_back({filler, jaxport::scalar(padded.dtype, fill), ""});
  const front::ValueId wide = function.add_value(padded);
  function.eqns.push_back(
      {"pad", {window.in[0], filler}, {wide}, {{"padding_config", Attr{config}}}});
  window.in[0] = wide;
  window.out = {function.add_value(t.out_type())};
  for (auto& [name, value] : window.attrs) {
    if (name == "padding") value = Attr{none};
    if (name == "base_dilation" || name == "lhs_dilation") value = Attr{ones};
  }
  function.results = window.out;
  function.eqns.push_back(std::move(window));
  return t.inliner.run(function, std::move(t.in));
}

// --- a pad before the window becomes padding of the window

// The equation on what was padded. dims[i]: where the window's i-th dim is in the operand. Pads of
// other dims stay as they are.
Views with_more_padding(Translation& t, const Unpadded& operand, const Padding& padding,
                        const std::vector<std::size_t>& dims) {
  Ints low = operand.low, high = operand.high;
  List pairs;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t before = padding.low[i].value() + std::exchange(low[dims[i]], 0),
                       after = padding.high[i].value() + std::exchange(high[dims[i]], 0);
    if (padding.low[i].value() < 0 || padding.high[i].value() < 0) return std::nullopt;
    pairs.push_back(Attr{List{{Attr{before}, Attr{after}}}});
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
  for (auto& [name, value] : window.attrs) {
    if (name == "padding") value = Attr{pairs};
  }
  function.results = window.out;
  function.eqns.push_back(std::move(window));
  std::vector<View> operands = t.in;
  operands[0] = operand.view;
  return t.inliner.run(function, std::move(operands));
}

// Whether the window cannot tell the pad from padding of its own.
using IsNeutral = bool (*)(Graph& graph, const Unpadded& operand);

bool is_zero(Graph&, const Unpadded& operand) { return operand.fill == 0; }

// Padding of a maximum with what no element is below.
bool is_below_all(Graph& graph, const Unpadded& operand) {
  const Use& x = operand.view.use;
  if (operand.fill == -std::numeric_limits<double>::infinity()) return true;
  if (!x.node->is(Kind::kPointwise, "max")) return false;
  for (std::size_t k : {0u, 1u}) {
    const auto least = graph.scalar_value(graph.child(x, k));
    if (least && operand.fill <= *least) return true;
  }
  return false;
}

Views reduce_window_over_pad(Translation& t, const Padding& padding, IsNeutral is_neutral) {
  if (!padding.is_static || !is_float(t.dtype()) || !is_all_ones(t.eqn, "window_dilation") ||
      !is_all_ones(t.eqn, "base_dilation")) {
    return std::nullopt;
  }
  const auto operand = unpadded(t);
  if (!operand || !is_neutral(t.graph, *operand)) return std::nullopt;
  if (operand->view.use.node->is(Kind::kPrim, "pad")) return std::nullopt;  // see is_padded_twice
  const Ints kernel = front::get_ints(t.eqn, "window_dimensions");
  for (std::size_t i = 0; i < kernel.size(); ++i) {  // no window sees nothing but padding
    const bool sees_some = operand->low[i] + padding.low[i].value() < kernel[i] &&
                           operand->high[i] + padding.high[i].value() < kernel[i];
    if (!sees_some) return std::nullopt;
  }
  return with_more_padding(t, *operand, padding, all_dims(padding));
}

// A pooling op does it, and no strided slices.
bool is_pool(const Translation& t, const std::vector<std::int64_t>& kernel, bool sums) {
  const auto windowed = std::ranges::count_if(kernel, [](std::int64_t n) { return n != 1; });
  return is_float(t.dtype()) && !(sums && t.dtype() == DType::kF64) && windowed <= 3 &&
         is_all_ones(t.eqn, "window_dilation") && is_all_ones(t.eqn, "base_dilation");
}

Views after_pad_of_all(Translation& t, const Padding& padding, double fill) {
  const std::vector<std::size_t> dims = all_dims(padding);
  return after_pad(t, padding, dims, dilation_of(t.eqn, "base_dilation", dims.size()), fill);
}

Views reduce_window(Translation& t, double fill) {
  t.require_operands(1);
  const Padding padding = padding_of(t);
  if (padding.is_static) return std::nullopt;
  const auto kernel = front::get_ints(t.eqn, "window_dimensions"),
             strides = front::get_ints(t.eqn, "window_strides");
  if (is_pool(t, kernel, fill == 0) && is_same(padding, t.in_type(0).shape, kernel, strides)) {
    return std::nullopt;
  }
  return after_pad_of_all(t, padding, fill);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ONNX Runtime fuses a Pad with the padding of a MaxPool behind it, whatever it pads with; not with
// that of a second Pad.
bool is_padded_twice(const Translation& t, const Padding& padding) {
  const auto is_padded = [](const Dim& amount) { return !(amount == Dim(0)); };
  return t.in[0].use.node->is(Kind::kPrim, "pad") && is_float(t.dtype()) &&
         (std::ranges::any_of(padding.low, is_padded) ||
          std::ranges::any_of(padding.high, is_padded));
}

Views reduce_window_max(Translation& t) {
  t.require_operands(1);
  const Padding padding = padding_of(t);
  if (Views pooled = reduce_window_over_pad(t, padding, is_below_all)) return pooled;
  return is_padded_twice(t, padding) ? after_pad_of_all(t, padding, -kInfinity)
                                     : reduce_window(t, -kInfinity);
}

Views reduce_window_min(Translation& t) { return reduce_window(t, kInfinity); }
Views reduce_window_sum(Translation& t) {
  Views pooled = reduce_window_over_pad(t, padding_of(t), is_zero);
  return pooled ? pooled : reduce_window(t, 0);
}

// A function of the user's: padding is what the function does not see.
Views reduce_window_with_function(Translation& t) {
  t.require_operands(2);
  const Padding padding = padding_of(t);
  if (padding.is_static) return std::nullopt;
  struct Neutral {
    std::string_view primitive;
    double value;
  };
  constexpr Neutral kNeutral[] = {
      {"add", 0}, {"and", -1}, {"max", -kInfinity}, {"min", kInfinity},
      {"mul", 1}, {"or", 0},   {"xor", 0},
  };
  const std::vector<std::string> names = front::combiners(front::get_region(t.eqn, "jaxpr"));
  t.require(names.size() == 1,
            "symbolic padding of several operands, or with a function that is "
            "not one of add, mul, max, min, and, or, xor");
  const auto* found = std::ranges::find(kNeutral, names[0], &Neutral::primitive);
  t.require(found != std::end(kNeutral), "symbolic padding with this function");
  return after_pad_of_all(t, padding, found->value);
}

// Where the spatial dims of an operand are: 'dimension_numbers' names the batch and the features
// first (lhs_spec, rhs_spec, out_spec).
std::vector<std::size_t> spatial_dims(const Translation& t, std::size_t operand) {
  const Attr* attr = front::find(t.eqn.attrs, "dimension_numbers");
  const auto* numbers = attr ? attr->get_if<front::Record>() : nullptr;
  const auto* spec = numbers && operand < numbers->fields.size()
                         ? numbers->fields[operand].second.get_if<List>()
                         : nullptr;
  t.require(spec && spec->size() == t.in_type(operand).shape.size() && spec->size() >= 2,
            "'dimension_numbers' is malformed");
  std::vector<std::size_t> dims;
  for (std::size_t i = 2; i < spec->size(); ++i) {
    const auto* dim = (*spec)[i].get_if<std::int64_t>();
    t.require(dim && *dim >= 0 && static_cast<std::size_t>(*dim) < spec->size(),
              "'dimension_numbers' is malformed");
    dims.push_back(static_cast<std::size_t>(*dim));
  }
  return dims;
}

Ints kernel_of(const Translation& t) {
  Ints kernel;
  for (std::size_t dim : spatial_dims(t, 1)) kernel.push_back(t.in_shape(1)[dim].value());
  return kernel;
}

bool is_same_conv(const Translation& t, const Padding& padding,
                  const std::vector<std::size_t>& dims) {
  if (!is_all_ones(t.eqn, "rhs_dilation")) return false;  // ONNX Runtime refuses it
  if (!is_all_ones(t.eqn, "lhs_dilation")) return false;
  Dims sizes;
  for (std::size_t dim : dims) sizes.push_back(t.in_shape()[dim]);
  return is_same(padding, sizes, kernel_of(t), front::get_ints(t.eqn, "window_strides"));
}

Views conv_over_pad(Translation& t, const Padding& padding, const std::vector<std::size_t>& dims) {
  if (!is_all_ones(t.eqn, "lhs_dilation")) return std::nullopt;
  const auto operand = unpadded(t);
  if (!operand || !is_zero(t.graph, *operand)) return std::nullopt;
  return with_more_padding(t, *operand, padding, dims);
}

bool has_no_elements(const Dims& shape) { return std::ranges::any_of(shape, &Dim::is_zero); }

Views conv_general_dilated(Translation& t) {
  t.require_operands(2);
  const Padding padding = padding_of(t);
  const std::vector<std::size_t> dims = spatial_dims(t, 0);
  t.require(dims.size() == padding.low.size(), "'padding' does not fit the operand");
  if (has_no_elements(t.in_shape(0)) || has_no_elements(t.in_shape(1))) {
    // A sum of nothing, or of padding.
    return {{{t.graph.scalar(0, t.dtype()), broadcast_dims(t.graph, t.out_shape())}}};
  }
  if (padding.is_static) return conv_over_pad(t, padding, dims);
  if (is_same_conv(t, padding, dims)) return std::nullopt;
  return after_pad(t, padding, dims, dilation_of(t.eqn, "lhs_dilation", dims.size()), 0);
}

constexpr TranslationRow kRows[] = {
    // sorted by primitive
    {"conv_general_dilated", conv_general_dilated}, {"reduce_window", reduce_window_with_function},
    {"reduce_window_max", reduce_window_max},       {"reduce_window_min", reduce_window_min},
    {"reduce_window_sum", reduce_window_sum},
};
static_assert(std::ranges::is_sorted(kRows, {}, &TranslationRow::primitive));

}  // namespace

std::span<const TranslationRow> window_translations() { return kRows; }

}  // namespace jaxport::axis
