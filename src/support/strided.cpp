// SPDX-License-Identifier: Apache-2.0
// Strided views: enumeration at the speed of memcpy where the layout allows it.
#include <algorithm>
#include <array>
#include <cstring>

#include "support/tensor.h"

namespace jaxport {
namespace {

constexpr std::int64_t kChunkBytes = 1 << 20;
// Runs of at least this many bytes are handed out in place, shorter ones are gathered first.
constexpr std::int64_t kDirectBytes = 64 << 10;

struct Axis {
  std::int64_t size, stride;
};

// The same enumeration with as few axes as possible: no unit axes, neighbours that continue each
// other merged.
std::vector<Axis> coalesce(const StridedView& view) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    const Axis axis{view.sizes[i], view.strides[i]};
    if (axis.size == 1) continue;
    if (!axes.empty() && axes.back().stride == axis.stride * axis.size) {
      axes.back() = {axes.back().size * axis.size, axis.stride};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

bool is_contiguous(const std::vector<Axis>& axes) {
  return axes.empty() || (axes.size() == 1 && axes[0].stride == 1);
}

// dst[r, c] = src[r * rows.stride + c * cols.stride], in tiles: a cache line that holds elements of
// several rows is read once, and the lines being written stay in the cache.
template <class T>
void copy_plane(std::byte* to, const std::byte* from, Axis rows, Axis cols) {
  constexpr std::int64_t kTileRows = 32, kTileCols = 8;
  auto* dst = reinterpret_cast<T*>(to);
  const auto* src = reinterpret_cast<const T*>(from);
  for (std::int64_t row = 0; row < rows.size; row += kTileRows) {
    const std::int64_t row_end = std::min(row + kTileRows, rows.size);
    for (std::int64_t col = 0; col < cols.size; col += kTileCols) {
      const std::int64_t col_end = std::min(col + kTileCols, cols.size);
      for (std::int64_t r = row; r < row_end; ++r) {
        for (std::int64_t c = col; c < col_end; ++c) {
          std::memcpy(dst + r * cols.size + c, src + r * rows.stride + c * cols.stride, sizeof(T));
        }
      }
    }
  }
}

void copy_runs(std::byte* to, const std::byte* from, Axis rows, Axis cols, std::int64_t width) {
  for (std::int64_t r = 0; r < rows.size; ++r) {
    std::memcpy(to + r * cols.size * width, from + r * rows.stride * width, cols.size * width);
  }
}

void copy(std::byte* to, const std::byte* from, Axis rows, Axis cols, std::int64_t width) {
  if (cols.stride == 1) return copy_runs(to, from, rows, cols, width);
  switch (width) {
    case 1:
      return copy_plane<std::uint8_t>(to, from, rows, cols);
    case 2:
      return copy_plane<std::uint16_t>(to, from, rows, cols);
    case 4:
      return copy_plane<std::uint32_t>(to, from, rows, cols);
    case 8:
      return copy_plane<std::uint64_t>(to, from, rows, cols);
    default:
      return copy_plane<std::array<std::uint64_t, 2>>(to, from, rows, cols);
  }
}

using Sink = std::function<void(std::span<const std::byte>)>;

void hand_out(const std::byte* bytes, std::int64_t count, const Sink& sink) {
  for (std::int64_t at = 0; at < count; at += kChunkBytes) {
    sink({bytes + at, static_cast<std::size_t>(std::min(kChunkBytes, count - at))});
  }
}

// Collects pieces of planes in one buffer and passes it on whenever it is full.
class Gatherer {
 public:
  Gatherer(std::int64_t total_bytes, std::int64_t width, const Sink& sink)
      : capacity_(std::min(total_bytes, kChunkBytes) / width * width),
        width_(width),
        buffer_(std::make_unique_for_overwrite<std::byte[]>(capacity_)),
        sink_(sink) {}

  void plane(const std::byte* from, Axis rows, Axis cols) {
    const std::int64_t row_bytes = cols.size * width_;
    if (cols.stride == 1 && row_bytes >= kDirectBytes) return direct_rows(from, rows, cols);
    if (row_bytes > capacity_) return long_rows(from, rows, cols);
    for (std::int64_t r = 0; r < rows.size;) {
      if (used_ + row_bytes > capacity_) flush();
      const std::int64_t fit = std::min(rows.size - r, (capacity_ - used_) / row_bytes);
      copy(buffer_.get() + used_, from + r * rows.stride * width_, {fit, rows.stride}, cols,
           width_);
      used_ += fit * row_bytes;
      r += fit;
    }
  }

  void flush() {
    if (used_ > 0) sink_({buffer_.get(), static_cast<std::size_t>(used_)});
    used_ = 0;
  }

 private:
  void direct_rows(const std::byte* from, Axis rows, Axis cols) {
    flush();
    for (std::int64_t r = 0; r < rows.size; ++r) {
      hand_out(from + r * rows.stride * width_, cols.size * width_, sink_);
    }
  }

  void long_rows(const std::byte* from, Axis rows, Axis cols) {
    const std::int64_t piece = capacity_ / width_;
    for (std::int64_t r = 0; r < rows.size; ++r) {
      for (std::int64_t c = 0; c < cols.size; c += piece) {
        flush();
        const Axis part{std::min(piece, cols.size - c), cols.stride};
        copy(buffer_.get(), from + (r * rows.stride + c * cols.stride) * width_, {1, 0}, part,
             width_);
        used_ = part.size * width_;
      }
    }
  }

  std::int64_t capacity_, width_, used_ = 0;
  std::unique_ptr<std::byte[]> buffer_;
  const Sink& sink_;
};

// Visits the planes of the two innermost axes; `outer` are the axes around them.
void for_each_plane(std::span<const Axis> outer, const std::byte* from, std::int64_t width,
                    const std::function<void(const std::byte*)>& visit) {
  if (outer.empty()) return visit(from);
  for (std::int64_t i = 0; i < outer[0].size; ++i) {
    for_each_plane(outer.subspan(1), from + i * outer[0].stride * width, width, visit);
  }
}

}  // namespace

bool StridedView::is_dense() const { return size() == 0 || is_contiguous(coalesce(*this)); }

StridedView whole(Tensor tensor) {
  StridedView view;
  view.sizes = tensor.shape;
  view.strides.resize(view.sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = view.sizes.size(); i-- > 0;) {
    view.strides[i] = stride;
    stride *= std::max<std::int64_t>(view.sizes[i], 1);
  }
  view.base = std::move(tensor);
  return view;
}

Tensor materialise(const StridedView& view) {
  if (view.is_dense()) {
    const std::byte* first = view.base.data.get() + view.offset * byte_width(view.base.dtype);
    return {.dtype = view.base.dtype, .shape = view.sizes, .data = {view.base.data, first}};
  }
  MutableTensor out = allocate(view.base.dtype, view.sizes);
  std::byte* to = out.bytes;
  for_each_chunk(view, [&to](std::span<const std::byte> chunk) {
    std::memcpy(to, chunk.data(), chunk.size());
    to += chunk.size();
  });
  return out.tensor;
}

void for_each_chunk(const StridedView& view, const Sink& sink) {
  const std::int64_t width = byte_width(view.base.dtype);
  const std::int64_t total_bytes = view.size() * width;
  if (total_bytes == 0) return;
  const std::byte* first = view.base.data.get() + view.offset * width;
  std::vector<Axis> axes = coalesce(view);
  if (is_contiguous(axes)) return hand_out(first, total_bytes, sink);
  if (axes.size() == 1) axes.insert(axes.begin(), Axis{1, 0});
  const Axis cols = axes.back(), rows = axes[axes.size() - 2];
  Gatherer gatherer(total_bytes, width, sink);
  for_each_plane(std::span(axes).first(axes.size() - 2), first, width,
                 [&](const std::byte* plane) { gatherer.plane(plane, rows, cols); });
  gatherer.flush();
}

}  // namespace jaxport
