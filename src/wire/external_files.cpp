// SPDX-License-Identifier: Apache-2.0
#include "wire/external_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace jaxport::wire {
namespace {

namespace fs = std::filesystem;

// The number that `text` is, or `otherwise` for a text that is empty.
std::uint64_t decimal(std::string_view text, std::uint64_t otherwise, const Decoder& message) {
  if (text.empty()) return otherwise;
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) {
    message.fail(fmt::format("external data has '{}' for a number", text));
  }
  return value;
}

bool is_inside(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

}  // namespace

SharedBytes ExternalFiles::find(const ExternalReference& reference, std::uint64_t size,
                                const Decoder& message) {
  const MappedFile& file = mapping(reference.location, message);
  const std::uint64_t offset = decimal(reference.offset, 0, message);
  const std::uint64_t length = decimal(reference.length, size, message);
  if (length != size) {
    message.fail(fmt::format("external data of {} bytes for a tensor of {}", length, size));
  }
  if (offset > file.size || size > file.size - offset) {
    message.fail(fmt::format("external data '{}' has {} bytes; a tensor needs {} bytes from {} on",
                             reference.location, file.size, size, offset),
                 "copy the complete data file beside the model; it may be truncated");
  }
  return {file.bytes, {reinterpret_cast<const char*>(file.bytes.get()) + offset, size}};
}

const MappedFile& ExternalFiles::mapping(std::string_view location, const Decoder& message) {
  if (const auto known = mappings_.find(location); known != mappings_.end()) return known->second;
  const fs::path relative(location);
  const bool climbs = std::find(relative.begin(), relative.end(), "..") != relative.end();
  std::error_code ignored;
  const fs::path home = folder_.empty() ? fs::path(".") : folder_;
  const fs::path folder = fs::weakly_canonical(home, ignored);
  const fs::path file = fs::weakly_canonical(home / relative, ignored);
  if (location.empty() || relative.is_absolute() || climbs || !is_inside(file, folder)) {
    message.fail(fmt::format("external data '{}' is outside the folder of the model", location),
                 "put the data file beside the model and give its bare name as location");
  }
  return mappings_.emplace(location, map_file(file, "external data")).first->second;
}

}  // namespace jaxport::wire
