// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jaxport {

// Foreign text made fit for a message: one line of valid UTF-8, control characters and stray bytes
// as \xNN, cut with "…" after about `limit` bytes.
std::string excerpt(std::string_view text, std::size_t limit = 80);

// Length of the valid UTF-8 character at the start of `text`; 0 when there is none.
std::size_t utf8_length(std::string_view text);

}  // namespace jaxport
