// SPDX-License-Identifier: Apache-2.0
// Sums, products and roots are computed in f64 and rounded once, which gives the number that the
// dtype's own arithmetic gives; other functions are rounded once where a runtime may be a unit off.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "pass/fold.h"
#include "pass/local.h"

namespace jaxport::pass {
namespace {

using Folded = std::optional<Tensor>;

bool is_real(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

Tensor reals(DType dtype, const Shape& shape, const std::vector<double>& values) {
  MutableTensor result = allocate(dtype, shape);
  const std::size_t width = byte_width(dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kF32) {
      result.as<float>()[i] = static_cast<float>(values[i]);
      continue;
    }
    const Tensor element = scalar(dtype, values[i]);
    std::memcpy(result.bytes + i * width, element.data.get(), width);
  }
  return result.tensor;
}

Tensor bools(const Shape& shape, const std::vector<bool>& values) {
  MutableTensor result = allocate(DType::kBool, shape);
  for (std::size_t i = 0; i < values.size(); ++i) result.as<std::uint8_t>()[i] = values[i];
  return result.tensor;
}

bool is_number(DType dtype) {
  return is_real(dtype) || (is_integer(dtype) && dtype != DType::kU64);
}

// Whole numbers only where f64 had all their digits.
Folded rounded_to_dtype(const FoldCall& call, const std::vector<double>& values) {
  if (is_real(call.dtype)) return reals(call.dtype, call.shape, values);
  Ints whole;
  for (double value : values) {
    if (!(std::fabs(value) < 0x1p53)) return std::nullopt;
    whole.push_back(static_cast<std::int64_t>(value));
  }
  return integers(call.dtype, call.shape, whole);
}

// --- one operand

template <double (*kFunction)(double)>
Folded real_unary(const FoldCall& call) {
  if (!is_real(call.dtype)) return std::nullopt;
  std::vector<double> values;
  for (std::int64_t i = 0; i < call.in[0].size(); ++i) {
    values.push_back(kFunction(call.in[0].at(i)));
  }
  return reals(call.dtype, call.shape, values);
}
double absolute(double x) { return std::fabs(x); }
double negative(double x) { return -x; }
double root(double x) { return std::sqrt(x); }
double inverse(double x) { return 1 / x; }
double floored(double x) { return std::floor(x); }
double ceiled(double x) { return std::ceil(x); }
double exponential(double x) { return std::exp(x); }
double logarithm(double x) { return std::log(x); }
double sine(double x) { return std::sin(x); }
double cosine(double x) { return std::cos(x); }
double error_function(double x) { return std::erf(x); }
double hyperbolic_tangent(double x) { return std::tanh(x); }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

template <double (*kFunction)(double), bool kNegates>
Folded unary(const FoldCall& call) {
  if (!is_integer(call.dtype)) return real_unary<kFunction>(call);
  if (call.dtype == DType::kU64) return std::nullopt;
  Ints values;
  for (std::int64_t i = 0; i < call.in[0].size(); ++i) {
    const std::int64_t value = call.in[0].int_at(i);
    if (value == INT64_MIN) return std::nullopt;
    values.push_back(kNegates || value < 0 ? -value : value);
  }
  return integers(call.dtype, call.shape, values);
}

Folded negate_bools(const FoldCall& call) {
  std::vector<bool> values;
  for (std::int64_t i = 0; i < call.in[0].size(); ++i) values.push_back(call.in[0].at(i) == 0);
  return bools(call.shape, values);
}

// A number that the dtype cannot hold is rounded by each runtime in its own way.
Folded convert(const FoldCall& call) {
  const Tensor& x = call.in[0];
  if (x.dtype == call.dtype) return x;
  if (is_real(x.dtype) && is_real(call.dtype)) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < x.size(); ++i) values.push_back(x.at(i));
    return reals(call.dtype, call.shape, values);
  }
  if (is_real(call.dtype) && (is_integer(x.dtype) || x.dtype == DType::kBool)) {
    if (x.dtype == DType::kU64) return std::nullopt;
    std::vector<double> values;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const auto value = static_cast<double>(x.int_at(i));
      if (std::fabs(value) > 0x1p53) return std::nullopt;
      values.push_back(value);
    }
    return reals(call.dtype, call.shape, values);
  }
  if (!is_real(x.dtype) || !is_integer(call.dtype) || call.dtype == DType::kU64)
    return std::nullopt;
  Ints values;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double value = x.at(i);
    if (!(std::fabs(value) < 0x1p53)) return std::nullopt;
    values.push_back(static_cast<std::int64_t>(value));
  }
  return integers(call.dtype, call.shape, values);
}

