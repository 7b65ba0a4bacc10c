// SPDX-License-Identifier: Apache-2.0
// scatter and its reductions as ScatterND: the dims that windows take in part stand first, the
// updates' index dims too.
#include <algorithm>

#include "lower/rows/positions.h"

namespace jaxport::lower {
namespace {

Ints joined(Ints first, const Ints& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Dims of the updates in the order [index dims][window dims of partial operand dims][whole operand
// dims].
Ints update_order(const Windows& windows, std::size_t rank) {
  const Ints& window_dims = windows.window_dims;
  Ints order;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(rank); ++i) {
    if (std::ranges::find(window_dims, i) == window_dims.end()) order.push_back(i);
  }
  Ints kept;  // operand dims that the updates have, in order
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(windows.size.size()); ++i) {
    if (!windows.is_dropped(i)) kept.push_back(i);
  }
  for (const Ints* group : {&windows.partial, &windows.whole}) {
    for (std::int64_t dim : *group) {
      auto at = std::ranges::find(kept, dim);
      if (at != kept.end()) order.push_back(window_dims[at - kept.begin()]);
    }
  }
  return order;
}

Order scatter_order(const front::Eqn& eqn, std::span<const front::Type> in,
                    std::span<const front::Type>) {
  const Windows windows =
      scatter_windows(front::ScatterParams::read(eqn), in[0].shape, in[2].shape);
  const Ints operand = joined(windows.partial, windows.whole);
  return {{operand, {}, update_order(windows, in[2].shape.size())}, {operand}};
}

// Windows that do not fit are dropped: they write to a row that is cut off again.
Value with_spare_row(Ctx& c, Value x, Values scatter_inputs, const Value& valid,
                     const onnx::Args& args) {
  Dims taller = x.shape();
  const Dim rows = taller[0];
  taller[0] = rows + 1;
  Ints pads(2 * x.rank(), 0);
  pads[x.rank()] = 1;
  const Value fill = like(x, 0);
  scatter_inputs[0] =
      c.op.call_with_shape("Pad", {x, c.ints(pads), fill}, {{"mode", "constant"}}, taller);
  const Value& at = scatter_inputs[1];
  Dims mask_shape = valid.shape();
  mask_shape.resize(at.rank(), Dim(1));
  // The first column of a dropped window points to the spare row, the others to 0.
  Dims place(static_cast<std::size_t>(at.shape().back().value()), Dim(0));
  place[0] = rows;
  const Value spare = c.shape(place);
  scatter_inputs[1] = where(c.reshape(valid, mask_shape), at, spare);
  const Value result = c.op.call("ScatterND", scatter_inputs, args);
  return c.op.call_with_shape("Slice", {result, c.ints({0}), c.dim(rows), c.ints({0})}, {},
                              x.shape());
}

Results scattered(Ctx& c, Value updates, std::string_view reduction) {
  const Windows windows =
      scatter_windows(front::ScatterParams::read(c.eqn()), c.in_type(0).shape, c.in_type(2).shape);
  const Value x = c.in(0), indices = cast(c.in(1), DType::kI64);
  if (windows.partial.empty()) {  // every window is the whole operand
    c.unsupported("a window that covers the whole operand is not supported");
  }
  const std::string& mode = windows.mode;
  const Outside outside = mode == "inside" ? Outside::kNone
                          : mode == "clip" ? Outside::kMoved
                                           : Outside::kReported;
  const Positions positions = positions_of(c, indices, c.in_type(0).shape, windows, outside);
  Dims places =
      c.in_type(1).shape;  // without the windows' unit dims, which updates mostly lack too
  places.pop_back();
  for (std::int64_t dim : windows.partial) {
    const Dim& size = windows.size[dim];
    if (!size.is_one()) places.push_back(size);
  }
  Dims update_shape = places;
  for (std::int64_t dim : windows.whole) update_shape.push_back(c.in_type(0).shape[dim]);
  places.push_back(positions.at.shape().back());
  const Values in{x, c.reshape(positions.at, places), c.reshape(updates, update_shape)};
  onnx::Args args;
  if (!reduction.empty()) args.emplace_back("reduction", std::string(reduction));
  // XLA drops what a broken promise "promise_in_bounds" would write outside.
  if (positions.valid && mode != "clip") return with_spare_row(c, x, in, positions.valid, args);
  return c.op.call("ScatterND", in, args);
}

Results scatter(Ctx& c) {
  if (front::ScatterParams::read(c.eqn()).update) {
    c.unsupported("a function of the old elements is not supported");
  }
  return scattered(c, c.in(2), "");
}
Results scatter_add(Ctx& c) { return scattered(c, c.in(2), "add"); }
Results scatter_max(Ctx& c) { return scattered(c, c.in(2), "max"); }
Results scatter_min(Ctx& c) { return scattered(c, c.in(2), "min"); }
Results scatter_mul(Ctx& c) { return scattered(c, c.in(2), "mul"); }
Results scatter_sub(Ctx& c) { return scattered(c, -c.in(2), "add"); }

constexpr Row kScatterRows[] = {
    {"scatter", scatter, 0, scatter_order},
    {"scatter-add", scatter_add, 0, scatter_order},
    {"scatter-max", scatter_max, 18, scatter_order},
    {"scatter-min", scatter_min, 18, scatter_order},
    {"scatter-mul", scatter_mul, 0, scatter_order},
    {"scatter-sub", scatter_sub, 0, scatter_order},
};
static_assert(std::ranges::is_sorted(kScatterRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> scatter_rows() { return kScatterRows; }

}  // namespace jaxport::lower
