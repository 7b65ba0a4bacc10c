// SPDX-License-Identifier: Apache-2.0
#include "onnx/attributes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace jaxport::onnx {
namespace {

template <class T>
const T* value_of(const Node& node, std::string_view name) {
  const Attribute* attribute = node.attr(name);
  return attribute == nullptr ? nullptr : std::get_if<T>(&attribute->value);
}

}  // namespace

std::int64_t int_attribute(const Node& node, std::string_view name, std::int64_t otherwise) {
  const auto* value = value_of<std::int64_t>(node, name);
  return value != nullptr ? *value : otherwise;
}

float float_attribute(const Node& node, std::string_view name, float otherwise) {
  const auto* value = value_of<float>(node, name);
  return value != nullptr ? *value : otherwise;
}

std::optional<Ints> ints_attribute(const Node& node, std::string_view name) {
  const auto* value = value_of<Ints>(node, name);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::string_view text_attribute(const Node& node, std::string_view name,
                                std::string_view otherwise) {
  const auto* value = value_of<std::string>(node, name);
  return value != nullptr ? std::string_view(*value) : otherwise;
}

void set_attribute(Node& node, Attribute attribute) {
  remove_attribute(node, attribute.name);
  const auto place = std::ranges::lower_bound(node.attrs, attribute.name, {}, &Attribute::name);
  node.attrs.insert(place, std::move(attribute));
}

void remove_attribute(Node& node, std::string_view name) {
  std::erase_if(node.attrs, [&](const Attribute& other) { return other.name == name; });
}

}  // namespace jaxport::onnx