// --- two operands

template <double (*kFunction)(double, double)>
Folded real_binary(const FoldCall& call) {
  if (!is_real(call.dtype) || call.in.size() != 2 || call.in[1].dtype != call.dtype)
    return std::nullopt;
  const Tensor a = broadcast(call.in[0], call.shape), b = broadcast(call.in[1], call.shape);
  std::vector<double> values;
  for (std::int64_t i = 0; i < a.size(); ++i) values.push_back(kFunction(a.at(i), b.at(i)));
  return reals(call.dtype, call.shape, values);
}
double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double times(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }
double power(double a, double b) { return std::pow(a, b); }

Folded remainder_of(const FoldCall& call) {
  if (!is_integer(call.dtype) || call.dtype == DType::kU64) return std::nullopt;
  if (int_attribute(call.node, "fmod", 0) != 0) return std::nullopt;
  const Tensor a = broadcast(call.in[0], call.shape), b = broadcast(call.in[1], call.shape);
  Ints values;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const std::int64_t divisor = b.int_at(i);
    if (divisor == 0 || divisor == -1) return std::nullopt;
    const std::int64_t rest = a.int_at(i) % divisor;
    values.push_back(rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest);
  }
  return integers(call.dtype, call.shape, values);
}

Folded divide(const FoldCall& call) {
  if (is_real(call.dtype)) return real_binary<quotient>(call);
  if (!is_integer(call.dtype) || call.dtype == DType::kU64) return std::nullopt;
  const Tensor a = broadcast(call.in[0], call.shape), b = broadcast(call.in[1], call.shape);
  Ints values;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (b.int_at(i) == 0 || b.int_at(i) == -1) return std::nullopt;
    values.push_back(a.int_at(i) / b.int_at(i));
  }
  return integers(call.dtype, call.shape, values);
}

template <bool (*kTest)(double, double)>
Folded comparison(const FoldCall& call) {
  const DType dtype = call.in[0].dtype;
  const bool is_exact = is_real(dtype) || dtype == DType::kBool || dtype == DType::kI32 ||
                        (is_integer(dtype) && byte_width(dtype) < 4);
  if (!is_exact && dtype != DType::kI64) return std::nullopt;
  const Tensor a = broadcast(call.in[0], call.shape), b = broadcast(call.in[1], call.shape);
  std::vector<bool> values;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (!is_exact && std::max(std::fabs(a.at(i)), std::fabs(b.at(i))) > 0x1p53) return std::nullopt;
    values.push_back(kTest(a.at(i), b.at(i)));
  }
  return bools(call.shape, values);
}
bool equal_to(double a, double b) { return a == b; }
bool less_than(double a, double b) { return a < b; }
bool at_most(double a, double b) { return a <= b; }
bool more_than(double a, double b) { return a > b; }
bool at_least(double a, double b) { return a >= b; }
bool both(double a, double b) { return a != 0 && b != 0; }
bool either(double a, double b) { return a != 0 || b != 0; }

template <double (*kFunction)(double, double)>
Folded of_many(const FoldCall& call) {
  if (!is_number(call.dtype)) return std::nullopt;
  std::vector<double> values;
  for (const Tensor& operand : call.in) {
    const Tensor x = broadcast(operand, call.shape);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      if (&operand == &call.in[0]) {
        values.push_back(x.at(i));
      } else {
        values[i] = kFunction(values[i], x.at(i));
      }
    }
  }
  return rounded_to_dtype(call, values);
}
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

// --- reductions

