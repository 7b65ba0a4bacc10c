// SPDX-License-Identifier: Apache-2.0
// Writing windows at indices, with every way to combine old and new.
#include <algorithm>

#include "eval/arithmetic.h"
#include "eval/eval.h"
#include "eval/index_windows.h"
#include "eval/map.h"

namespace jaxport::eval {
namespace {

// Window sizes along the operand's dims, from the shape of the updates.
Shape window_of(const Call& c, const front::IndexParams& dims) {
  Shape window(c.shape(0).size(), 1);
  std::size_t next = 0;
  for (std::int64_t i = 0; i < c.rank(0); ++i) {
    const auto is_in = [i](const Ints& list) { return std::ranges::find(list, i) != list.end(); };
    if (is_in(dims.dropped) || is_in(dims.operand_batching)) continue;
    c.require(next < dims.window_dims.size(), "the dimension numbers do not cover the operand");
    window[i] = c.shape(2)[c.checked(dims.window_dims, c.rank(2))[next++]];
  }
  return window;
}

// Calls combine(element of the operand, element of the updates) in the order of the indices.
template <class Combine>
void for_each_update(const Call& c, const front::ScatterParams& params, const Combine& combine) {
  c.require_counts(3, 1);
  c.require(c.in[0].dtype == c.in[2].dtype, "operands of different dtypes");
  const bool clips = params.mode == "clip";
  // Lowering says "inside" where it has made sure of it.
  constexpr std::string_view kSkipping[] = {"fill_or_drop", "inside", "promise_in_bounds"};
  c.require(clips || std::ranges::find(kSkipping, params.mode) != std::end(kSkipping),
            "unknown 'mode'");
  const IndexWindows windows(c, params, c.shape(0), c.in[1], window_of(c, params), c.shape(2));
  windows.for_each(clips ? OutOfBounds::kClip : OutOfBounds::kSkip,
                   [&](std::int64_t from, std::optional<std::int64_t> to) {
                     if (!to) return;
                     for (std::size_t i = 0; i < windows.outer_steps().size(); ++i) {
                       combine(*to + windows.operand_steps()[i], from + windows.outer_steps()[i]);
                     }
                   });
}

// Replaces elements; an update_jaxpr (x.at[i].apply(f)) gives the new element instead.
Results scatter(const Call& c) {
  c.require_counts(3, 1);
  MutableTensor out = copy_of(c.in[0]);
  const auto params = front::ScatterParams::read(c.eqn);
  for_each_update(c, params, [&](std::int64_t to, std::int64_t from) {
    Tensor value = element(c.in[2], from);
    if (params.update) {
      const Tensor operands[] = {element(out.tensor, to), value};
      const Results results = run(*params.update, operands, c.bindings);
      c.require(results.size() == 1 && results[0].is_scalar() && results[0].dtype == value.dtype,
                "'update_jaxpr' does not give one element");
      value = results[0];
    }
    write_window(value, out, {.offset = to, .strides = {}});
  });
  return {std::move(out.tensor)};
}

// Each step rounds to the dtype, as it does in XLA.
template <auto Op>
Results scatter_with(const Call& c) {
  c.require_counts(3, 1);
  MutableTensor out = copy_of(c.in[0]);
  const auto combine = [&]<class T>(T) requires Takes<decltype(Op), T, 2> {
    for_each_update(c, front::ScatterParams::read(c.eqn), [&](std::int64_t to, std::int64_t from) {
      T old, update;
      load(out.tensor, to, 1, &old);
      load(c.in[2], from, 1, &update);
      const T value = Op(old, update);
      store(&value, 1, out, to);
    });
  };
  const DType dtype = c.in[0].dtype;
  with_class(class_of(dtype), combine, [&] { return c.no_dtype(dtype); });
  return {std::move(out.tensor)};
}

constexpr Row kScatterRows[] = {
    {"scatter", scatter},
    {"scatter-add", scatter_with<kAdd>},
    {"scatter-max", scatter_with<kMax>},
    {"scatter-min", scatter_with<kMin>},
    {"scatter-mul", scatter_with<kMul>},
    {"scatter-sub", scatter_with<kSub>},
};
static_assert(std::ranges::is_sorted(kScatterRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> scatter_rows() { return kScatterRows; }
}  // namespace jaxport::eval
