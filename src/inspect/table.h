// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace jaxport::inspect {

enum class Align { kLeft, kRight };

// Rows as text, each column as wide as its widest cell. Columns beyond `alignment` are
// left-aligned.
std::string aligned(const std::vector<std::vector<std::string>>& rows,
                    const std::vector<Align>& alignment = {});

std::string with_separators(std::size_t number);  // "1,234,567"

}  // namespace jaxport::inspect