// Which axes are reduced; nullopt when that is not said by constants.
std::optional<std::vector<bool>> reduced_axes(const FoldCall& call) {
  const std::size_t rank = call.in[0].shape.size();
  Ints axes;
  if (call.in.size() > 1) {
    for (std::int64_t i = 0; i < call.in[1].size(); ++i) axes.push_back(call.in[1].int_at(i));
  } else if (const auto given = ints_attribute(call.node, "axes")) {
    axes = *given;
  }
  const bool keeps_all = axes.empty() && int_attribute(call.node, "noop_with_empty_axes", 0) != 0;
  std::vector<bool> is_reduced(rank, axes.empty() && !keeps_all);
  for (std::int64_t axis : axes) {
    const auto at = from_front(axis, rank);
    if (!at) return std::nullopt;
    is_reduced[*at] = true;
  }
  return is_reduced;
}

// Of floats and of whole numbers that are exact in f64.
template <double (*kFunction)(double, double)>
Folded reduction(const FoldCall& call) {
  const Tensor& x = call.in[0];
  const auto is_reduced = reduced_axes(call);
  if (!is_reduced || x.size() == 0) return std::nullopt;
  if (!is_number(x.dtype)) return std::nullopt;
  const Ints strides = row_major_strides(x.shape);
  std::vector<std::optional<double>> values(static_cast<std::size_t>(element_count(call.shape)));
  for (std::int64_t i = 0; i < x.size(); ++i) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < x.shape.size(); ++axis) {
      if (!(*is_reduced)[axis]) place = place * x.shape[axis] + i / strides[axis] % x.shape[axis];
    }
    auto& value = values[place];
    value = value ? kFunction(*value, x.at(i)) : x.at(i);
  }
  std::vector<double> found;
  for (const auto& value : values) found.push_back(*value);
  return rounded_to_dtype(call, found);
}

// --- parts

// Copies elements by a function from places of the result to an operand and a place in it.
template <class Place>
Folded gathered(const FoldCall& call, const Tensor& example, const Place& place) {
  if (byte_width(example.dtype) == 0 || example.dtype != call.dtype) return std::nullopt;
  MutableTensor result = allocate(call.dtype, call.shape);
  const std::size_t width = byte_width(call.dtype);
  const std::int64_t count = element_count(call.shape);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::byte* from = place(i);
    if (from == nullptr) return std::nullopt;
    std::memcpy(result.bytes + static_cast<std::size_t>(i) * width, from, width);
  }
  return result.tensor;
}

Folded choose(const FoldCall& call) {
  if (call.in.size() != 3 || call.in[1].dtype != call.in[2].dtype) return std::nullopt;
  const Tensor condition = broadcast(call.in[0], call.shape);
  const Tensor yes = broadcast(call.in[1], call.shape), no = broadcast(call.in[2], call.shape);
  const std::size_t width = byte_width(call.dtype);
  return gathered(call, yes, [&](std::int64_t i) {
    const Tensor& taken = condition.at(i) != 0 ? yes : no;
    return taken.data.get() + static_cast<std::size_t>(i) * width;
  });
}

Folded take(const FoldCall& call) {
  const Tensor &data = call.in[0], &indices = call.in[1];
  const auto axis = from_front(int_attribute(call.node, "axis", 0), data.shape.size());
  if (!axis || !is_integer(indices.dtype) || indices.dtype == DType::kU64) return std::nullopt;
  const std::int64_t size = data.shape[*axis], count = indices.size();
  const std::int64_t inner = element_count(std::span(data.shape).subspan(*axis + 1));
  const std::size_t width = byte_width(call.dtype);
  return gathered(call, data, [&](std::int64_t i) -> const std::byte* {
    const std::int64_t in_row = i % inner, index = i / inner % count, outer = i / inner / count;
    std::int64_t at = indices.int_at(index);
    if (at < 0) at += size;
    if (at < 0 || at >= size) return nullptr;
    return data.data.get() + static_cast<std::size_t>((outer * size + at) * inner + in_row) * width;
  });
}

// Where along each axis the result starts, and by which steps it goes on.
struct Cut {
  Ints starts, steps;
};

