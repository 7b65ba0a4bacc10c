// SPDX-License-Identifier: Apache-2.0
#include "front/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "jaxport/error.h"

namespace jaxport::front {
namespace {

// No count, axis, stride or dilation needs more than 31 bits; without larger ones the product of
// two never overflows.
constexpr std::int64_t kLargest = std::int64_t{1} << 31;

// A parameter or a part of it. The name is that of the whole parameter.
struct Param {
  const Eqn& eqn;
  std::string_view name;
  const Attr& attr;

  Param part(const Attr& inner) const { return {eqn, name, inner}; }

  [[noreturn]] void is_not(std::string_view expected) const {
    throw Error("E031", fmt::format("parameter '{}' of primitive '{}' is not {}", name,
                                    eqn.primitive, expected));
  }
  void require(bool fact, std::string_view expected) const {
    if (!fact) is_not(expected);
  }
  template <class T>
  const T& as(std::string_view expected) const {
    if (const T* value = attr.get_if<T>()) return *value;
    is_not(expected);
  }

  std::int64_t integer(std::string_view expected = "an integer") const {
    if (const auto* number = attr.get_if<std::int64_t>()) return *number;
    if (const auto* dim = attr.get_if<Dim>(); dim && dim->is_static()) return dim->value();
    is_not(expected);
  }
  std::size_t count() const {
    const std::int64_t number = integer("a count");
    require(number >= 0 && number <= kLargest, "a count");
    return static_cast<std::size_t>(number);
  }
  Dim size(std::string_view expected = "a size") const {
    if (const auto* number = attr.get_if<std::int64_t>()) return *number;
    return as<Dim>(expected);
  }
  const Region& region(std::string_view expected = "a nested function") const {
    const Region& function = as<Region>(expected);
    require(function != nullptr, expected);
    return function;
  }

