// SPDX-License-Identifier: Apache-2.0
// gather: windows of an operand at index vectors.
#include <algorithm>

#include "lower/rows/positions.h"

namespace jaxport::lower {
namespace {

void append(Ints& list, const Ints& more) { list.insert(list.end(), more.begin(), more.end()); }

// Which dims of the result run along the indices, and which along a dim of the operand.
struct ResultDims {
  Ints index;
  std::vector<std::optional<std::int64_t>> operand;  // by operand dim; nullopt when dropped

  Ints of(const Ints& operand_dims) const {
    Ints dims;
    for (std::int64_t dim : operand_dims) {
      if (const auto& found = operand[dim]) dims.push_back(*found);
    }
    return dims;
  }
};

ResultDims result_dims(const Windows& windows, std::size_t rank) {
  ResultDims dims;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(rank); ++i) {
    if (!contains(windows.window_dims, i)) dims.index.push_back(i);
  }
  auto next = windows.window_dims.begin();
  for (std::size_t i = 0; i < windows.size.size(); ++i) {
    const bool dropped = windows.is_dropped(static_cast<std::int64_t>(i));
    dims.operand.push_back(dropped ? std::nullopt : std::optional(*next++));
  }
  return dims;
}

Value in_order(Ctx& c, Value result, const Ints& order) {
  Dims shape;
  for (std::int64_t dim : order) shape.push_back(c.out_type().shape[dim]);
  return c.reshape(result, shape);
}

// --- any windows: the position of each element, for GatherND

// The result has [index dims][dims of partial operand dims][dims of whole operand dims].
Order gather_order(const front::Eqn& eqn, std::span<const front::Type> in,
                   std::span<const front::Type> out) {
  const Windows windows = gather_windows(front::GatherParams::read(eqn), in[0].shape);
  const ResultDims dims = result_dims(windows, out[0].shape.size());
  Ints operand = windows.partial, order = dims.index;
  append(operand, windows.whole);
  append(order, dims.of(operand));
  return {{operand}, {order}};
}

Value filled(Ctx& c, Value taken, Value valid, const front::GatherParams& params) {
  Dims mask_shape = valid.shape();
  mask_shape.resize(taken.rank(), Dim(1));
  const Value fill = c.constant(params.fill(taken.dtype()));
  return where(c.reshape(valid, mask_shape), taken, fill);
}

// "promise_in_bounds" means "clip" here as in XLA: a broken promise is not an error there.
Results gather(Ctx& c) {
  const auto params = front::GatherParams::read(c.eqn());
  const Windows windows = gather_windows(params, c.in_type(0).shape);
  if (windows.partial.empty()) return c.expand(c.in(0), c.out_type().shape);
  const Value indices = cast(c.in(1), DType::kI64);
  const Positions positions =
      positions_of(c, indices, c.in_type(0).shape, windows, Outside::kMoved);
  Value taken = c.op.GatherND(c.in(0), positions.at);
  const bool fills = params.mode == "fill_or_drop";
  if (positions.valid && fills) taken = filled(c, taken, positions.valid, params);
  const Order order = gather_order(c.eqn(), {&c.in_type(0), 2}, {&c.out_type(), 1});
  return in_order(c, taken, order.out[0]);
}

// --- single elements and whole dims, at indices that are inside (rewrite/index.cpp); the indices
// of one axis are no vectors

// How to read it: Gather along one axis; GatherElements when all other dims run together with those
// of the indices; GatherND with batch dims.
struct Reading {
  Windows windows;
  ResultDims dims;
  Ints free;  // dims of the indices that do not run together with dims of the operand

  bool is_take() const { return windows.map.size() == 1 && windows.operand_batching.empty(); }
  bool is_along() const {
    return windows.map.size() == 1 && windows.whole.empty() && free.size() <= 1;
  }
};

Reading reading_of(const front::Eqn& eqn, const Dims& operand, std::size_t index_rank,
                   std::size_t result_rank) {
  Reading reading;
  reading.windows = gather_windows(front::GatherParams::read(eqn), operand);
  reading.dims = result_dims(reading.windows, result_rank);
  const std::size_t index_dims = index_rank - (reading.windows.map.size() > 1 ? 1 : 0);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(index_dims); ++i) {
    if (!contains(reading.windows.index_batching, i)) reading.free.push_back(i);
  }
  return reading;
}

