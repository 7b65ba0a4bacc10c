// SPDX-License-Identifier: Apache-2.0
// The bytes of a tensor as they stand in an ONNX file: row-major, little-endian, 4-bit elements two
// to a byte with the first one in the low half.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "support/tensor.h"

namespace jaxport::wire {

using Sink = std::function<void(std::span<const std::byte>)>;

std::uint64_t file_bytes(DType dtype, std::int64_t elements);
std::uint64_t file_bytes(const StridedView& view);

// In pieces of at most 1 MiB; those of a dense view are its own bytes, without a copy.
void emit(const StridedView& view, const Sink& sink);

// `packed` holds file_bytes(dtype, elements of shape) bytes of a 4-bit dtype.
Tensor unpack(DType dtype, Shape shape, std::span<const std::byte> packed);

}  // namespace jaxport::wire
