// SPDX-License-Identifier: Apache-2.0
// Spelling of names, numbers and tensors in .jir text: what the printer and the parser share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// dense<[1.5, 2.0, -inf]>: the elements in memory order, where they are few and have a readable
// form; dense<"0x…">: their bytes, two hexadecimal digits each.
void append_dense(std::string& out, const Tensor& tensor);
// The elements as a tensor; nullopt when one of them, or their count, is wrong.
std::optional<Tensor> tensor_from_list(DType dtype, const Shape& shape,
                                       const std::vector<std::string_view>& elements);
// The bytes of "0x…" as a tensor; nullopt when the digits or their count are wrong.
std::optional<Tensor> tensor_from_hex(DType dtype, const Shape& shape, std::string_view hex);

}  // namespace jaxport::front