// [operand dims before the axis][index dims][operand dims after it]
Order take_order(const Reading& reading) {
  const std::int64_t axis = reading.windows.map[0];
  Ints before, after;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(reading.windows.size.size()); ++i) {
    (i < axis ? before : after).push_back(i);
  }
  Ints order = reading.dims.of(before);
  append(order, reading.dims.index);
  append(order, reading.dims.of(after));
  return {{}, {order}};
}

// The indices in the order of the operand's dims.
Order along_order(const Reading& reading) {
  const Windows& windows = reading.windows;
  Ints indices;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(windows.size.size()); ++i) {
    const auto batch = std::ranges::find(windows.operand_batching, i);
    if (batch != windows.operand_batching.end()) {
      const auto k = static_cast<std::size_t>(batch - windows.operand_batching.begin());
      indices.push_back(windows.index_batching[k]);
    } else {
      append(indices, reading.free);
    }
  }
  Ints order;
  for (std::int64_t dim : indices) order.push_back(reading.dims.index[dim]);
  append(order, reading.dims.of(windows.map));
  return {{{}, indices}, {order}};
}

// [batch dims][free index dims][whole operand dims]
Order points_order(const Reading& reading) {
  const Windows& windows = reading.windows;
  Ints operand = windows.operand_batching, indices = windows.index_batching;
  append(operand, windows.map);
  append(operand, windows.whole);
  append(indices, reading.free);
  Ints order;
  for (std::int64_t dim : indices) order.push_back(reading.dims.index[dim]);
  append(order, reading.dims.of(windows.map));
  append(order, reading.dims.of(windows.whole));
  if (windows.map.size() > 1) indices.push_back(std::ssize(indices));  // the vectors
  return {{operand, indices}, {order}};
}

Order order_of(const Reading& reading) {
  if (reading.is_take()) return take_order(reading);
  return reading.is_along() ? along_order(reading) : points_order(reading);
}

Order inside_order(const front::Eqn& eqn, std::span<const front::Type> in,
                   std::span<const front::Type> out) {
  return order_of(reading_of(eqn, in[0].shape, in[1].shape.size(), out[0].shape.size()));
}

Value along(Ctx& c, const Reading& reading, Value x, Value index) {
  Dims shape = index.shape();
  const std::int64_t axis = reading.windows.map[0];
  if (reading.free.empty()) shape.insert(shape.begin() + axis, Dim(1));
  return c.op.GatherElements(x, c.reshape(index, shape), onnx::Args{{"axis", axis}});
}

Value points(Ctx& c, const Reading& reading, Value x, Value index) {
  Dims shape = index.shape();
  if (reading.windows.map.size() == 1) shape.emplace_back(1);
  const auto batch = static_cast<std::int64_t>(reading.windows.operand_batching.size());
  const Value vectors = c.reshape(cast(index, DType::kI64), shape);
  return c.op.GatherND(x, vectors, onnx::Args{{"batch_dims", batch}});
}

Results gather_inside(Ctx& c) {
  auto [x, index] = c.in<2>();
  const Reading reading =
      reading_of(c.eqn(), c.in_type(0).shape, c.in_type(1).shape.size(), c.out_type().shape.size());
  const onnx::Args axis{{"axis", reading.windows.map[0]}};
  const Value taken = reading.is_take()    ? c.op.Gather(x, index, axis)
                      : reading.is_along() ? along(c, reading, x, index)
                                           : points(c, reading, x, index);
  return in_order(c, taken, order_of(reading).out[0]);
}

constexpr Row kGatherRows[] = {
    {"gather", gather, 0, gather_order},
    {"gather_inside", gather_inside, 0, inside_order},
};
static_assert(std::ranges::is_sorted(kGatherRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> gather_rows() { return kGatherRows; }

}  // namespace jaxport::lower
