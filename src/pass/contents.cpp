// SPDX-License-Identifier: Apache-2.0
#include "pass/contents.h"

#include <algorithm>

#include "jaxport/error.h"
#include "onnx/walk.h"
#include "pass/local.h"

namespace jaxport::pass {

using onnx::Graph;
using onnx::kAbsent;
using onnx::Node;
using onnx::ValueId;

namespace {

constexpr std::int64_t kMostSizes = 64;

bool is_index(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kBool;
}

// The part of a shape that Shape's start and end name.
Dims part_of_shape(const Dims& shape, std::int64_t start, std::int64_t end) {
  const auto rank = std::ssize(shape);
  const auto place = [rank](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t first = place(start), last = place(end);
  if (first >= last) return {};
  return {shape.begin() + first, shape.begin() + last};
}

}  // namespace

// One function for each op; all of them have operands of rank 0 or 1.
struct ContentRules {
  using Elements = Contents::Elements;
  using Result = std::optional<Elements>;

  struct Call {
    const Contents& contents;
    const Node& node;

    const Elements* in(std::size_t i) const {
      return i < node.in.size() ? contents.find(node.in[i]) : nullptr;
    }
    bool has(std::size_t i) const { return i < node.in.size() && node.in[i] != kAbsent; }
    // The operand as plain numbers.
    std::optional<Ints> ints(std::size_t i) const {
      const Elements* found = in(i);
      if (found == nullptr) return std::nullopt;
      Ints values;
      for (const Dim& value : found->values) {
        if (!value.is_static()) return std::nullopt;
        values.push_back(value.value());
      }
      return values;
    }
    const onnx::TensorType* type(std::size_t i) const {
      if (!has(i)) return nullptr;
      const auto& known = contents.model_.values[node.in[i]].type;
      return known ? &*known : nullptr;
    }
    const Dims* shape(std::size_t i) const {
      const onnx::TensorType* known = type(i);
      return known != nullptr && known->shape ? &*known->shape : nullptr;
    }
  };

  static Result shape(const Call& c) {
    const Dims* shape = c.shape(0);
    if (shape == nullptr) return std::nullopt;
    return Elements{part_of_shape(*shape, int_attribute(c.node, "start", 0),
                                  int_attribute(c.node, "end", std::ssize(*shape))),
                    DType::kI64, false};
  }

  static Result size(const Call& c) {
    const Dims* shape = c.shape(0);
    if (shape == nullptr) return std::nullopt;
    return Elements{{product(*shape)}, DType::kI64, true};
  }

  static Result copy(const Call& c) { return c.in(0) == nullptr ? std::nullopt : Result(*c.in(0)); }

  // Sizes fit i32; other numbers might wrap around.
  static Result cast(const Call& c) {
    const auto dtype = dtype_from_onnx(static_cast<int>(int_attribute(c.node, "to", 0)));
    Result result = copy(c);
    if (!result || !dtype || !is_index(*dtype)) return std::nullopt;
    const bool changes_number = *dtype == DType::kBool && result->dtype != DType::kBool;
    const bool narrows = *dtype == DType::kI32 && result->dtype == DType::kI64;
    for (const Dim& value : result->values) {
      if (changes_number) return std::nullopt;
      if (narrows &&
          (!value.is_static() || static_cast<std::int32_t>(value.value()) != value.value()))
        return std::nullopt;
    }
    result->dtype = *dtype;
    return result;
  }

  static Result squeeze(const Call& c) {
    Result result = copy(c);
    if (!result || result->values.size() != 1) return std::nullopt;
    result->is_scalar = true;
    return result;
  }

  static Result unsqueeze(const Call& c) {
    Result result = copy(c);
    const auto axes = c.ints(1);
    if (!result || !result->is_scalar || !axes || axes->size() != 1) return std::nullopt;
    result->is_scalar = false;
    return result;
  }

  static Result reshape(const Call& c) {
    Result result = copy(c);
    const auto target = c.ints(1);
    if (!result || !target || target->size() > 1) return std::nullopt;
    if (target->empty() && result->values.size() != 1) return std::nullopt;
    result->is_scalar = target->empty();
    return result;
  }

  static Result gather(const Call& c) {
    const Elements *data = c.in(0), *indices = c.in(1);
    const auto places = c.ints(1);
    if (data == nullptr || data->is_scalar || !places) return std::nullopt;
    Elements result{{}, data->dtype, indices->is_scalar};
    for (std::int64_t place : *places) {
      const auto at = from_front(place, data->values.size());
      if (!at) return std::nullopt;
      result.values.push_back(data->values[*at]);
    }
    return result;
  }

  static Result slice(const Call& c) {
    const Elements* data = c.in(0);
    const auto starts = c.ints(1), ends = c.ints(2), steps = c.has(4) ? c.ints(4) : Ints{1};
    if (data == nullptr || data->is_scalar || !starts || !ends || !steps) return std::nullopt;
    if (starts->size() != 1 || ends->size() != 1 || steps->size() != 1 || steps->front() != 1)
      return std::nullopt;
    return Elements{part_of_shape(data->values, starts->front(), ends->front()), data->dtype,
                    false};
  }

