// SPDX-License-Identifier: Apache-2.0
// What lowering knows about each op of raise/engine/ops.h: where it exists, in which layout it
// wants its operands, how it is emitted. An op, or a few that are alike, has one file in
// lower/macro/. Activations and recurrent cells are lowered like primitives, by rows/activation.cpp
// and rows/recurrent.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "axis/graph/graph.h"
#include "lower/layout/wishes.h"
#include "lower/lower.h"

namespace jaxport::lower {

struct Emission;

struct MacroRow {
  std::string_view name;
  axis::Kind kind = axis::Kind::kMacro;
  // The op of ONNX, where it is always the same: the target must run it in the node's dtype.
  std::string_view op = {};
  // What else must hold for this very node; nullptr: nothing.
  bool (*is_available)(const axis::Node& node, const Options& options) = nullptr;
  // The node as its op takes it; empty when it stays as it is.
  axis::Use (*rewritten)(const axis::Use& use, const Options& options) = nullptr;

  // --- of kMacro; the others are emitted like all of their kind
  void (*emit)(Emission& e, const axis::Node& node) = nullptr;
  // nullptr: operands are wanted as the result is.
  MaybeWish (*wish)(const axis::Node& node, std::size_t operand, const MaybeWish& own) = nullptr;
  // Labels of the result that have no role may be cut (splits.h).
  bool treats_labels_alike = false;
  // It takes no operand without a batch dim.
  bool needs_batch_dim = false;
};

// nullptr for an op that is always decomposed, and for nodes that are no such op.
const MacroRow* find_macro(const axis::Node& node);
// Whether the target has an op for the node; where it has none, the decomposition is lowered.
bool is_available(const axis::Node& node, const Options& options);

// The row of each op. An op is declared and listed here and nowhere else.
MacroRow attention_macro();
MacroRow eye_macro();
MacroRow log_softmax_macro();
MacroRow logsumexp_macro();
MacroRow norm_macro();
MacroRow partial_rope_macro();
MacroRow resize_macro();
MacroRow rope_macro();
MacroRow softmax_macro();
inline std::vector<MacroRow> macros() {
  return {attention_macro(), eye_macro(),  log_softmax_macro(),
          logsumexp_macro(), norm_macro(), partial_rope_macro(),
          resize_macro(),    rope_macro(), softmax_macro()};
}
bool is_activation_available(const axis::Node& node, const Options& options);
bool is_recurrent_available(const axis::Node& node, const Options& options);

// --- what the files share

// Whether the target runs the op on values of the node's dtype. Floats narrower than f32 are
// computed in f32 where they have no kernel.
bool has_op(std::string_view op, const axis::Node& node, const Options& options);
// ONNX keeps numbers such as the epsilon of a norm in f32; those of an f64 node must fit.
bool fits_attribute(double value, DType dtype);

// An operand over labels of the node, as the store of values takes it.
inline axis::Edge edge(const axis::Use& operand) { return {operand.node, operand.labels}; }
axis::Labels joined(axis::Labels first, const axis::Labels& second);

}  // namespace jaxport::lower
