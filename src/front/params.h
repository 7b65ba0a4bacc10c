// SPDX-License-Identifier: Apache-2.0
// The parameters of equations, read by type: one function for one value, one record for a primitive
// with several. What is missing or of another type is Error E031, which names the primitive and the
// parameter. Whether parameters fit the operands is asked where the operands are used.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "front/ir.h"

namespace jaxport::front {

bool has(const Eqn& eqn, std::string_view name);  // present and not None
bool get_bool(const Eqn& eqn, std::string_view name);
std::int64_t get_int(const Eqn& eqn, std::string_view name);
double get_double(const Eqn& eqn, std::string_view name);
std::string get_string(const Eqn& eqn, std::string_view name);  // strings and enums
DType get_dtype(const Eqn& eqn, std::string_view name);
Ints get_ints(const Eqn& eqn, std::string_view name);
Dim get_dim(const Eqn& eqn, std::string_view name);    // an integer or a symbolic dim
Dims get_dims(const Eqn& eqn, std::string_view name);  // integers and symbolic dims
const Region& get_region(const Eqn& eqn, std::string_view name);

// --- calls

// A primitive that only calls a nested jaxpr, and the parameter that holds it.
struct CallRow {
  std::string_view primitive, region;
};
std::span<const CallRow> calls();  // sorted by primitive
const CallRow* find_call(std::string_view primitive);

// A call that jaxport.onnx_function marked: it becomes a function of the model. The mark is the
// name of the jitted function, which all transformations of JAX keep:
// "onnx_function:custom:MLPBlock", with ":shares" at the end where calls that differ in their
// weights only share one function.
struct FunctionMark {
  std::string domain, name;
  bool shares = false;
};
std::optional<FunctionMark> function_mark(const Eqn& eqn);  // nullopt: a call like any other

// --- control flow

struct CondParams {
  std::vector<Region> branches;  // at least one
  static CondParams read(const Eqn& eqn);
};

// Operands: constants, carry, xs. Results: carry, ys.
struct ScanParams {
  std::size_t consts, carries;
  Dim length;
  bool reverse;
  Region body;
  std::size_t first_x() const { return consts + carries; }
  static ScanParams read(const Eqn& eqn);
};

// Operands: constants of the condition, constants of the body, carry. Results: carry.
struct WhileParams {
  std::size_t cond_consts, body_consts;
  Region cond, body;
  std::size_t consts() const { return cond_consts + body_consts; }
  static WhileParams read(const Eqn& eqn);
};

// custom_linear_solve. Operands: constants of each of four functions, then the right-hand sides.
struct LinearSolveParams {
  std::size_t first_const, solve_consts, consts;  // those of `solve`, and how many there are in all
  Region solve;
  static LinearSolveParams read(const Eqn& eqn);
};

// --- indexing

// What gather and scatter share: GatherDimensionNumbers and ScatterDimensionNumbers under common
// names. An index vector names a window of the operand.
struct IndexParams {
  Ints window_dims;       // of the result or of the updates: offset_dims, update_window_dims
  Ints dropped;           // of the operand: collapsed_slice_dims, inserted_window_dims
  Ints map;               // the operand dim of each entry of an index vector
  Ints operand_batching;  // operand dims that run together …
  Ints index_batching;    // … with these dims of the indices
  std::string mode;       // "clip", "fill_or_drop", …; lowering says "inside"; "" when not given
};

struct GatherParams : IndexParams {
  Dims slice_sizes;
  Attr fill_value;  // a number, or None for JAX's choice
  static GatherParams read(const Eqn& eqn);
  Attrs attrs() const;
  Tensor fill(DType dtype) const;  // what a window outside of the operand is filled with
};

struct ScatterParams : IndexParams {
  Region update;  // new elements from the old ones and the updates; nullptr: the primitive says how
  static ScatterParams read(const Eqn& eqn);
  Attrs attrs() const;
};

// --- windows

// Elements added (or, if negative, removed) at both ends of a dim and between neighbours.
struct Padding {
  Dim low, high;
  std::int64_t interior = 0;
};
using Paddings = std::vector<Padding>;  // by dim
bool is_static(const Paddings& paddings);

// Windows that slide over an operand. `padding` has the dilation of the operand as interior.
struct WindowParams {
  Ints size, stride, dilation;
  Paddings padding;
  bool is_dilated() const;  // the window or the operand
  static WindowParams read(const Eqn& eqn);
};

struct ConvParams {
  // The dims of the arrays in the order batch, features, space; of rhs out features, in features,
  // space.
  Ints lhs, rhs, out;
  Ints stride, rhs_dilation;
  Paddings padding;  // of the spatial dims, with lhs_dilation as interior
  Dim feature_groups;
  std::int64_t batch_groups;
  static ConvParams read(const Eqn& eqn);
};

// An equation on windows with other padding, and with the operand's dilation of `padding`.
void set_padding(Eqn& eqn, const Paddings& padding);

struct PadParams {
  Paddings config;
  static PadParams read(const Eqn& eqn);
  Attrs attrs() const;
};

struct SliceParams {
  Dims start, limit;
  Ints stride;
  static SliceParams read(const Eqn& eqn);
};

// --- reductions and the like

struct DotParams {
  Ints lhs_contract, rhs_contract, lhs_batch, rhs_batch;  // paired
  static DotParams read(const Eqn& eqn);
  Attrs attrs() const;
};

// reduce_sum and its kin, argmax and argmin; reduce has a function.
struct ReduceParams {
  Ints axes;
  Region combine;  // nullptr: the primitive says how
  static ReduceParams read(const Eqn& eqn);
};

// psum and its kin: the positions that vmap put into `axes`, without the names of mesh axes.
struct CollectiveParams {
  Ints axes;
  static CollectiveParams read(const Eqn& eqn);
};

struct CumulativeParams {
  std::int64_t axis;
  bool reverse;
  static CumulativeParams read(const Eqn& eqn);
};

struct SortParams {
  std::int64_t axis;
  std::size_t keys;  // leading operands that decide the order
  static SortParams read(const Eqn& eqn);
};

}  // namespace jaxport::front
