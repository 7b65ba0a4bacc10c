// SPDX-License-Identifier: Apache-2.0
#include "onnx/infer.h"

#include <fmt/format.h>

#include <algorithm>

#include "jaxport/error.h"
#include "onnx/check.h"

namespace jaxport::onnx {
namespace {

// Ops whose result's dtype is named by an attribute.
struct DTypeAttribute {
  std::string_view op, attribute;
  std::optional<DType> otherwise;  // nullopt: the dtype of input 0
};
constexpr DTypeAttribute kDTypeAttributes[] = {
    {"Bernoulli", "dtype", std::nullopt},
    {"BitCast", "to", std::nullopt},
    {"BlackmanWindow", "output_datatype", DType::kF32},
    {"Cast", "to", std::nullopt},
    {"EyeLike", "dtype", std::nullopt},
    {"HammingWindow", "output_datatype", DType::kF32},
    {"HannWindow", "output_datatype", DType::kF32},
    {"MelWeightMatrix", "output_datatype", DType::kF32},
    {"Multinomial", "dtype", DType::kI32},
    {"RandomNormal", "dtype", DType::kF32},
    {"RandomNormalLike", "dtype", std::nullopt},
    {"RandomUniform", "dtype", DType::kF32},
    {"RandomUniformLike", "dtype", std::nullopt},
};
static_assert(std::ranges::is_sorted(kDTypeAttributes, {}, &DTypeAttribute::op));

std::optional<DType> dtype_from_attribute(const Inference& n, std::string_view op) {
  const auto row = std::ranges::lower_bound(kDTypeAttributes, op, {}, &DTypeAttribute::op);
  if (row == std::end(kDTypeAttributes) || row->op != op) return std::nullopt;
  const std::int64_t number = n.attr(row->attribute, 0);
  if (number != 0) return dtype_from_onnx(static_cast<int>(number));
  return row->otherwise ? row->otherwise : n.dtype(0);
}

const InferenceRule* find_rule(std::string_view op) {
  const std::span<const InferenceRule> families[] = {
      elementwise_rules(), view_rules(),   generator_rules(), index_rules(),
      reduce_rules(),      linear_rules(), window_rules(),    control_rules()};
  for (const auto& family : families) {
    const auto rule = std::ranges::lower_bound(family, op, {}, &InferenceRule::op);
    if (rule != family.end() && rule->op == op) return &*rule;
  }
  return nullptr;
}

template <class T>
const T* find_attr(const Node& node, std::string_view name) {
  const Attribute* attr = node.attr(name);
  return attr == nullptr ? nullptr : std::get_if<T>(&attr->value);
}

}  // namespace

Inference::Inference(const Model& model, const Schema& schema, const Node& node,
                     const std::vector<InferenceInput>& in, DTypeRule dtypes)
    : model_(model), schema_(schema), node_(node), in_(in), shapes_(node.out.size()) {
  const TypeBinding binding = check_node(schema, node, in, dtypes);
  for (std::size_t i = 0; i < node.out.size(); ++i) {
    dtypes_.push_back(binding.dtype_of(formal_at(schema.outputs, i)));
  }
  if (!dtypes_.empty() && !dtypes_[0]) dtypes_[0] = dtype_from_attribute(*this, schema.op);
}

const Dims* Inference::shape(std::size_t i) const {
  if (i >= in_.size() || in_[i].type == nullptr || !in_[i].type->shape) return nullptr;
  return &*in_[i].type->shape;
}

std::optional<DType> Inference::dtype(std::size_t i) const {
  if (i >= in_.size() || in_[i].type == nullptr) return std::nullopt;
  return in_[i].type->dtype;
}

const Tensor* Inference::known(std::size_t i) const {
  return i < in_.size() ? in_[i].known : nullptr;
}

std::optional<Ints> Inference::ints(std::size_t i) const {
  const Tensor* tensor = known(i);
  if (tensor == nullptr || !is_integer(tensor->dtype)) return std::nullopt;
  Ints values;
  for (std::int64_t k = 0; k < tensor->size(); ++k) values.push_back(tensor->int_at(k));
  return values;
}

std::optional<double> Inference::number(std::size_t i) const {
  const Tensor* tensor = known(i);
  if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
  return tensor->at(0);
}

const TensorType* Inference::type_of(ValueId id) const {
  const std::optional<TensorType>& type = model_.values[id].type;
  return type ? &*type : nullptr;
}

std::int64_t Inference::attr(std::string_view name, std::int64_t otherwise) const {
  const auto* value = find_attr<std::int64_t>(node_, name);
  return value != nullptr ? *value : otherwise;
}

std::string_view Inference::attr(std::string_view name, std::string_view otherwise) const {
  const auto* value = find_attr<std::string>(node_, name);
  return value != nullptr ? std::string_view(*value) : otherwise;
}

std::optional<Ints> Inference::attr_ints(std::string_view name) const {
  const auto* value = find_attr<Ints>(node_, name);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

const Tensor* Inference::attr_tensor(std::string_view name) const {
  return find_attr<Tensor>(node_, name);
}

const Graph* Inference::attr_graph(std::string_view name) const {
  const auto* value = find_attr<std::shared_ptr<Graph>>(node_, name);
  return value != nullptr ? value->get() : nullptr;
}

std::size_t Inference::axis(std::string_view name, std::int64_t otherwise, std::size_t rank) const {
  return from_front(attr(name, otherwise), rank);
}

std::size_t Inference::from_front(std::int64_t axis, std::size_t rank) const {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count) fail(fmt::format("axis {} is out of range", axis));
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

void Inference::set(std::size_t i, Dims shape) {
  if (i < shapes_.size()) shapes_[i] = std::move(shape);
}

void Inference::set_dtype(std::size_t i, DType dtype) {
  if (i < dtypes_.size()) dtypes_[i] = dtype;
}

void Inference::set_type(std::size_t i, const TensorType& type) {
  set_dtype(i, type.dtype);
  if (type.shape) set(i, *type.shape);
}

std::vector<std::optional<TensorType>> Inference::take() && {
  std::vector<std::optional<TensorType>> types(dtypes_.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (dtypes_[i]) types[i] = TensorType{*dtypes_[i], std::move(shapes_[i])};
  }
  return types;
}

void Inference::fail(std::string_view why) const {
  throw Error("BUG", fmt::format("{} (opset {}): {}", schema_.op, schema_.since, why))
      .note(describe(node_, in_));
}

Dim agreed(const Inference& n, const Dim& a, const Dim& b) {
  if (equal(a, b) == Truth::kNo) n.fail(fmt::format("sizes {} and {} differ", a.str(), b.str()));
  return a.is_static() ? a : b;
}

Dims broadcast(const Inference& n, const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  const std::size_t offset = longer.size() - shorter.size();
  Dims out = longer;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    Dim& size = out[offset + i];
    if (size == shorter[i] || shorter[i].is_one()) continue;
    size = size.is_one() ? shorter[i] : agreed(n, size, shorter[i]);
  }
  return out;
}

std::vector<std::optional<TensorType>> infer(const Model& model, const Schema& schema,
                                             const Node& node,
                                             const std::vector<InferenceInput>& in,
                                             DTypeRule dtypes) {
  Inference inference(model, schema, node, in, dtypes);
  if (const InferenceRule* rule = find_rule(schema.op)) rule->run(inference);
  return std::move(inference).take();
}

}  // namespace jaxport::onnx
