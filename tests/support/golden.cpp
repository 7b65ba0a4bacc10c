// SPDX-License-Identifier: Apache-2.0
#include "golden.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace jaxport::golden {
namespace {

// Without the comments before the first function. Those before the others end the text of the
// function above.
std::vector<std::string> functions_of(std::string_view text) {
  constexpr std::string_view kStart = "\nfunc @";
  std::vector<std::string> functions;
  for (std::size_t at = text.find(kStart); at != std::string_view::npos;) {
    const std::size_t next = text.find(kStart, at + 1);
    functions.emplace_back(text.substr(at + 1, next - at - 1));
    at = next;
  }
  return functions;
}

}  // namespace

std::vector<std::filesystem::path> files_of(std::string_view folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(JAXPORT_GOLDEN) / folder)) {
    if (entry.path().extension() == ".jir") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::string text_of(const std::filesystem::path& file) {
  const std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

RuleSamples samples_of(std::string_view rule) {
  const auto file =
      std::filesystem::path(JAXPORT_GOLDEN) / "raise" / "rules" / std::string(rule).append(".jir");
  std::vector<std::string> functions = functions_of(text_of(file));
  if (functions.empty()) throw std::runtime_error("no function in " + file.string());
  RuleSamples samples{std::move(functions.front()), {}};
  functions.erase(functions.begin());
  samples.near_misses = std::move(functions);
  return samples;
}

}  // namespace jaxport::golden
