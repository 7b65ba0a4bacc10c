// SPDX-License-Identifier: Apache-2.0
// Writing at a known place: the value is cut around a window, or into the teeth of a comb, and
// joined again.
#include <algorithm>
#include <utility>

#include "axis/graph/pattern.h"
#include "axis/graph/view.h"
#include "axis/translate/known.h"
#include "axis/translate/size_value.h"
#include "axis/translate/translate.h"

namespace jaxport::axis {
namespace {

// Each tooth is a node: a comb of more is written as it is.
constexpr std::int64_t kMostTeeth = 8;

// Where the window lies along one dim.
struct Span {
  Dim start, count;
};

// What is written: the update, or the old value combined with it.
struct Update {
  View value;
  std::string_view combine;  // a pointwise primitive; empty: the update alone
};

View written(Graph& graph, View old, const Update& update) {
  if (update.combine.empty()) return update.value;
  const DType dtype = old.use.node->dtype;
  Unified both = unify(graph, {std::move(old), update.value});
  return {graph.pointwise(update.combine, std::move(both.uses), dtype), std::move(both.dims)};
}

// `x` with the window written, from dim `dim` on.
View with_window(Graph& graph, const View& x, const std::vector<Span>& spans, const Update& update,
                 std::size_t dim = 0) {
  const auto size = [&](std::size_t i) { return graph.size_of(x.dims[i]); };
  while (dim < spans.size() && spans[dim].count == size(dim)) ++dim;
  if (dim == spans.size()) return written(graph, x, update);
  const auto& [start, count] = spans[dim];
  const Dim end = start + count;
  const View window = slice_dim(graph, x, dim, start, count, 1);
  std::vector<View> pieces{with_window(graph, window, spans, update, dim + 1)};
  if (!(start == Dim(0))) pieces.insert(pieces.begin(), slice_dim(graph, x, dim, 0, start, 1));
  if (!(end == size(dim))) pieces.push_back(slice_dim(graph, x, dim, end, size(dim) - end, 1));
  return join_dim(graph, std::move(pieces), dim, Units::kJoined);
}

Views dynamic_update_slice(Translation& t) {
  t.require(t.eqn.in.size() >= 2 && t.eqn.out.size() == 1,
            "needs an operand, an update, one result");
  const Dims &shape = t.in_shape(), &window = t.in_shape(1);
  t.require(t.in.size() >= 2 + shape.size() && window.size() == shape.size(),
            "one start is needed for each dim");
  std::vector<Span> spans;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const auto start = known_start(t.graph, t.in[2 + dim].use, shape[dim], window[dim]);
    if (!start) return std::nullopt;
    spans.push_back({*start, window[dim]});
  }
  return one(with_window(t.graph, t.in[0], spans, {t.in[1], ""}));
}

// The updates of a scatter of one window, with the dims of the operand. nullopt for several
// windows.
std::optional<View> one_window(const Translation& t, const front::ScatterParams& params) {
  const Ints &window_dims = params.window_dims, &inserted = params.dropped;
  if (!params.operand_batching.empty()) return std::nullopt;
  const std::size_t rank = t.in[0].dims.size();
  t.require(window_dims.size() + inserted.size() == rank && std::ranges::is_sorted(window_dims),
            "the dimension numbers do not cover the operand");
  const View& updates = t.in[2];
  for (std::size_t dim = 0; dim < updates.dims.size(); ++dim) {
    if (!jaxport::contains(window_dims, dim) && !updates.dims[dim].empty()) return std::nullopt;
  }
  View window{updates.use, {}};
  std::size_t next = 0;
  for (std::size_t dim = 0; dim < rank; ++dim) {
    if (jaxport::contains(inserted, dim)) {
      window.dims.emplace_back();
      continue;
    }
    const auto from = static_cast<std::size_t>(window_dims[next++]);
    t.require(from < updates.dims.size(), "a window dim is out of range");
    window.dims.push_back(updates.dims[from]);
  }
  return window;
}

// The window of a scatter; nullopt when its place is not known, or not known to be inside.
std::optional<std::vector<Span>> known_spans(const Translation& t,
                                             const front::ScatterParams& params,
                                             const View& window) {
  const Ints& map = params.map;
  std::vector<Span> spans;
  for (const Labels& dim : window.dims) spans.push_back({0, t.graph.size_of(dim)});
  const View& indices = t.in[1];
  t.require(!indices.dims.empty(), "the indices have no dim");
  for (std::size_t k = 0; k < map.size(); ++k) {
    const std::size_t dim = t.axes({map[k]}, spans.size())[0];
    const View entry =
        slice_dim(t.graph, indices, indices.dims.size() - 1, static_cast<std::int64_t>(k), 1, 1);
    const auto start = size_value(t.graph, entry.use);
    if (!start || less_equal(0, *start) != Truth::kYes ||
        less_equal(*start + spans[dim].count, t.in_shape()[dim]) != Truth::kYes) {
      return std::nullopt;
    }
    spans[dim].start = *start;
  }
  return spans;
}

// The updates of a scatter that writes whole slices at several indices of one dim, with the dims of
// the operand; nullopt for others.
std::optional<View> slices_along(const Translation& t, const front::ScatterParams& params) {
  const Ints &window_dims = params.window_dims, &inserted = params.dropped;
  const View &indices = t.in[1], &updates = t.in[2];
  const bool is_one_dim = inserted.size() == 1 && inserted == params.map &&
                          params.operand_batching.empty() && indices.dims.size() == 2 &&
                          indices.dims[1].empty();
  if (!is_one_dim || updates.dims.size() != t.in[0].dims.size() ||
      window_dims.size() + 1 != updates.dims.size() || !std::ranges::is_sorted(window_dims)) {
    return std::nullopt;
  }
  View slices{updates.use, {}};
  Labels along;
  for (std::size_t dim = 0; dim < updates.dims.size(); ++dim) {
    if (!jaxport::contains(window_dims, dim)) along = updates.dims[dim];
  }
  for (std::int64_t dim : window_dims) {
    t.require(0 <= dim && dim < std::ssize(updates.dims), "a window dim is out of range");
    slices.dims.push_back(updates.dims[dim]);
  }
  const std::size_t axis = t.axes(inserted, updates.dims.size())[0];
  slices.dims.insert(slices.dims.begin() + static_cast<std::ptrdiff_t>(axis), along);
  return slices;
}

// x[..., start::step] is written; `step` divides the dim.
View with_teeth(Graph& graph, const View& x, std::size_t dim, const KnownSteps& at,
                const Update& update) {
  const Dim count = graph.size_of(update.value.dims[dim]);
  std::vector<View> teeth;
  for (std::int64_t k = 0; k < at.step; ++k) {
    View tooth = slice_dim(graph, x, dim, k, count, at.step);
    teeth.push_back(at.start == Dim(k) ? written(graph, std::move(tooth), update)
                                       : std::move(tooth));
  }
  Unified pieces = unify(graph, std::move(teeth));
  const Label along = graph.label(at.step);
  pieces.dims[dim].push_back(along);
  return {graph.stack(std::move(pieces.uses), along), std::move(pieces.dims)};
}

// x.at[..., start::step].set(y), as a window or a comb
Views strided_update(Translation& t, const front::ScatterParams& params, std::string_view combine) {
  const auto slices = slices_along(t, params);
  const auto at = slices ? known_steps(t.graph, t.in[1].use) : std::nullopt;
  if (!at || at->step < 1 || at->step > kMostTeeth || less_equal(0, at->start) != Truth::kYes) {
    return std::nullopt;
  }
  const View& x = t.in[0];
  const std::size_t dim = t.axes(params.dropped, x.dims.size())[0];
  const Dim count = t.graph.size_of(slices->dims[dim]), size = t.graph.size_of(x.dims[dim]);
  for (std::size_t i = 0; i < x.dims.size(); ++i) {
    if (i != dim && !(t.graph.size_of(slices->dims[i]) == t.in_shape()[i])) return std::nullopt;
  }
  if (at->step > 1) {
    const bool is_comb = less_equal(at->start, at->step - 1) == Truth::kYes;
    if (!is_comb || !at->start.is_static() || !(count * at->step == size)) return std::nullopt;
    return one(with_teeth(t.graph, x, dim, *at, {*slices, combine}));
  }
  if (less_equal(at->start + count, size) != Truth::kYes) return std::nullopt;
  std::vector<Span> spans;
  for (const Labels& labels : slices->dims) spans.push_back({0, t.graph.size_of(labels)});
  spans[dim].start = at->start;
  return one(with_window(t.graph, x, spans, {*slices, combine}));
}

Views scatter_with(Translation& t, std::string_view combine) {
  const auto params = front::ScatterParams::read(t.eqn);
  if (t.in.size() != 3 || t.eqn.out.size() != 1 || params.update) return std::nullopt;
  const auto window = one_window(t, params);
  if (!window) return strided_update(t, params, combine);
  const auto spans = known_spans(t, params, *window);
  if (!spans) return std::nullopt;
  return one(with_window(t.graph, t.in[0], *spans, {*window, combine}));
}

Views scatter(Translation& t) { return scatter_with(t, ""); }
Views scatter_add(Translation& t) { return scatter_with(t, "add"); }
Views scatter_max(Translation& t) { return scatter_with(t, "max"); }
Views scatter_min(Translation& t) { return scatter_with(t, "min"); }
Views scatter_mul(Translation& t) { return scatter_with(t, "mul"); }
Views scatter_sub(Translation& t) { return scatter_with(t, "sub"); }

constexpr TranslationRow kUpdateRows[] = {
    // sorted by primitive
    {"dynamic_update_slice", dynamic_update_slice},
    {"scatter", scatter},
    {"scatter-add", scatter_add},
    {"scatter-max", scatter_max},
    {"scatter-min", scatter_min},
    {"scatter-mul", scatter_mul},
    {"scatter-sub", scatter_sub},
};
static_assert(std::ranges::is_sorted(kUpdateRows, {}, &TranslationRow::primitive));

}  // namespace

std::span<const TranslationRow> update_translations() { return kUpdateRows; }

}  // namespace jaxport::axis
