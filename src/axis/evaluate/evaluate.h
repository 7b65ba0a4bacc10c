// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "axis/graph/graph.h"
#include "eval/eval.h"

namespace jaxport::axis {

Shape bound_sizes(const Dims& sizes, const DimBindings& bindings);

// A tensor addressed by labels: the stride of each label, 0 for those it lacks.
struct Strided {
  Tensor base;
  std::vector<std::int64_t> strides;  // by label
  std::vector<bool> present;          // by label
};
// Error E041 when the sizes of the labels do not fit the tensor.
Strided by_label(const Tensor& tensor, const Pattern& axes, const Shape& sizes);

// Reads over `order`. Labels that the tensor lacks have size 1, or their full size with `repeated`.
Tensor read(const Strided& operand, const Labels& order, const Shape& sizes, bool repeated);

Tensor with_shape(Tensor tensor, Shape shape);  // the same bytes

// The value of one node for the values of its operands, dense with one dim for each result axis.
// Not for inputs and macros.
Tensor evaluate_node(const Node& node, std::span<const Tensor> operands,
                     const DimBindings& bindings);
// The same for all results of a kPrim node at once.
std::vector<Tensor> evaluate_prim(const Node& node, std::span<const Tensor> operands,
                                  const DimBindings& bindings,
                                  const eval::RunRegion& run_region = {});

// The outputs of a program without inputs. Bodies of loops and branches run as they were traced:
// lowering rewrites their regions into primitives that only it knows.
std::vector<Tensor> evaluate_constants(const Program& program, Expand expand);

}  // namespace jaxport::axis
