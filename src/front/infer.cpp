// SPDX-License-Identifier: Apache-2.0
#include "front/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "front/params.h"
#include "jaxport/error.h"

namespace jaxport::front {
namespace {

std::vector<InferenceRow> all_rows() {
  std::vector<InferenceRow> rows;
  for (const auto& family :
       {index_types(), pointwise_types(), reduce_types(), shape_types(), window_types()}) {
    rows.insert(rows.end(), family.begin(), family.end());
  }
  std::ranges::sort(rows, {}, &InferenceRow::primitive);
  return rows;
}

const InferenceRow* find_inference(std::string_view primitive) {
  static const std::vector<InferenceRow> rows = all_rows();
  const auto row = std::ranges::lower_bound(rows, primitive, {}, &InferenceRow::primitive);
  return row != rows.end() && row->primitive == primitive ? &*row : nullptr;
}

// Whether two sizes differ for some values of the symbols. Nobody looks where constraints say which
// values there are.
bool differ_somewhere(const Dim& a, const Dim& b) {
  const DimScope& scope = *(a.is_static() ? b : a).expr()->scope;
  if (!scope.constraints().empty()) return false;
  std::vector<std::string> symbols;
  for (const Dim& size : {a, b}) collect_symbols(size, symbols);
  const auto count = static_cast<std::int64_t>(symbols.size());
  for (const bool rises : {true, false}) {  // each symbol is once above the others
    DimBindings bindings;
    for (std::int64_t i = 0; i < count; ++i) {
      bindings.emplace(symbols[i], rises ? 2 + 13 * i : 101 + 13 * (count - i));
    }
    if (evaluate(a, bindings) != evaluate(b, bindings)) return true;
  }
  return false;
}

bool may_be_equal(const Dims& a, const Dims& b) {
  return std::ranges::equal(a, b, may_always_be_equal);
}

}  // namespace

bool may_always_be_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.is_static() && b.is_static()) return false;
  const Truth known = equal(a, b);
  if (known != Truth::kUnknown) return known == Truth::kYes;
  return !a.is_static() && !b.is_static() && !differ_somewhere(a, b);
}

bool may_be_equal(const Type& a, const Type& b) {
  return a.dtype == b.dtype && may_be_equal(a.shape, b.shape);
}

void check_types(const Function& function, const Eqn& eqn) {
  if (const InferenceRow* row = find_inference(eqn.primitive)) row->check({function, eqn});
}

void Inference::fail(std::string_view why) const {
  throw Error("E032", fmt::format("primitive '{}': {}", eqn.primitive, why));
}

void Inference::require_counts(std::size_t operands, std::size_t results) const {
  require(eqn.in.size() == operands && eqn.out.size() == results,
          "the numbers of operands and results do not fit");
}

void Inference::require_one_dtype(std::size_t first) const {
  for (std::size_t i = first + 1; i < operands(); ++i) {
    if (in(i).dtype == in(first).dtype) continue;
    fail(fmt::format("operands of dtypes {} and {} do not fit", name_of(in(first).dtype),
                     name_of(in(i).dtype)));
  }
}

void Inference::require_equal(const Dim& a, const Dim& b) const {
  if (may_always_be_equal(a, b)) return;
  fail(fmt::format("sizes {} and {} of one dim differ", a.str(), b.str()));
}

void Inference::require_axes(std::span<const std::int64_t> axes, std::size_t rank) const {
  std::vector<bool> seen(rank);
  for (const std::int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) {
      fail(fmt::format("axis {} is out of range", axis));
    }
    if (seen[axis]) fail(fmt::format("axis {} appears twice", axis));
    seen[axis] = true;
  }
}

std::size_t Inference::axis(std::string_view param, std::size_t rank) const {
  const std::int64_t value = get_int(eqn, param);
  require_axes({&value, 1}, rank);
  return static_cast<std::size_t>(value);
}

void Inference::gives(DType dtype, const Dims& shape, std::size_t i) const {
  const Type& declared = out(i);
  if (declared.dtype == dtype && may_be_equal(declared.shape, shape)) return;
  fail(fmt::format("the result is declared as {}, but is {}", to_string(declared),
                   to_string(Type{dtype, shape})));
}

}  // namespace jaxport::front
