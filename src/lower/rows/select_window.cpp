// SPDX-License-Identifier: Apache-2.0
// Derivatives of the maximum and the minimum of windows: one element of each window is selected.
#include <algorithm>

#include "lower/rows/positions.h"
#include "lower/rows/window.h"

namespace jaxport::lower {
namespace {

// select_prim(a, b) says whether a, which comes first, stays selected against b.
struct Select {
  std::string_view primitive;
  Value (*stays)(const onnx::Operand& a, const onnx::Operand& b);
  double loser;  // every number is selected against it
};
constexpr Select kSelects[] = {{"ge", onnx::operator>=, -kInfinity},
                               {"gt", onnx::operator>, -kInfinity},
                               {"le", onnx::operator<=, kInfinity},
                               {"lt", onnx::operator<, kInfinity}};

const Select& select_of(Ctx& c) {
  const auto name = c.param<std::string>("select_prim");
  const auto* select = std::ranges::find(kSelects, name, &Select::primitive);
  if (select == std::end(kSelects)) c.unsupported("the selection is not ge, gt, le or lt");
  return *select;
}

Value padded_with(Ctx& c, Value x, double fill, const Window& window) {
  return padded(c, x, like(x, fill), window.padding);
}

// Of all windows, for each the one of `parts` whose key is selected.
Value selected(const Select& select, const Values& keys, const Values& parts) {
  Value key = keys[0], part = parts[0];
  for (std::size_t i = 1; i < keys.size(); ++i) {
    const Value stays = select.stays(key, keys[i]);
    part = where(stays, part, parts[i]);
    key = where(stays, key, keys[i]);
  }
  return part;
}

Results select_and_gather_add(Ctx& c) {
  auto [tangents, operand] = c.in<2>();
  const Window window = window_of(c.eqn());
  const Select& select = select_of(c);
  const Values keys = window_elements(c, padded_with(c, operand, select.loser, window), window);
  const Values parts = window_elements(c, padded_with(c, tangents, 0, window), window);
  return selected(select, keys, parts);
}

// Positions in an array of this shape that is laid out as one row: for each dim the distance of
// neighbours.
Ints distances(Ctx& c, const Dims& shape) {
  Ints result(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    if (!shape[i].is_static()) c.unsupported("a dim under its windows has a symbolic size");
    result[i - 1] = result[i] * shape[i].value();
  }
  return result;
}

// The position of each window's first element.
Value window_starts(Ctx& c, const Window& window, const Dims& counts, const Ints& distance) {
  Value starts = c.reshape(c.ints({0}), Dims(counts.size(), Dim(1)));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    Dims along(counts.size(), Dim(1));
    along[i] = counts[i];
    const Value step = c.ints({window.stride[i] * distance[i]});
    starts = starts + c.reshape(range(c, counts[i]) * step, along);
  }
  return starts;
}

// The distance from a window's first element to each of its elements.
Values element_offsets(Ctx& c, const Window& window, const Ints& distance) {
  Ints offsets{0};
  for (std::size_t i = 0; i < distance.size(); ++i) {
    Ints finer;
    for (std::int64_t offset : offsets) {
      for (std::int64_t k = 0; k < window.size[i]; ++k) finer.push_back(offset + k * distance[i]);
    }
    offsets = std::move(finer);
  }
  Values values;
  for (std::int64_t offset : offsets) values.push_back(c.constant(int_scalar(DType::kI64, offset)));
  return values;
}

// Each element of the source is added where its window has the selected element.
Results select_and_scatter_add(Ctx& c) {
  auto [source, operand] = c.in<2>();
  const Window window = window_of(c.eqn());
  const Select& select = select_of(c);
  const Value wide = padded_with(c, operand, select.loser, window);
  const Ints distance = distances(c, wide.shape());
  const Value offset =
      selected(select, window_elements(c, wide, window), element_offsets(c, window, distance));
  const Value starts = window_starts(c, window, source.shape(), distance);
  Dim count(1), windows(1);
  for (const Dim& size : wide.shape()) count = count * size;
  for (const Dim& size : source.shape()) windows = windows * size;
  const Value at = c.reshape(c.expand(starts + offset, source.shape()), {windows, 1});
  const Value zeros = c.expand(like(source, 0), {count});
  const Value flat =
      c.op.ScatterND(zeros, at, c.reshape(source, {windows}), onnx::Args{{"reduction", "add"}});
  PadConfig cut;
  for (const PadDim& pad : window.padding) cut.push_back({-pad.low, -pad.high, 0});
  return padded(c, c.reshape(flat, wide.shape()), like(source, 0), cut);
}

constexpr Row kSelectWindowRows[] = {{"select_and_gather_add", select_and_gather_add},
                                     {"select_and_scatter_add", select_and_scatter_add}};
static_assert(std::ranges::is_sorted(kSelectWindowRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> select_window_rows() { return kSelectWindowRows; }

}  // namespace jaxport::lower
