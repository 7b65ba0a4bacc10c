// SPDX-License-Identifier: Apache-2.0
#include "wire/type_reader.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "wire/field.h"
#include "wire/wire.h"

namespace jaxport::wire {

// The text of a symbolic size is kept as one symbol: whoever wrote it may not follow our grammar.
Dim TypeReader::read_dim(Decoder message) {
  std::optional<Dim> dim;
  while (message.next()) {
    switch (message.field()) {
      case field::dimension::dim_value:
        // Some exporters write -1 for a size that is left open.
        if (const std::int64_t size = message.integer(); size >= 0) dim = size;
        break;
      case field::dimension::dim_param:
        if (std::string_view text = message.bytes(); !text.empty()) dim = dims_.symbol(text);
        break;
      default:
        message.skip();
    }
  }
  return dim ? *dim : dims_.symbol(fmt::format("{}{}", kUnknownDim, unknown_++));
}

Dims TypeReader::read_shape(Decoder message) {
  Dims shape;
  while (message.next()) {
    if (message.field() == field::shape::dim) {
      const auto index = static_cast<std::int64_t>(shape.size());
      shape.push_back(read_dim(message.message("dim", index)));
    } else {
      message.skip();
    }
  }
  return shape;
}

std::optional<onnx::TensorType> TypeReader::read_tensor_type(Decoder message) {
  std::optional<DType> dtype;
  std::optional<Dims> shape;
  while (message.next()) {
    switch (message.field()) {
      case field::tensor_type::elem_type:
        dtype = dtype_from_onnx(static_cast<int>(message.integer()));
        break;
      case field::tensor_type::shape:
        shape = read_shape(message.message("shape"));
        break;
      default:
        message.skip();
    }
  }
  if (!dtype) return std::nullopt;
  return onnx::TensorType{*dtype, std::move(shape)};
}

std::optional<onnx::TensorType> TypeReader::read(Decoder message) {
  std::optional<onnx::TensorType> type;
  while (message.next()) {
    if (message.field() == field::type::tensor_type) {
      type = read_tensor_type(message.message("tensor_type"));
    } else {
      message.skip();
    }
  }
  return type;
}

}  // namespace jaxport::wire
