// SPDX-License-Identifier: Apache-2.0
// front -> axis, one equation at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "axis/translate/inliner.h"
#include "front/params.h"

namespace jaxport::axis {

// An equation with its operands as views. Parameters come from users' files: everything read here
// is checked.
struct Translation {
  Graph& graph;
  Inliner& inliner;  // of the function around the equation
  const front::Function& function;
  const front::Eqn& eqn;
  std::vector<View> in;

  const front::Type& in_type(std::size_t i) const { return function.type(eqn.in[i]); }
  const front::Type& out_type(std::size_t i = 0) const { return function.type(eqn.out[i]); }
  DType dtype() const { return out_type().dtype; }
  const Dims& in_shape(std::size_t i = 0) const { return in_type(i).shape; }
  const Dims& out_shape() const { return out_type().shape; }
  const Preferences& preferences() const { return *inliner.program().preferences; }

  std::size_t axis(std::string_view name, std::size_t rank) const;  // checked: 0 <= axis < rank
  std::vector<std::size_t> axes(std::string_view name, std::size_t rank) const;  // and no repeats
  std::vector<std::size_t> axes(const Ints& values, std::size_t rank) const;

  // Error E032 "primitive 'slice': <why>" unless the fact holds.
  void require(bool fact, std::string_view why) const;
  // At least `operands` operands (further ones are symbolic sizes) and one result.
  void require_operands(std::size_t operands) const;
};

// The results of an equation, or nullopt when it stays a positional primitive.
using Views = std::optional<std::vector<View>>;
inline Views one(View view) { return std::vector<View>{std::move(view)}; }

struct TranslationRow {
  std::string_view primitive;
  Views (*translate)(Translation&);
};

// The families, each sorted by primitive.
std::span<const TranslationRow> shape_translations();       // shape.cpp
std::span<const TranslationRow> index_translations();       // index.cpp
std::span<const TranslationRow> math_translations();        // math.cpp
std::span<const TranslationRow> control_translations();     // control.cpp
std::span<const TranslationRow> collective_translations();  // collective.cpp
std::span<const TranslationRow> window_translations();      // window.cpp
std::span<const TranslationRow> update_translations();      // update.cpp
Views translate_pointwise(Translation& t);                  // for all rows of pointwise.h
// Inlines a call; one that is marked to become a function stays a node with a region.
Views translate_call(Translation& t, const front::CallRow& call);  // control.cpp
// Whether a primitive is more than a positional node: a call that is inlined, or a row above.
bool is_translated(std::string_view primitive);
// A node with positional borders, for everything else.
Views translate_prim(Translation& t, std::vector<Program*> regions = {});

}  // namespace jaxport::axis
