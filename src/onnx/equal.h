// SPDX-License-Identifier: Apache-2.0
// When two nodes or two constants may become one.
#pragma once

#include <cstdint>
#include <string_view>

#include "onnx/ir.h"

namespace jaxport::onnx {

// Equal nodes of this kind compute the same: no random op, no subgraph, no op of another domain.
bool is_repeatable(const Node& node);
// Op, inputs, attributes and number of outputs; names and origins do not count.
bool same_call(const Node& a, const Node& b);
std::uint64_t hash_call(const Node& node);  // equal for the same calls

constexpr std::int64_t kSmallElements = 64, kSmallBytes = 1024;
// Small constants are compared by content; larger ones would cost more than they save.
bool is_small(DType dtype, std::int64_t elements);
// A name is a promise to the reader: two constants with different names stay two.
bool names_agree(std::string_view a, std::string_view b);

}  // namespace jaxport::onnx