std::optional<Cut> cut_of(const FoldCall& call) {
  const Shape& shape = call.in[0].shape;
  Cut cut{Ints(shape.size(), 0), Ints(shape.size(), 1)};
  for (std::int64_t k = 0; k < call.in[1].size(); ++k) {
    const auto axis = from_front(call.in.size() > 3 ? call.in[3].int_at(k) : k, shape.size());
    if (!axis) return std::nullopt;
    const std::int64_t step = call.in.size() > 4 ? call.in[4].int_at(k) : 1, size = shape[*axis];
    if (step == 0) return std::nullopt;
    std::int64_t start = call.in[1].int_at(k);
    if (start < 0) start += size;
    cut.starts[*axis] = std::clamp<std::int64_t>(start, 0, step > 0 ? size : size - 1);
    cut.steps[*axis] = step;
  }
  return cut;
}

Folded cut_out(const FoldCall& call) {
  if (call.in.size() < 3) return std::nullopt;
  const auto cut = cut_of(call);
  if (!cut) return std::nullopt;
  const Tensor& data = call.in[0];
  const Ints strides = row_major_strides(data.shape);
  StridedView view{data, 0, call.shape, {}};
  for (std::size_t i = 0; i < strides.size(); ++i) {
    view.offset += cut->starts[i] * strides[i];
    view.strides.push_back(cut->steps[i] * strides[i]);
  }
  if (view.size() == 0) return std::nullopt;
  Tensor result = materialise(view);
  result.shape = call.shape;
  return result;
}

// --- sequences

Folded range(const FoldCall& call) {
  const std::int64_t count = element_count(call.shape);
  if (is_real(call.dtype)) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(call.in[0].at(0) + static_cast<double>(i) * call.in[2].at(0));
    }
    return reals(call.dtype, call.shape, values);
  }
  Ints values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(call.in[0].int_at(0) + i * call.in[2].int_at(0));
  }
  return integers(call.dtype, call.shape, values);
}

Folded filled(const FoldCall& call) {
  const onnx::Attribute* attribute = call.node.attr("value");
  if (attribute == nullptr) return broadcast(scalar(DType::kF32, 0), call.shape);
  const auto* value = std::get_if<Tensor>(&attribute->value);
  if (value == nullptr || value->size() != 1 || value->dtype != call.dtype) return std::nullopt;
  Tensor one = *value;
  one.shape = {};
  return broadcast(one, call.shape);
}

constexpr FoldRow kNumberRows[] = {
    {"Abs", unary<absolute, false>},
    {"Add", real_binary<sum>},
    {"And", comparison<both>},
    {"Cast", convert},
    {"CastLike", convert},
    {"Ceil", real_unary<ceiled>},
    {"ConstantOfShape", filled},
    {"Cos", real_unary<cosine>},
    {"Div", divide},
    {"Equal", comparison<equal_to>},
    {"Erf", real_unary<error_function>},
    {"Exp", real_unary<exponential>},
    {"Floor", real_unary<floored>},
    {"Gather", take},
    {"Greater", comparison<more_than>},
    {"GreaterOrEqual", comparison<at_least>},
    {"Less", comparison<less_than>},
    {"LessOrEqual", comparison<at_most>},
    {"Log", real_unary<logarithm>},
    {"Max", of_many<larger>},
    {"Min", of_many<smaller>},
    {"Mod", remainder_of},
    {"Mul", real_binary<times>},
    {"Neg", unary<negative, true>},
    {"Not", negate_bools},
    {"Or", comparison<either>},
    {"Pow", real_binary<power>},
    {"Range", range},
    {"Reciprocal", real_unary<inverse>},
    {"ReduceMax", reduction<larger>},
    {"ReduceMin", reduction<smaller>},
    {"ReduceProd", reduction<times>},
    {"ReduceSum", reduction<sum>},
    {"Sigmoid", real_unary<logistic>},
    {"Sin", real_unary<sine>},
    {"Slice", cut_out},
    {"Sqrt", real_unary<root>},
    {"Sub", real_binary<difference>},
    {"Tanh", real_unary<hyperbolic_tangent>},
    {"Where", choose},
};
static_assert(std::ranges::is_sorted(kNumberRows, {}, &FoldRow::op));

}  // namespace

std::span<const FoldRow> number_rows() { return kNumberRows; }

}  // namespace jaxport::pass
