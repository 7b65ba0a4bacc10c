// SPDX-License-Identifier: Apache-2.0
#include "lower/macro/macro.h"

#include <algorithm>

#include "lower/rows/ctx.h"

namespace jaxport::lower {
namespace {

using axis::Kind;
using axis::Label;
using axis::Labels;

std::vector<MacroRow> all_rows() {
  std::vector<MacroRow> rows = macros();
  for (const Row& row : activation_rows()) {
    rows.push_back(
        {.name = row.primitive, .kind = Kind::kPointwise, .is_available = is_activation_available});
  }
  for (const Row& row : recurrent_rows()) {
    rows.push_back(
        {.name = row.primitive, .kind = Kind::kPrim, .is_available = is_recurrent_available});
  }
  std::ranges::sort(rows, {}, &MacroRow::name);
  return rows;
}

}  // namespace

const MacroRow* find_macro(const axis::Node& node) {
  static const std::vector<MacroRow> kRows = all_rows();
  const auto found = std::ranges::lower_bound(kRows, node.name, {}, &MacroRow::name);
  return found != kRows.end() && node.is(found->kind, found->name) ? &*found : nullptr;
}

bool is_available(const axis::Node& node, const Options& options) {
  const MacroRow* macro = find_macro(node);
  return macro && (!macro->is_available || macro->is_available(node, options)) &&
         (macro->op.empty() || has_op(macro->op, node, options));
}

bool has_op(std::string_view op, const axis::Node& node, const Options& options) {
  const DType dtype = node.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  return target::runs(options.target, op, options.opset, dtype);
}

bool fits_attribute(double value, DType dtype) {
  return dtype != DType::kF64 || static_cast<double>(static_cast<float>(value)) == value;
}

Labels joined(Labels first, const Labels& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace jaxport::lower