  Ints integers(std::string_view expected = "a list of integers") const {
    Ints numbers;
    for (const Attr& item : as<List>(expected)) {
      numbers.push_back(part(item).integer(expected));
      require(numbers.back() >= -kLargest && numbers.back() <= kLargest, expected);
    }
    return numbers;
  }
  Dims sizes(std::string_view expected = "a list of sizes") const {
    Dims dims;
    for (const Attr& item : as<List>(expected)) dims.push_back(part(item).size(expected));
    return dims;
  }
  // A list of `count` parts.
  std::vector<Param> parts(std::size_t count, std::string_view expected) const {
    const List& items = as<List>(expected);
    require(items.size() == count, expected);
    std::vector<Param> found;
    for (const Attr& item : items) found.push_back(part(item));
    return found;
  }
  Param field(std::string_view field_name) const {
    const Record& record = as<Record>("a record");
    const auto found =
        std::ranges::find(record.fields, field_name, &std::pair<std::string, Attr>::first);
    require(found != record.fields.end(), fmt::format("a record with '{}'", field_name));
    return part(found->second);
  }
};

Param param(const Eqn& eqn, std::string_view name) {
  if (const Attr* found = find(eqn.attrs, name)) return {eqn, name, *found};
  throw Error("E031", fmt::format("primitive '{}' has no parameter '{}'", eqn.primitive, name));
}

// Strides, dilations or sizes of windows, one for each dim; 1 where there are none.
Ints steps(const Eqn& eqn, std::string_view name, std::size_t count, std::int64_t least = 1) {
  if (!has(eqn, name)) return Ints(count, 1);
  const Param given = param(eqn, name);
  Ints numbers = given.integers();
  given.require(numbers.size() == count, fmt::format("a list of {} integers", count));
  const bool fits = std::ranges::all_of(numbers, [&](std::int64_t n) { return n >= least; });
  given.require(fits, fmt::format("a list of integers from {} on", least));
  return numbers;
}

constexpr CallRow kCalls[] = {
    // sorted by primitive
    {"checkpoint", "jaxpr"},
    {"closed_call", "call_jaxpr"},
    {"composite", "jaxpr"},
    {"core_call", "call_jaxpr"},
    {"custom_jvp_call", "call_jaxpr"},
    {"custom_vjp_call", "call_jaxpr"},
    {"custom_vjp_call_jaxpr", "fun_jaxpr"},
    {"jit", "jaxpr"},
    {"pjit", "jaxpr"},
    {"remat", "jaxpr"},
    {"remat2", "jaxpr"},
};
static_assert(std::ranges::is_sorted(kCalls, {}, &CallRow::primitive));

}  // namespace

bool has(const Eqn& eqn, std::string_view name) {
  const Attr* found = find(eqn.attrs, name);
  return found != nullptr && !found->is_none();
}
bool get_bool(const Eqn& eqn, std::string_view name) { return param(eqn, name).as<bool>("a bool"); }
std::int64_t get_int(const Eqn& eqn, std::string_view name) { return param(eqn, name).integer(); }
double get_double(const Eqn& eqn, std::string_view name) {
  const Param given = param(eqn, name);
  if (const auto* integer = given.attr.get_if<std::int64_t>()) return static_cast<double>(*integer);
  return given.as<double>("a number");
}
std::string get_string(const Eqn& eqn, std::string_view name) {
  const Param given = param(eqn, name);
  if (const auto* choice = given.attr.get_if<Enum>()) return choice->name;
  return given.as<std::string>("a string");
}
DType get_dtype(const Eqn& eqn, std::string_view name) {
  return param(eqn, name).as<DType>("a dtype");
}
Ints get_ints(const Eqn& eqn, std::string_view name) { return param(eqn, name).integers(); }
Dim get_dim(const Eqn& eqn, std::string_view name) { return param(eqn, name).size(); }
Dims get_dims(const Eqn& eqn, std::string_view name) { return param(eqn, name).sizes(); }
const Region& get_region(const Eqn& eqn, std::string_view name) {
  return param(eqn, name).region();
}

// --- calls and control flow

std::span<const CallRow> calls() { return kCalls; }

const CallRow* find_call(std::string_view primitive) {
  const auto* row = std::ranges::lower_bound(kCalls, primitive, {}, &CallRow::primitive);
  return row != std::end(kCalls) && row->primitive == primitive ? row : nullptr;
}

std::optional<FunctionMark> function_mark(const Eqn& eqn) {
  constexpr std::string_view kMark = "onnx_function:", kShares = ":shares";
  const Attr* attr = eqn.primitive == "jit" ? find(eqn.attrs, "name") : nullptr;
  const auto* text = attr ? attr->get_if<std::string>() : nullptr;
  const std::size_t start = text ? text->find(kMark) : std::string::npos;
  if (start == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(*text).substr(start + kMark.size());
  FunctionMark mark;
  mark.shares = rest.ends_with(kShares);
  if (mark.shares) rest.remove_suffix(kShares.size());
  const std::size_t colon = rest.find(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == rest.size())
    return std::nullopt;
  mark.domain = rest.substr(0, colon);
  mark.name = rest.substr(colon + 1);
  return mark;
}

CondParams CondParams::read(const Eqn& eqn) {
  constexpr std::string_view kExpected = "a list of functions";
  const Param given = param(eqn, "branches");
  CondParams params;
  for (const Attr& item : given.as<List>(kExpected)) {
    params.branches.push_back(given.part(item).region(kExpected));
  }
  given.require(!params.branches.empty(), kExpected);
  return params;
}

ScanParams ScanParams::read(const Eqn& eqn) {
  return {param(eqn, "num_consts").count(), param(eqn, "num_carry").count(), get_dim(eqn, "length"),
          get_bool(eqn, "reverse"), get_region(eqn, "jaxpr")};
}

WhileParams WhileParams::read(const Eqn& eqn) {
  return {param(eqn, "cond_nconsts").count(), param(eqn, "body_nconsts").count(),
          get_region(eqn, "cond_jaxpr"), get_region(eqn, "body_jaxpr")};
}

LinearSolveParams LinearSolveParams::read(const Eqn& eqn) {
  const Param lengths = param(eqn, "const_lengths");
  LinearSolveParams params{0, lengths.field("solve").count(), 0,
                           param(eqn, "jaxprs").field("solve").region()};
  for (const auto& [name, length] : lengths.as<Record>("a record").fields) {
    if (name == "solve") params.first_const = params.consts;
    params.consts += lengths.part(length).count();
  }
  return params;
}

// --- indexing

GatherParams GatherParams::read(const Eqn& eqn) {
  const Param numbers = param(eqn, "dimension_numbers");
  const auto dims = [&](std::string_view field) { return numbers.field(field).integers(); };
  GatherParams params{{dims("offset_dims"), dims("collapsed_slice_dims"), dims("start_index_map"),
                       dims("operand_batching_dims"), dims("start_indices_batching_dims"),
                       has(eqn, "mode") ? get_string(eqn, "mode") : ""},
                      get_dims(eqn, "slice_sizes"),
                      {}};
  if (!has(eqn, "fill_value")) return params;
  const Param fill = param(eqn, "fill_value");
  params.fill_value = fill.attr;
  if (const auto* large = fill.attr.get_if<Tensor>()) {  // an integer that only u64 holds
    fill.require(large->dtype == DType::kU64 && large->shape.empty(), "a number");
  } else if (!fill.attr.get_if<bool>()) {
    get_double(eqn, "fill_value");
  }
  return params;
}

Attrs GatherParams::attrs() const {
  return {{"dimension_numbers", Record{"GatherDimensionNumbers",
                                       {{"offset_dims", window_dims},
                                        {"collapsed_slice_dims", dropped},
                                        {"start_index_map", map},
                                        {"operand_batching_dims", operand_batching},
                                        {"start_indices_batching_dims", index_batching}}}},
          {"fill_value", fill_value},
          {"mode", Enum{mode}},
          {"slice_sizes", slice_sizes}};
}

Tensor GatherParams::fill(DType dtype) const {
  if (const auto* truth = fill_value.get_if<bool>()) return int_scalar(dtype, *truth);
  if (const auto* integer = fill_value.get_if<std::int64_t>()) return int_scalar(dtype, *integer);
  if (const auto* number = fill_value.get_if<double>()) return scalar(dtype, *number);
  if (const auto* large = fill_value.get_if<Tensor>()) return int_scalar(dtype, large->int_at(0));
  // JAX fills with NaN, with the smallest signed, the largest unsigned number.
  if (is_signed(dtype)) return int_scalar(dtype, std::int64_t(-1) << (bit_width(dtype) - 1));
  if (is_unsigned(dtype)) return int_scalar(dtype, -1);
  if (dtype == DType::kBool) return int_scalar(dtype, 1);
  return scalar(dtype, std::numeric_limits<double>::quiet_NaN());
}

ScatterParams ScatterParams::read(const Eqn& eqn) {
  const Param numbers = param(eqn, "dimension_numbers");
  const auto dims = [&](std::string_view field) { return numbers.field(field).integers(); };
  return {{dims("update_window_dims"), dims("inserted_window_dims"),
           dims("scatter_dims_to_operand_dims"), dims("operand_batching_dims"),
           dims("scatter_indices_batching_dims"), has(eqn, "mode") ? get_string(eqn, "mode") : ""},
          eqn.primitive == "scatter" && has(eqn, "update_jaxpr") ? get_region(eqn, "update_jaxpr")
                                                                 : nullptr};
}

Attrs ScatterParams::attrs() const {
  return {{"dimension_numbers", Record{"ScatterDimensionNumbers",
                                       {{"update_window_dims", window_dims},
                                        {"inserted_window_dims", dropped},
                                        {"scatter_dims_to_operand_dims", map},
                                        {"operand_batching_dims", operand_batching},
                                        {"scatter_indices_batching_dims", index_batching}}}},
          {"mode", Enum{mode}}};
}

// --- windows

namespace {

// Pairs of (low, high), with the dilation of the operand.
Paddings paddings(const Eqn& eqn, std::size_t count, std::string_view dilation) {
  constexpr std::string_view kExpected = "a list of pairs, one for each dim of the window";
  const Ints base = steps(eqn, dilation, count);
  Paddings result;
  for (const Param& dim : param(eqn, "padding").parts(count, kExpected)) {
    const Dims pair = dim.sizes(kExpected);
    dim.require(pair.size() == 2, kExpected);
    result.push_back({pair[0], pair[1], base[result.size()] - 1});
  }
  return result;
}

}  // namespace

bool is_static(const Paddings& paddings) {
  return std::ranges::all_of(paddings, [](const Padding& padding) {
    return padding.low.is_static() && padding.high.is_static();
  });
}

bool WindowParams::is_dilated() const {
  return std::ranges::any_of(dilation, [](std::int64_t step) { return step != 1; }) ||
         std::ranges::any_of(padding, [](const Padding& dim) { return dim.interior != 0; });
}

WindowParams WindowParams::read(const Eqn& eqn) {
  const std::size_t rank = param(eqn, "window_dimensions").as<List>("a list of sizes").size();
  return {steps(eqn, "window_dimensions", rank, 0), steps(eqn, "window_strides", rank),
          steps(eqn, "window_dilation", rank), paddings(eqn, rank, "base_dilation")};
}

ConvParams ConvParams::read(const Eqn& eqn) {
  const Param numbers = param(eqn, "dimension_numbers");
  const auto dims = [&](std::string_view field) {
    Ints order = numbers.field(field).integers(), sorted = order;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      numbers.require(sorted[i] == static_cast<std::int64_t>(i), "a record of permutations");
    }
    numbers.require(order.size() >= 2, "a record of permutations of two dims or more");
    return order;
  };
  ConvParams params{dims("lhs_spec"), dims("rhs_spec"), dims("out_spec"), {}, {}, {}, 1, 1};
  numbers.require(params.lhs.size() == params.rhs.size() && params.lhs.size() == params.out.size(),
                  "a record of permutations of equal length");
  const std::size_t rank = params.lhs.size() - 2;
  params.stride = steps(eqn, "window_strides", rank);
  params.rhs_dilation = steps(eqn, "rhs_dilation", rank);
  params.padding = paddings(eqn, rank, "lhs_dilation");
  params.feature_groups = get_dim(eqn, "feature_group_count");
  params.batch_groups = get_int(eqn, "batch_group_count");
  return params;
}

void set_padding(Eqn& eqn, const Paddings& padding) {
  List pairs;
  Ints dilation;
  for (const auto& [low, high, interior] : padding) {
    pairs.push_back(List{low, high});
    dilation.push_back(interior + 1);
  }
  set(eqn.attrs, "padding", pairs);
  set(eqn.attrs, eqn.primitive == "conv_general_dilated" ? "lhs_dilation" : "base_dilation",
      dilation);
}

PadParams PadParams::read(const Eqn& eqn) {
  constexpr std::string_view kExpected = "a list of triples";
  const Param given = param(eqn, "padding_config");
  PadParams params;
  for (const Attr& item : given.as<List>(kExpected)) {
    const auto triple = given.part(item).parts(3, kExpected);
    params.config.push_back(
        {triple[0].size(kExpected), triple[1].size(kExpected), triple[2].integer(kExpected)});
    given.require(params.config.back().interior >= 0, "a list of triples, the third from 0 on");
  }
  return params;
}

Attrs PadParams::attrs() const {
  List triples;
  for (const auto& [low, high, interior] : config) triples.push_back(List{low, high, interior});
  return {{"padding_config", triples}};
}

SliceParams SliceParams::read(const Eqn& eqn) {
  SliceParams params{get_dims(eqn, "start_indices"), get_dims(eqn, "limit_indices"), {}};
  const std::size_t rank = params.start.size();
  param(eqn, "limit_indices").require(params.limit.size() == rank, "as long as 'start_indices'");
  params.stride = steps(eqn, "strides", rank);
  return params;
}

// --- reductions and the like

DotParams DotParams::read(const Eqn& eqn) {
  constexpr std::string_view kExpected = "a pair of pairs of lists";
  const Param numbers = param(eqn, "dimension_numbers");
  const auto pairs = numbers.parts(2, kExpected);
  const auto contract = pairs[0].parts(2, kExpected), batch = pairs[1].parts(2, kExpected);
  DotParams params{contract[0].integers(kExpected), contract[1].integers(kExpected),
                   batch[0].integers(kExpected), batch[1].integers(kExpected)};
  numbers.require(params.lhs_contract.size() == params.rhs_contract.size() &&
                      params.lhs_batch.size() == params.rhs_batch.size(),
                  "a pair of pairs of lists of equal length");
  return params;
}

Attrs DotParams::attrs() const {
  return {
      {"dimension_numbers", List{List{lhs_contract, rhs_contract}, List{lhs_batch, rhs_batch}}}};
}

ReduceParams ReduceParams::read(const Eqn& eqn) {
  if (eqn.primitive != "reduce") return {get_ints(eqn, "axes"), nullptr};
  return {get_ints(eqn, "dimensions"), get_region(eqn, "jaxpr")};
}

CollectiveParams CollectiveParams::read(const Eqn& eqn) {
  CollectiveParams params;
  for (const Attr& axis : param(eqn, "axes").as<List>("a list")) {
    if (const auto* position = axis.get_if<std::int64_t>()) params.axes.push_back(*position);
  }
  return params;
}

CumulativeParams CumulativeParams::read(const Eqn& eqn) {
  return {get_int(eqn, "axis"), get_bool(eqn, "reverse")};
}

SortParams SortParams::read(const Eqn& eqn) {
  return {get_int(eqn, "dimension"), param(eqn, "num_keys").count()};
}

}  // namespace jaxport::front
