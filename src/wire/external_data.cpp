// SPDX-License-Identifier: Apache-2.0
#include "wire/external_data.h"

#include <span>

#include "wire/tensor_bytes.h"

namespace jaxport::wire {
namespace {

// Linux maps whole pages of 4 KiB, Windows units of 64 KiB; the latter only pays for large tensors.
std::uint64_t alignment(std::uint64_t bytes) {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;
  return bytes >= kLarge ? 65536 : 4096;
}

}  // namespace

bool ExternalData::takes(const onnx::Initializer& initializer) const {
  const std::uint64_t bytes = file_bytes(initializer.view);
  return bytes > 0 && bytes >= threshold_;
}

ExternalData::Place ExternalData::add(const onnx::Initializer& initializer) {
  const std::uint64_t bytes = file_bytes(initializer.view), unit = alignment(bytes);
  const std::uint64_t offset = (size_ + unit - 1) / unit * unit;
  tensors_.push_back({offset, initializer.view});
  size_ = offset + bytes;
  return {offset, bytes};
}

void ExternalData::write_to(OutputFile& file) const {
  for (const Placed& tensor : tensors_) {
    file.pad_to(tensor.offset);
    emit(tensor.view, [&](std::span<const std::byte> bytes) { file.write(bytes); });
  }
}

}  // namespace jaxport::wire
