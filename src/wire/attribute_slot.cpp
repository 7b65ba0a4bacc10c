// SPDX-License-Identifier: Apache-2.0
#include "wire/attribute_slot.h"

#include <fmt/format.h>

#include <vector>

#include "wire/field.h"

namespace jaxport::wire {
namespace {

using Type = field::AttributeType;
using Value = decltype(onnx::Attribute::value);

// In the order of Attribute::value's alternatives.
constexpr Type kTypes[] = {Type::kInt,  Type::kFloat,  Type::kString,  Type::kTensor,
                           Type::kInts, Type::kFloats, Type::kStrings, Type::kGraph};
static_assert(std::size(kTypes) == std::variant_size_v<Value>);

}  // namespace

onnx::Attribute AttributeSlot::finish(const Decoder& message) && {
  if (name.empty()) message.fail("an attribute has no name");
  const auto declared = static_cast<Type>(type);
  if (!has_value_) {
    switch (declared) {
      case Type::kInt:
        value_ = std::int64_t{0};
        break;
      case Type::kFloat:
        value_ = 0.0f;
        break;
      case Type::kString:
        value_ = std::string();
        break;
      case Type::kInts:
        value_ = std::vector<std::int64_t>();
        break;
      case Type::kFloats:
        value_ = std::vector<float>();
        break;
      case Type::kStrings:
        value_ = std::vector<std::string>();
        break;
      default:
        message.fail(fmt::format("attribute '{}' has a kind that jaxport does not support", name));
    }
  } else if (declared != Type::kUndefined && declared != kTypes[value_.index()]) {
    message.fail(fmt::format("attribute '{}' has another kind than it declares", name));
  }
  return {std::move(name), std::move(value_)};
}

}  // namespace jaxport::wire