  static Result concat(const Call& c) {
    Elements result{{}, DType::kI64, false};
    for (std::size_t i = 0; i < c.node.in.size(); ++i) {
      const Elements* part = c.in(i);
      if (part == nullptr || part->is_scalar) return std::nullopt;
      result.dtype = part->dtype;
      result.values.insert(result.values.end(), part->values.begin(), part->values.end());
    }
    return result;
  }

  template <class Combine>
  static Result pairwise(const Call& c, const Combine& combine) {
    const Elements *a = c.in(0), *b = c.in(1);
    if (a == nullptr || b == nullptr) return std::nullopt;
    const std::size_t count = std::max(a->values.size(), b->values.size());
    const auto fits = [count](const Elements& e) {
      return e.values.size() == count || e.values.size() == 1;
    };
    if (count == 0 || !fits(*a) || !fits(*b)) return std::nullopt;
    Elements result{{}, a->dtype, a->is_scalar && b->is_scalar};
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = [i](const Elements& e) { return e.values[e.values.size() == 1 ? 0 : i]; };
      const std::optional<Dim> value = combine(at(*a), at(*b));
      if (!value) return std::nullopt;
      result.values.push_back(*value);
    }
    return result;
  }

  static Result add(const Call& c) {
    return pairwise(c, [](const Dim& a, const Dim& b) { return std::optional(a + b); });
  }
  static Result subtract(const Call& c) {
    return pairwise(c, [](const Dim& a, const Dim& b) { return std::optional(a - b); });
  }
  static Result multiply(const Call& c) {
    return pairwise(c, [](const Dim& a, const Dim& b) { return std::optional(a * b); });
  }
  // ONNX rounds to 0, which is the floor where neither is negative.
  static Result divide(const Call& c) {
    return pairwise(c, [](const Dim& a, const Dim& b) -> std::optional<Dim> {
      const bool is_floor = less_equal(0, a) == Truth::kYes && less_equal(1, b) == Truth::kYes;
      return is_floor ? std::optional(floordiv(a, b)) : std::nullopt;
    });
  }
  static Result equals(const Call& c) {
    Result result = pairwise(c, [](const Dim& a, const Dim& b) -> std::optional<Dim> {
      const Truth truth = equal(a, b);
      if (truth == Truth::kUnknown) return std::nullopt;
      return Dim(truth == Truth::kYes ? 1 : 0);
    });
    if (result) result->dtype = DType::kBool;
    return result;
  }

  // Of numbers that are known; sizes are only compared where that can be decided.
  template <class Combine>
  static Result decided(const Call& c, const Combine& combine) {
    Result result = pairwise(c, [&](const Dim& a, const Dim& b) -> std::optional<Dim> {
      if (!a.is_static() || !b.is_static()) return std::nullopt;
      return Dim(combine(a.value(), b.value()) ? 1 : 0);
    });
    if (result) result->dtype = DType::kBool;
    return result;
  }
  static Result both(const Call& c) {
    return decided(c, [](std::int64_t a, std::int64_t b) { return a != 0 && b != 0; });
  }
  static Result either(const Call& c) {
    return decided(c, [](std::int64_t a, std::int64_t b) { return a != 0 || b != 0; });
  }
  static Result greater(const Call& c) {
    return decided(c, [](std::int64_t a, std::int64_t b) { return a > b; });
  }
  static Result less(const Call& c) {
    return decided(c, [](std::int64_t a, std::int64_t b) { return a < b; });
  }
  static Result remainder(const Call& c) {
    return pairwise(c, [](const Dim& a, const Dim& b) -> std::optional<Dim> {
      const bool is_plain = less_equal(0, a) == Truth::kYes && less_equal(1, b) == Truth::kYes;
      return is_plain ? std::optional(mod(a, b)) : std::nullopt;
    });
  }
  static Result negative(const Call& c) {
    Result result = copy(c);
    if (!result || result->dtype == DType::kBool) return std::nullopt;
    for (Dim& value : result->values) value = Dim(0) - value;
    return result;
  }

  static Result choose(const Call& c) {
    const auto condition = c.ints(0);
    const Elements *yes = c.in(1), *no = c.in(2);
    if (!condition || yes == nullptr || no == nullptr) return std::nullopt;
    const std::size_t count = std::max({condition->size(), yes->values.size(), no->values.size()});
    const auto fits = [count](std::size_t size) { return size == count || size == 1; };
    if (!fits(condition->size()) || !fits(yes->values.size()) || !fits(no->values.size()))
      return std::nullopt;
    Elements result{{}, yes->dtype, c.in(0)->is_scalar && yes->is_scalar && no->is_scalar};
    for (std::size_t i = 0; i < count; ++i) {
      const Elements& taken = (*condition)[condition->size() == 1 ? 0 : i] != 0 ? *yes : *no;
      result.values.push_back(taken.values[taken.values.size() == 1 ? 0 : i]);
    }
    return result;
  }

