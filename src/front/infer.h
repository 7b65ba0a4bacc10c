// SPDX-License-Identifier: Apache-2.0
// The types that JAX gives the results of an equation, from its operands and parameters.
#pragma once

#include <span>
#include <string_view>

#include "front/ir.h"
#include "front/params.h"

namespace jaxport::front {

// Error E032 when operands or parameters do not fit each other, or give other results than the
// equation declares; E031 for a parameter that is missing. What is not known for sure passes: other
// primitives, and sizes that JAX may know to be equal.
void check_types(const Function& function, const Eqn& eqn);

// Whether JAX may know two sizes to be equal for all values of the symbols: no values are found at
// which they differ. Of floordiv, mod, max and min it may know more than we can show.
bool may_always_be_equal(const Dim& a, const Dim& b);

// Same dtype, and sizes that may always be equal.
bool may_be_equal(const Type& a, const Type& b);

// One equation, for the functions of the tables below.
class Inference {
 public:
  Inference(const Function& in_function, const Eqn& equation)
      : eqn(equation), function_(in_function) {}

  const Eqn& eqn;

  std::size_t operands() const { return eqn.in.size(); }
  std::size_t results() const { return eqn.out.size(); }
  const Type& in(std::size_t i) const { return function_.type(eqn.in[i]); }
  const Dims& shape(std::size_t i = 0) const { return in(i).shape; }
  const Type& out(std::size_t i = 0) const { return function_.type(eqn.out[i]); }

  void require(bool fact, std::string_view why) const {
    if (!fact) fail(why);
  }
  void require_counts(std::size_t operands, std::size_t results = 1) const;
  void require_one_dtype(std::size_t first = 0) const;  // of the operands from `first` on
  void require_equal(const Dim& a, const Dim& b) const;
  // Dims of an array of that rank, none twice.
  void require_axes(std::span<const std::int64_t> axes, std::size_t rank) const;
  std::size_t axis(std::string_view param, std::size_t rank) const;

  // What result i is.
  void gives(DType dtype, const Dims& shape, std::size_t i = 0) const;
  void gives(const Type& type, std::size_t i = 0) const { gives(type.dtype, type.shape, i); }

  [[noreturn]] void fail(std::string_view why) const;

 private:
  const Function& function_;
};

// With elements added, or removed, at the ends and between neighbours.
Dims padded_shape(const Dims& shape, const Paddings& padding);

struct InferenceRow {
  std::string_view primitive;
  void (*check)(const Inference&);
};
std::span<const InferenceRow> index_types();      // infer_index.cpp
std::span<const InferenceRow> pointwise_types();  // infer_pointwise.cpp
std::span<const InferenceRow> reduce_types();     // infer_reduce.cpp
std::span<const InferenceRow> shape_types();      // infer_shape.cpp
std::span<const InferenceRow> window_types();     // infer_window.cpp

}  // namespace jaxport::front
