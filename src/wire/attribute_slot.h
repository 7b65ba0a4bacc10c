// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "onnx/ir.h"
#include "wire/decoder.h"

namespace jaxport::wire {

// An attribute while its fields arrive. The declared type may come before or after the value, and a
// value that is zero or empty need not come at all.
class AttributeSlot {
 public:
  std::string name;
  std::int64_t type = 0;  // AttributeProto.AttributeType

  // The value as a T, for the field at hand; fails when the attribute has a value of another kind.
  template <class T>
  T& as(const Decoder& message) {
    if (!std::exchange(has_value_, true)) value_.emplace<T>();
    if (T* value = std::get_if<T>(&value_)) return *value;
    message.fail("an attribute has values of two kinds");
  }

  onnx::Attribute finish(const Decoder& message) &&;

 private:
  decltype(onnx::Attribute::value) value_;
  bool has_value_ = false;
};

}  // namespace jaxport::wire
