// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "onnx/ir.h"

namespace jaxport::explore {

// What a node computes, at one value for each symbolic size.
class Costs {
 public:
  // Symbols stand for 1.
  explicit Costs(const onnx::Model& model);

  std::int64_t elements(onnx::ValueId id) const;  // 0 when its shape is not known
  std::int64_t bytes(onnx::ValueId id) const;
  // Floating-point operations: two for each product and sum of matrices and windows, one for each
  // element of other arithmetic, none for what only moves data.
  std::int64_t flops(const onnx::Node& node) const;

 private:
  const Dims* shape(onnx::ValueId id) const;
  std::int64_t size(const Dim& dim) const;
  std::int64_t size(onnx::ValueId id, std::size_t axis) const;           // from the front
  std::int64_t size_from_end(onnx::ValueId id, std::size_t axis) const;  // 1 is the last
  std::int64_t products(const onnx::Node& node) const;

  const onnx::Model& model_;
  DimBindings ones_;
};

}  // namespace jaxport::explore
