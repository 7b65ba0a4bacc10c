// SPDX-License-Identifier: Apache-2.0
// Attributes of nodes by name, also of nodes that others wrote: one of another type counts as
// absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "onnx/ir.h"

namespace jaxport::onnx {

std::int64_t int_attribute(const Node& node, std::string_view name, std::int64_t otherwise);
float float_attribute(const Node& node, std::string_view name, float otherwise);
std::optional<Ints> ints_attribute(const Node& node, std::string_view name);
std::string_view text_attribute(const Node& node, std::string_view name,
                                std::string_view otherwise);
void set_attribute(Node& node, Attribute attribute);  // keeps them sorted
void remove_attribute(Node& node, std::string_view name);

}  // namespace jaxport::onnx
