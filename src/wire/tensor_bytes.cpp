// SPDX-License-Identifier: Apache-2.0
#include "wire/tensor_bytes.h"

#include <bit>
#include <optional>
#include <utility>
#include <vector>

namespace jaxport::wire {

static_assert(std::endian::native == std::endian::little, "ONNX tensors are little-endian");

namespace {

constexpr std::byte kLowHalf{0x0f};

// Joins two elements to a byte. An element may be left over between two chunks.
class Packer {
 public:
  explicit Packer(const Sink& sink) : sink_(sink) {}

  void add(std::span<const std::byte> elements) {
    packed_.clear();
    for (std::byte element : elements) {
      element &= kLowHalf;
      if (pending_) {
        packed_.push_back(*pending_ | element << 4);
        pending_.reset();
      } else {
        pending_ = element;
      }
    }
    sink_(packed_);
  }
  void finish() {
    if (pending_) sink_({&*pending_, 1});
  }

 private:
  const Sink& sink_;
  std::vector<std::byte> packed_;
  std::optional<std::byte> pending_;
};

std::byte sign_extended(std::byte half, DType dtype) {
  const bool negative = dtype == DType::kI4 && (half & std::byte{0x08}) != std::byte{0};
  return negative ? half | ~kLowHalf : half;
}

}  // namespace

std::uint64_t file_bytes(DType dtype, std::int64_t elements) {
  const auto count = static_cast<std::uint64_t>(elements);
  return bit_width(dtype) == 4 ? count / 2 + count % 2 : count * byte_width(dtype);
}

std::uint64_t file_bytes(const StridedView& view) {
  return file_bytes(view.base.dtype, view.size());
}

void emit(const StridedView& view, const Sink& sink) {
  if (bit_width(view.base.dtype) != 4) return for_each_chunk(view, sink);
  Packer packer(sink);
  for_each_chunk(view, [&](std::span<const std::byte> chunk) { packer.add(chunk); });
  packer.finish();
}

Tensor unpack(DType dtype, Shape shape, std::span<const std::byte> packed) {
  MutableTensor result = allocate(dtype, std::move(shape));
  const std::int64_t count = result.tensor.size();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::byte pair = packed[i / 2];
    result.bytes[i] = sign_extended(i % 2 == 0 ? pair & kLowHalf : pair >> 4, dtype);
  }
  return result.tensor;
}

}  // namespace jaxport::wire
