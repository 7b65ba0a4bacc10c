// SPDX-License-Identifier: Apache-2.0
#include "eval/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace jaxport::eval {

Ints row_major_strides(const Shape& shape) {
  Ints strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

Tensor reshaped(const Call& c, const Tensor& tensor, Shape shape) {
  c.require(element_count(shape) == tensor.size(),
            fmt::format("({}) does not reshape to ({})", fmt::join(tensor.shape, ", "),
                        fmt::join(shape, ", ")));
  return {.dtype = tensor.dtype, .shape = std::move(shape), .data = tensor.data};
}

Tensor transposed(const Tensor& tensor, const Ints& permutation) {
  StridedView view = whole(tensor);
  const StridedView from = view;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    view.sizes[i] = from.sizes[permutation[i]];
    view.strides[i] = from.strides[permutation[i]];
  }
  return materialise(view);
}

Tensor element(const Tensor& tensor, std::int64_t at) {
  return materialise({.base = tensor, .offset = at, .sizes = {}, .strides = {}});
}

Tensor broadcast(const Call& c, const Tensor& tensor, const Shape& shape) {
  if (tensor.shape == shape) return tensor;
  const auto misfit = [&] {
    c.fail(fmt::format("({}) does not broadcast to ({})", fmt::join(tensor.shape, ", "),
                       fmt::join(shape, ", ")));
  };
  if (tensor.shape.size() > shape.size()) misfit();
  const std::size_t missing = shape.size() - tensor.shape.size();
  const Ints strides = row_major_strides(tensor.shape);
  StridedView view{.base = tensor, .sizes = shape, .strides = Ints(shape.size(), 0)};
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (tensor.shape[i] == 1) continue;
    if (tensor.shape[i] != shape[missing + i]) misfit();
    view.strides[missing + i] = strides[i];
  }
  return materialise(view);
}

namespace {

// Elements that follow each other, below which a copy is read faster.
constexpr std::int64_t kShortRun = 64;

// How often each element is repeated in place, where the tensor has the dims of the shape from its
// first to its last dim that is not 1; 0 otherwise.
std::int64_t repeats_of(const Tensor& tensor, const Shape& shape) {
  if (tensor.shape.size() > shape.size()) return 0;
  const std::size_t missing = shape.size() - tensor.shape.size();
  const auto size = [&](std::size_t i) { return i < missing ? 1 : tensor.shape[i - missing]; };
  std::size_t first = 0, last = shape.size();
  while (first < last && size(first) == 1) ++first;
  while (last > first && size(last - 1) == 1) --last;
  for (std::size_t i = first; i < last; ++i) {
    if (size(i) != shape[i]) return 0;
  }
  return element_count(std::span(shape).subspan(last));
}

}  // namespace

Repeated repeated_to(const Call& c, const Tensor& tensor, const Shape& shape) {
  const std::int64_t each = repeats_of(tensor, shape);
  const bool is_single = tensor.size() == 1 && tensor.shape.size() <= shape.size();
  if (is_single || tensor.shape == shape) return {tensor, 1};
  if ((each == 1 ? tensor.size() : each) >= kShortRun) return {tensor, each};
  return {broadcast(c, tensor, shape), 1};
}

Odometer::Odometer(Shape sizes)
    : sizes_(std::move(sizes)), index_(sizes_.size(), 0), valid_(element_count(sizes_) > 0) {}

void Odometer::next() {
  for (std::size_t i = index_.size(); i-- > 0;) {
    if (++index_[i] < sizes_[i]) return;
    index_[i] = 0;
  }
  valid_ = false;
}

std::int64_t offset_of(std::span<const std::int64_t> index, std::span<const std::int64_t> strides) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

// Visits the source in rows of its last dim; a row that stays contiguous is one memcpy.
void write_window(const Tensor& source, MutableTensor& into, const Window& window) {
  const auto width = static_cast<std::int64_t>(byte_width(source.dtype));
  const std::int64_t row = source.shape.empty() ? 1 : source.shape.back();
  const std::int64_t step = source.shape.empty() ? 1 : window.strides.back();
  Shape outer = source.shape;
  if (!outer.empty()) outer.pop_back();
  if (row == 0) return;
  const std::byte* from = source.data.get();
  for (Odometer at(outer); at.valid(); at.next(), from += row * width) {
    std::byte* to = into.bytes + (window.offset + offset_of(at.index(), window.strides)) * width;
    if (step == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(row * width));
      continue;
    }
    for (std::int64_t i = 0; i < row; ++i) {
      std::memcpy(to + i * step * width, from + i * width, static_cast<std::size_t>(width));
    }
  }
}

MutableTensor copy_of(const Tensor& tensor) {
  MutableTensor out = allocate(tensor.dtype, tensor.shape);
  if (tensor.nbytes() > 0) std::memcpy(out.bytes, tensor.data.get(), tensor.nbytes());
  return out;
}

MutableTensor filled(DType dtype, Shape shape, const Tensor& element) {
  MutableTensor out = allocate(dtype, std::move(shape));
  const auto width = static_cast<std::size_t>(byte_width(dtype));
  const std::size_t total = out.tensor.nbytes();
  for (std::size_t at = 0; at < total; at += width) {
    std::memcpy(out.bytes + at, element.data.get(), width);
  }
  return out;
}

}  // namespace jaxport::eval
