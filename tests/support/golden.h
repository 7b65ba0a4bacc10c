// SPDX-License-Identifier: Apache-2.0
// Files of tests/golden, for tests that evaluate or mutate their programs.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace jaxport::golden {

// The .jir files of a folder of tests/golden ("raise"), sorted; not those of folders inside it.
std::vector<std::filesystem::path> files_of(std::string_view folder);
// Throws std::runtime_error when there is no such file.
std::string text_of(const std::filesystem::path& file);

// The functions of tests/golden/raise/rules/<rule>.jir, one text each. The first has the name of
// the rule, which must raise it. The others must not be raised and give a remark; their names say
// what is off.
struct RuleSamples {
  std::string sample;
  std::vector<std::string> near_misses;
};
RuleSamples samples_of(std::string_view rule);

}  // namespace jaxport::golden
