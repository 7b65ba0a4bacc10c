// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "onnx/ir.h"
#include "wire/decoder.h"

namespace jaxport::wire {

// Reads TypeProtos. Each size that a file leaves open becomes a symbol of its own: "?0", "?1", …
class TypeReader {
 public:
  explicit TypeReader(DimScope& dims) : dims_(dims) {}

  // nullopt for what is not a tensor (sequences, maps, optionals) or has an element type that
  // jaxport does not know.
  std::optional<onnx::TensorType> read(Decoder message);

 private:
  std::optional<onnx::TensorType> read_tensor_type(Decoder message);
  Dims read_shape(Decoder message);
  Dim read_dim(Decoder message);

  DimScope& dims_;
  int unknown_ = 0;  // how many so far
};

}  // namespace jaxport::wire
