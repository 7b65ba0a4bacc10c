// SPDX-License-Identifier: Apache-2.0
// Spelling of names, numbers and tensors in .jir text: what the printer and the parser share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "support/tensor.h"

namespace jaxport::front {

// Letters, digits, "_", "." and "-": names of these stand bare, others in quotes.
bool is_name_char(char c);
void append_name(std::string& out, std::string_view name);
void append_quoted(std::string& out, std::string_view text);

// Words that are literals by themselves: true, none, inf, dtype names, …
bool is_reserved(std::string_view word);

std::string double_text(double value);  // reads back exactly and never as an integer
std::optional<double> double_from_text(std::string_view text);

// A readable scalar that scalar_from_text() turns into the same bytes; "" for other tensors.
std::string scalar_text(const Tensor& tensor);
std::optional<Tensor> scalar_from_text(DType dtype, std::string_view text);

// dense<"0x…">: the bytes in memory order, two hexadecimal digits each.
void append_dense(std::string& out, const Tensor& tensor);
// The bytes of "0x…" as a tensor; nullopt when the digits or their count are wrong.
std::optional<Tensor> tensor_from_hex(DType dtype, const Shape& shape, std::string_view hex);

}  // namespace jaxport::front
