// SPDX-License-Identifier: Apache-2.0
// What the evaluation of one primitive sees, and the tables of all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dim/dim.h"
#include "eval/eval.h"
#include "front/params.h"
#include "jaxport/error.h"
#include "support/tensor.h"

namespace jaxport::eval {

using Results = std::vector<Tensor>;

// One equation with concrete operands. Parameters come from users' files: everything read here is
// checked, so that an evaluation can trust operand counts, axes and sizes it has asked for.
struct Call {
  const front::Eqn& eqn;
  std::span<const Tensor> in;
  std::span<const front::Type> out;
  const DimBindings& bindings;
  const RunRegion& run_region;  // may be empty

  const Shape& shape(std::size_t operand) const { return in[operand].shape; }
  std::int64_t rank(std::size_t operand) const { return std::ssize(in[operand].shape); }
  DType out_dtype(std::size_t result = 0) const { return out[result].dtype; }
  Shape out_shape(std::size_t result = 0) const;  // symbolic dims through the bindings

  bool has(std::string_view name) const { return front::has(eqn, name); }
  std::string text(std::string_view name) const { return front::get_string(eqn, name); }
  // Sizes, with symbolic dims through the bindings.
  std::int64_t integer(std::string_view name) const { return bound(front::get_dim(eqn, name)); }
  Ints integers(std::string_view name) const { return bound(front::get_dims(eqn, name)); }
  std::int64_t bound(const Dim& size) const;
  Ints bound(const Dims& sizes) const;
  // Axes, checked: 0 <= axis < rank, no repeats.
  std::int64_t axis(std::string_view name, std::int64_t rank) const;
  Ints axes(std::string_view name, std::int64_t rank) const;
  const Ints& checked(const Ints& axes, std::int64_t rank) const;

  // E041 "primitive 'pad': <why>" unless the fact holds.
  void require(bool fact, std::string_view why) const {
    if (!fact) fail(why);
  }
  void require_counts(std::size_t operands, std::size_t results) const;
  [[noreturn]] void fail(std::string_view why) const;
  Error no_dtype(DType dtype) const;  // E040: no evaluation for this dtype
};

struct Row {
  std::string_view primitive;
  Results (*apply)(const Call&);
};

// The families, each sorted by primitive; table.cpp lists them.
std::span<const Row> pointwise_rows();
std::span<const Row> math_rows();
std::span<const Row> convert_rows();
std::span<const Row> reduce_rows();
std::span<const Row> window_rows();
std::span<const Row> cumulative_rows();
std::span<const Row> shape_rows();
std::span<const Row> contract_rows();
std::span<const Row> conv_rows();
std::span<const Row> index_rows();
std::span<const Row> scatter_rows();
std::span<const Row> sort_rows();
std::span<const Row> control_rows();
std::span<const Row> fold_rows();

const Row* call_row();  // for all of front::calls()

const Row* find_row(std::string_view primitive);  // nullptr when unknown

}  // namespace jaxport::eval