  static Result constant_of_shape(const Call& c) {
    const auto sizes = c.ints(0);
    const onnx::Attribute* attribute = c.node.attr("value");
    const auto* value = attribute ? std::get_if<Tensor>(&attribute->value) : nullptr;
    if (!sizes || sizes->size() != 1 || sizes->front() < 0 || sizes->front() > kMostSizes)
      return std::nullopt;
    if (value == nullptr || !is_index(value->dtype) || value->size() != 1) return std::nullopt;
    return Elements{Dims(static_cast<std::size_t>(sizes->front()), Dim(value->int_at(0))),
                    value->dtype, false};
  }

  struct Row {
    std::string_view op;
    Result (*evaluate)(const Call&);
  };
  static std::span<const Row> rows() {
    static constexpr Row kRows[] = {
        {"Add", add},
        {"And", both},
        {"Cast", cast},
        {"Concat", concat},
        {"ConstantOfShape", constant_of_shape},
        {"Div", divide},
        {"Equal", equals},
        {"Gather", gather},
        {"Greater", greater},
        {"Identity", copy},
        {"Less", less},
        {"Mod", remainder},
        {"Mul", multiply},
        {"Neg", negative},
        {"Or", either},
        {"Reshape", reshape},
        {"Shape", shape},
        {"Size", size},
        {"Slice", slice},
        {"Squeeze", squeeze},
        {"Sub", subtract},
        {"Unsqueeze", unsqueeze},
        {"Where", choose},
    };
    static_assert(std::ranges::is_sorted(kRows, {}, &Row::op));
    return kRows;
  }
};

Contents::Contents(const onnx::Model& model) : model_(model), is_input_(model.values.size()) {
  onnx::for_each_graph(model.graph, [this](const Graph& graph) {
    for (ValueId id : graph.inputs) is_input_[id] = true;
  });
}

void Contents::add(const onnx::Initializer& constant) {
  const DType dtype = constant.view.base.dtype;
  const bool is_overridable = constant.value < is_input_.size() && is_input_[constant.value];
  if (is_overridable || !is_index(dtype) || constant.shape.size() > 1) return;
  if (constant.view.size() > kMostSizes) return;
  const Tensor tensor = materialise(constant.view);
  Elements elements{{}, dtype, constant.shape.empty()};
  for (std::int64_t i = 0; i < tensor.size(); ++i) elements.values.emplace_back(tensor.int_at(i));
  unsorted_elements_.insert_or_assign(constant.value, std::move(elements));
}

void Contents::visit(const Node& node) {
  if (!node.domain.empty() || node.out.size() != 1 || node.out[0] == kAbsent) return;
  auto elements = evaluate(node);
  if (elements && std::ssize(elements->values) <= kMostSizes) {
    unsorted_elements_.insert_or_assign(node.out[0], std::move(*elements));
  }
}

std::optional<Contents::Elements> Contents::evaluate(const Node& node) const {
  const auto rows = ContentRules::rows();
  const auto row = std::ranges::lower_bound(rows, node.op, {}, &ContentRules::Row::op);
  if (row == rows.end() || row->op != node.op) return std::nullopt;
  try {
    return row->evaluate({*this, node});
  } catch (const Error&) {  // an expression that leaves int64
    return std::nullopt;
  }
}

const Contents::Elements* Contents::find(ValueId id) const {
  const auto found = unsorted_elements_.find(id);
  return found == unsorted_elements_.end() ? nullptr : &found->second;
}

const Dims* Contents::of(ValueId id) const {
  const Elements* found = find(id);
  return found == nullptr ? nullptr : &found->values;
}

bool Contents::is_scalar(ValueId id) const {
  const Elements* found = find(id);
  return found != nullptr && found->is_scalar;
}

std::optional<Tensor> Contents::tensor(ValueId id) const {
  const Elements* found = find(id);
  if (found == nullptr) return std::nullopt;
  Shape shape;
  if (!found->is_scalar) shape.push_back(std::ssize(found->values));
  MutableTensor result = allocate(found->dtype, std::move(shape));
  for (std::size_t i = 0; i < found->values.size(); ++i) {
    if (!found->values[i].is_static()) return std::nullopt;
    const std::int64_t value = found->values[i].value();
    switch (found->dtype) {
      case DType::kI64:
        result.as<std::int64_t>()[i] = value;
        break;
      case DType::kI32:
        if (static_cast<std::int32_t>(value) != value) return std::nullopt;
        result.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
        break;
      default:
        result.as<std::uint8_t>()[i] = value != 0;
    }
  }
  return result.tensor;
}

}  // namespace jaxport::pass
