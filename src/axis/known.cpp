// SPDX-License-Identifier: Apache-2.0
#include "axis/known.h"

#include <algorithm>

#include "axis/size_value.h"

namespace jaxport::axis {

std::optional<Dim> known_start(const Graph& graph, const Use& use, const Dim& size,
                               const Dim& count) {
  if (count == size) return Dim(0);
  const auto start = size_value(graph, use);
  if (!start) return std::nullopt;
  const Dim last = size - count;
  if (less_equal(*start, 0) == Truth::kYes) return Dim(0);
  if (less_equal(last, *start) == Truth::kYes) return last;
  const bool inside =
      less_equal(0, *start) == Truth::kYes && less_equal(*start, last) == Truth::kYes;
  return inside ? start : std::nullopt;
}

std::optional<Progression> known_progression(Graph& graph, const Use& use) {
  const Node& node = *use.node;
  if (!is_integer(node.dtype) || use.flat().size() != 1) return std::nullopt;
  if (node.kind == Kind::kIota) return Progression{0, 1};
  if (!node.is(Kind::kPointwise, "add") && !node.is(Kind::kPointwise, "mul")) return std::nullopt;
  const auto by = graph.scalar_value(graph.child(use, 1));
  auto found = by ? known_progression(graph, graph.child(use, 0)) : std::nullopt;
  if (!found) return std::nullopt;
  const auto number = static_cast<std::int64_t>(*by);
  if (node.name == "add") return Progression{found->start + number, found->step};
  return Progression{found->start * number, found->step * number};
}

DimensionNumbers::DimensionNumbers(const Translation& t) : t_(t) {
  const front::Attr* numbers = front::find(t.eqn.attrs, "dimension_numbers");
  record_ = numbers ? numbers->get_if<front::Record>() : nullptr;
  t.require(record_ != nullptr, "'dimension_numbers' is missing");
}

Ints DimensionNumbers::ints(std::string_view field) const {
  const auto found =
      std::ranges::find(record_->fields, field, &std::pair<std::string, front::Attr>::first);
  t_.require(found != record_->fields.end(), "a field of 'dimension_numbers' is missing");
  const auto* list = found->second.get_if<front::List>();
  t_.require(list != nullptr, "a field of 'dimension_numbers' is no list");
  Ints values;
  for (const front::Attr& item : *list) {
    const auto* value = item.get_if<std::int64_t>();
    t_.require(value != nullptr, "a field of 'dimension_numbers' has an entry that is no integer");
    values.push_back(*value);
  }
  return values;
}

}  // namespace jaxport::axis
