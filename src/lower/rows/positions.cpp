// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/positions.h"

#include <algorithm>

namespace jaxport::lower {
namespace {

void split_dims(Windows& windows, const Dims& operand) {
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    const bool indexed = contains(windows.map, dim) || contains(windows.operand_batching, dim);
    const bool is_whole = !indexed && windows.size[i] == operand[i];
    (is_whole ? windows.whole : windows.partial).push_back(dim);
  }
}

// Builds the columns of the positions, one for each partial dim.
class Columns {
 public:
  Columns(Ctx& c, Value indices, const Dims& operand, const Windows& windows, Outside outside)
      : c_(c), indices_(indices), operand_(operand), windows_(windows), outside_(outside) {
    index_dims_ = indices.shape();
    index_dims_.pop_back();
  }

  Positions build() {
    Dims shape = index_dims_;
    for (std::int64_t dim : windows_.partial) shape.push_back(windows_.size[dim]);
    shape.emplace_back(1);
    Values columns;
    for (std::size_t i = 0; i < windows_.partial.size(); ++i)
      columns.push_back(c_.expand(column(i), shape));
    return {columns.size() == 1 ? columns[0] : c_.op.call("Concat", columns, {{"axis", -1}}),
            valid_};
  }

 private:
  // Start plus offset inside the window, shaped to broadcast against all positions.
  Value column(std::size_t i) {
    const std::int64_t dim = windows_.partial[i];
    const Dim& size = windows_.size[dim];
    Dims along(index_dims_.size() + windows_.partial.size() + 1, Dim(1));
    along[index_dims_.size() + i] = size;
    Value offset;
    if (!size.is_one()) offset = c_.reshape(range(c_, size), along);
    Value begin = start(dim);
    if (begin) {
      Dims lifted = begin.shape();
      lifted.resize(along.size(), Dim(1));
      begin = c_.reshape(begin, lifted);
    }
    if (begin && offset) return begin + offset;
    if (begin) return begin;
    return offset ? offset : c_.reshape(c_.ints({0}), Dims(along.size(), Dim(1)));
  }

  // The windows' first position along a dim; absent when it is 0.
  Value start(std::int64_t dim) {
    if (auto at = std::ranges::find(windows_.operand_batching, dim);
        at != windows_.operand_batching.end()) {
      const auto batch = windows_.index_batching[at - windows_.operand_batching.begin()];
      Dims shape(index_dims_.size(), Dim(1));
      shape[batch] = index_dims_[batch];
      return c_.reshape(range(c_, shape[batch]), shape);
    }
    auto entry = std::ranges::find(windows_.map, dim);
    if (entry == windows_.map.end()) return {};
    const Value begin = entry_of_vectors(entry - windows_.map.begin());
    const Dim limit = operand_[dim] - windows_.size[dim];
    if (outside_ == Outside::kNone || is_inside(entry - windows_.map.begin(), limit)) return begin;
    const Value fitted = min(max(begin, 0), scalar_dim(c_, limit)), fits = equal(begin, fitted);
    valid_ = valid_ ? valid_ & fits : fits;
    return outside_ == Outside::kMoved ? fitted : begin;
  }

  Value entry_of_vectors(std::ptrdiff_t k) {
    if (windows_.map.size() == 1) return c_.reshape(indices_, index_dims_);
    const Value which = c_.constant(int_scalar(DType::kI64, k));
    return c_.op.Gather(indices_, which, onnx::Args{{"axis", -1}});
  }

  // Known indices need no check.
  bool is_inside(std::ptrdiff_t entry, const Dim& limit) const {
    const Tensor* known = c_.op.known(indices_);
    if (!known || !limit.is_static()) return false;
    const auto width = static_cast<std::int64_t>(windows_.map.size());
    for (std::int64_t i = entry; i < known->size(); i += width) {
      if (known->int_at(i) < 0 || known->int_at(i) > limit.value()) return false;
    }
    return true;
  }

  Ctx& c_;
  Value indices_;
  const Dims& operand_;
  const Windows& windows_;
  Outside outside_;
  Dims index_dims_;
  Value valid_;
};

}  // namespace

bool Windows::is_dropped(std::int64_t dim) const {
  return contains(dropped, dim) || contains(operand_batching, dim);
}

Windows gather_windows(const front::GatherParams& gather, const Dims& operand) {
  Windows windows{gather, gather.slice_sizes, {}, {}};
  split_dims(windows, operand);
  return windows;
}

Windows scatter_windows(const front::ScatterParams& scatter, const Dims& operand,
                        const Dims& updates) {
  Windows windows{scatter, {}, {}, {}};
  auto next = scatter.window_dims.begin();
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const bool dropped = windows.is_dropped(static_cast<std::int64_t>(i));
    windows.size.push_back(dropped ? Dim(1) : updates[*next++]);
  }
  split_dims(windows, operand);
  return windows;
}

Positions positions_of(Ctx& c, Value indices, const Dims& operand, const Windows& windows,
                       Outside outside) {
  return Columns(c, indices, operand, windows, outside).build();
}

Value scalar_dim(Ctx& c, const Dim& dim) {
  if (dim.is_static()) return c.constant(int_scalar(DType::kI64, dim.value()));
  return c.op.Squeeze(c.dim(dim));
}

Value range(Ctx& c, const Dim& size) {
  if (size.is_static() && size.value() <= 1024) {
    Ints values;
    for (std::int64_t i = 0; i < size.value(); ++i) values.push_back(i);
    return c.ints(values);
  }
  const Value zero = c.op.scalar(0, DType::kI64), one = c.op.scalar(1, DType::kI64);
  return c.op.call_with_shape("Range", {zero, c.op.Squeeze(c.dim(size)), one}, {}, {size});
}

}  // namespace jaxport::lower
