// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "support/tensor.h"
#include "wire/decoder.h"
#include "wire/external_files.h"

namespace jaxport::wire {

struct NamedTensor {
  std::string_view name;
  Tensor tensor;
};

// Reads TensorProtos. Their bytes stay where they are when they can be used there.
class TensorReader {
 public:
  // `owner` keeps the bytes of the model alive; external data is looked up in `folder`.
  TensorReader(std::shared_ptr<const std::byte> owner, std::filesystem::path folder)
      : owner_(std::move(owner)), external_(std::move(folder)) {}

  // Misaligned bytes of at most `largest_copy` are copied, so that elements can be read in place.
  bool has_external_data() const { return !external_.empty(); }
  NamedTensor read(Decoder message, std::size_t largest_copy);

 private:
  std::shared_ptr<const std::byte> owner_;
  ExternalFiles external_;
};

// StringStringEntryProto
std::pair<std::string_view, std::string_view> read_entry(Decoder message);

}  // namespace jaxport::wire
