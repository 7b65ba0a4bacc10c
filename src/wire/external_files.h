// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "wire/decoder.h"
#include "wire/file.h"

namespace jaxport::wire {

// Bytes and who keeps them alive.
struct SharedBytes {
  std::shared_ptr<const std::byte> owner;
  std::string_view bytes;
};

// The entries of TensorProto.external_data.
struct ExternalReference {
  std::string_view location, offset, length;
};

// Files beside a model, each mapped once. A model may name only files inside its own folder.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The bytes of a tensor that takes `size` of them. Error E052 through message.fail().
  bool empty() const { return mappings_.empty(); }  // whether none was asked for
  SharedBytes find(const ExternalReference& reference, std::uint64_t size, const Decoder& message);

 private:
  const MappedFile& mapping(std::string_view location, const Decoder& message);

  std::filesystem::path folder_;
  std::map<std::string, MappedFile, std::less<>> mappings_;  // by location
};

}  // namespace jaxport::wire
