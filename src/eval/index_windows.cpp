// SPDX-License-Identifier: Apache-2.0
#include "eval/index_windows.h"

#include <algorithm>

#include "eval/element.h"
#include "eval/view.h"

namespace jaxport::eval {
namespace {

void check_operand_dims(const Call& c, const front::IndexParams& dims, std::size_t window_rank,
                        std::size_t operand_rank) {
  c.require(window_rank == operand_rank, "a window has another rank than the operand");
  c.require(
      dims.window_dims.size() + dims.dropped.size() + dims.operand_batching.size() == operand_rank,
      "the dimension numbers do not cover the operand");
  for (const std::int64_t dim : dims.dropped) {
    c.require(!contains(dims.operand_batching, dim), "a dim is both collapsed and batched");
  }
  c.require(dims.operand_batching.size() == dims.index_batching.size(),
            "batch dims of operand and indices differ in number");
}

}  // namespace

Ints all_offsets(const Shape& sizes, const Ints& strides) {
  Ints offsets;
  offsets.reserve(static_cast<std::size_t>(element_count(sizes)));
  for (Odometer at(sizes); at.valid(); at.next()) offsets.push_back(offset_of(at.index(), strides));
  return offsets;
}

IndexWindows::IndexWindows(const Call& c, const front::IndexParams& dims, const Shape& operand,
                           const Tensor& indices, const Shape& window, const Shape& outer)
    : dims_(dims),
      operand_(operand),
      window_(window),
      operand_strides_(row_major_strides(operand)) {
  c.checked(dims.window_dims, std::ssize(outer));
  for (const Ints* list : {&dims.dropped, &dims.map, &dims.operand_batching}) {
    c.checked(*list, std::ssize(operand));
  }
  c.checked(dims.index_batching, std::max<std::int64_t>(std::ssize(indices.shape) - 1, 0));
  check_operand_dims(c, dims, window.size(), operand.size());
  c.require(is_integer(indices.dtype), "the indices are not integers");
  c.require(
      !indices.shape.empty() && indices.shape.back() == static_cast<std::int64_t>(dims.map.size()),
      "index vectors have another length");
  batch_.assign(indices.shape.begin(), indices.shape.end() - 1);
  c.require(outer.size() == batch_.size() + dims.window_dims.size(), "an array has another rank");

  const Ints outer_strides = row_major_strides(outer);
  for (std::int64_t i = 0; i < std::ssize(outer); ++i) {
    if (contains(dims.window_dims, i)) continue;
    c.require(outer[i] == batch_[batch_strides_.size()], "a batch dim has another size");
    batch_strides_.push_back(outer_strides[i]);
  }
  Shape sizes;
  Ints in_operand, in_outer;
  for (std::int64_t i = 0; i < std::ssize(operand); ++i) {
    if (contains(dims.dropped, i) || contains(dims.operand_batching, i)) {
      c.require(window[i] <= 1, "a collapsed dim has a size over 1");
      continue;
    }
    const std::int64_t outer_dim = dims.window_dims[sizes.size()];
    c.require(window[i] >= 0 && outer[outer_dim] == window[i], "a window dim has another size");
    sizes.push_back(window[i]);
    in_operand.push_back(operand_strides_[i]);
    in_outer.push_back(outer_strides[outer_dim]);
  }
  operand_steps_ = all_offsets(sizes, in_operand);
  outer_steps_ = all_offsets(sizes, in_outer);
  indices_.resize(static_cast<std::size_t>(indices.size()));
  load(indices, 0, indices.size(), indices_.data());
}

std::optional<std::int64_t> IndexWindows::operand_start(OutOfBounds mode, const Ints& batch,
                                                        std::span<const std::int64_t> index) const {
  Ints start(operand_.size(), 0);
  for (std::size_t k = 0; k < index.size(); ++k) start[dims_.map[k]] = index[k];
  for (std::size_t k = 0; k < dims_.operand_batching.size(); ++k) {
    start[dims_.operand_batching[k]] = batch[dims_.index_batching[k]];
  }
  for (std::size_t i = 0; i < start.size(); ++i) {
    const std::int64_t last = operand_[i] - window_[i];
    if (last < 0) return std::nullopt;
    if (mode == OutOfBounds::kSkip && (start[i] < 0 || start[i] > last)) return std::nullopt;
    start[i] = std::clamp<std::int64_t>(start[i], 0, last);
  }
  return offset_of(start, operand_strides_);
}

void IndexWindows::for_each(OutOfBounds mode, const Visit& visit) const {
  const std::size_t length = dims_.map.size();
  std::span<const std::int64_t> rest = indices_;
  for (Odometer at(batch_); at.valid(); at.next()) {
    visit(offset_of(at.index(), batch_strides_),
          operand_start(mode, at.index(), rest.first(length)));
    rest = rest.subspan(length);
  }
}

}  // namespace jaxport::eval
