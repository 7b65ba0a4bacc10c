// SPDX-License-Identifier: Apache-2.0
#include "axis/graph/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "axis/graph/pattern.h"
#include "jaxport/error.h"

namespace jaxport::axis {

Pattern broadcast_dims(Graph& graph, const Dims& shape) {
  Pattern dims;
  for (const Dim& size : shape) {
    dims.push_back(size.is_one() ? Labels{} : Labels{graph.label(size)});
  }
  return dims;
}

namespace {

// Runs of neighbouring labels of each axis that no group takes.
Pattern ungrouped_runs(const Use& use, const Labels& grouped) {
  Pattern runs;
  for (const Labels& axis : use.labels) {
    bool open = false;
    for (Label label : axis) {
      if (contains(grouped, label)) {
        open = false;
      } else if (std::exchange(open, true)) {
        runs.back().push_back(label);
      } else {
        runs.push_back({label});
      }
    }
  }
  return runs;
}

// Makes each group of labels one label by a single relayout; `merged` are the new labels. The other
// labels keep their names.
Use merge_groups(Graph& graph, const Use& use, const Pattern& groups, Labels& merged) {
  Pattern axes = groups;
  const Pattern runs = ungrouped_runs(use, flatten(groups));
  axes.insert(axes.end(), runs.begin(), runs.end());
  Use result = graph.relayout(use, axes);
  for (std::size_t i = 0; i < groups.size(); ++i) merged.push_back(result.labels[i][0]);
  std::ranges::copy(runs, result.labels.begin() + std::ssize(groups));
  return result;
}

}  // namespace

View merge_dim(Graph& graph, const View& view, std::size_t dim) {
  if (view.dims[dim].empty() || (view.dims[dim].size() == 1 && varies(view, dim))) return view;
  Labels merged;
  View result{merge_groups(graph, view.use, {view.dims[dim]}, merged), view.dims};
  result.dims[dim] = merged;
  return result;
}

Use positional(Graph& graph, const View& view) {
  Pattern axes;
  std::ranges::copy_if(view.dims, std::back_inserter(axes),
                       [](const Labels& dim) { return !dim.empty(); });
  return graph.relayout(view.use, axes);
}

// --- reshape

namespace {

// Neighbouring dims before and after that hold the same elements.
struct Segment {
  std::size_t old_begin, old_end, new_begin, new_end;
};

// Cuts both shapes where the products of their leading dims agree, as early as that can be shown.
class Segmentation {
 public:
  Segmentation(const Dims& before, const Dims& after) : before_(before), after_(after) {}

  std::vector<Segment> run() {
    while (old_ < before_.size() || new_ < after_.size()) {
      Segment segment{old_, old_, new_, new_};
      Dim left = take_old(), right = take_new();
      while (!(left == right) && (old_ < before_.size() || new_ < after_.size())) {
        if (wants_old(left, right)) {
          left = left * take_old();
        } else {
          right = right * take_new();
        }
      }
      segment.old_end = old_;
      segment.new_end = new_;
      segments_.push_back(segment);
    }
    return segments_;
  }

 private:
  Dim take_old() { return old_ < before_.size() ? before_[old_++] : Dim(1); }
  Dim take_new() { return new_ < after_.size() ? after_[new_++] : Dim(1); }

  bool wants_old(const Dim& left, const Dim& right) const {
    if (old_ == before_.size()) return false;
    if (new_ == after_.size()) return true;
    if (left.is_static() && right.is_static()) return left.value() < right.value();
    return exact_div(right, left).has_value() || !exact_div(left, right);
  }

  const Dims &before_, &after_;
  std::size_t old_ = 0, new_ = 0;
  std::vector<Segment> segments_;
};

std::vector<Segment> segments(const Dims& before, const Dims& after) {
  const bool empty = std::ranges::find(before, Dim(0)) != before.end();
  if (empty) return {{0, before.size(), 0, after.size()}};  // nothing tells the dims apart
  return Segmentation(before, after).run();
}

Labels labels_between(const Pattern& dims, std::size_t begin, std::size_t end) {
  return axis::flatten(Pattern(dims.begin() + static_cast<std::ptrdiff_t>(begin),
                               dims.begin() + static_cast<std::ptrdiff_t>(end)));
}

}  // namespace

View reshape(Graph& graph, const View& view, const Dims& shape) {
  Dims before;
  for (const Labels& dim : view.dims) before.push_back(graph.size_of(dim));
  const Pattern dims = broadcast_dims(graph, shape);
  Substitution cuts;     // of labels of the view
  Substitution results;  // of labels of `dims`
  Pattern unfit;         // products that have to be one label before they can be cut
  Pattern unfit_dims;    // into these
  for (const Segment& segment : segments(before, shape)) {
    const Labels sequence = labels_between(view.dims, segment.old_begin, segment.old_end);
    const Labels wanted = labels_between(dims, segment.new_begin, segment.new_end);
    if (auto refined = refine(graph, std::array{sequence, wanted})) {
      for (Label label : sequence) cuts.set(label, refined->terms[0](Labels{label}));
      for (Label label : wanted) results.set(label, refined->terms[1](Labels{label}));
    } else {
      unfit.push_back(sequence);
      unfit_dims.push_back(wanted);
    }
  }
  View result{view.use, results(dims)};
  if (!unfit.empty()) {
    Labels merged;
    result.use = merge_groups(graph, view.use, unfit, merged);
    for (std::size_t i = 0; i < merged.size(); ++i) cuts.set(merged[i], unfit_dims[i]);
  }
  result.use = cuts(result.use);
  // A reshape back may fit what an earlier one merged.
  while (result.use.node->kind == Kind::kRelayout) {
    Use inner = graph.child(result.use, 0);
    if (!inner) break;
    result.use = std::move(inner);
  }
  return result;
}

// --- slice

namespace {

View with_dim(View view, std::size_t dim, Labels labels) {
  view.dims[dim] = std::move(labels);
  return view;
}

Labels unless_unit(Graph& graph, const Dim& size) {
  return size.is_one() ? Labels{} : Labels{graph.label(size)};
}

// Index `index` of the product of `along`, as one pick for each label; empty when a size that the
// digits depend on is symbolic.
Use pick_product(Graph& graph, Use use, const Labels& along, std::int64_t index) {
  for (std::size_t i = along.size(); i-- > 0;) {
    const Dim size = graph.size(along[i]);
    const bool leading = i == 0 || index == 0;
    if (!leading && !size.is_static()) return {};
    use = graph.pick(std::move(use), along[i], leading ? index : index % size.value());
    index = leading ? 0 : index / size.value();
  }
  return use;
}

// A slice that is one of k equal parts of the dim: index `index` of (k count) when contiguous, of
// (count k) when strided.
struct EqualPart {
  Dim parts;
  std::int64_t index;
  bool leading;
};
std::optional<EqualPart> equal_part(const Dim& size, const Dim& start, const Dim& count,
                                    std::int64_t stride) {
  const auto parts = exact_div(size, count);
  if (!parts) return std::nullopt;
  if (stride == 1) {
    const auto index = start == Dim(0) ? std::optional(Dim(0)) : exact_div(start, count);
    if (!index || !index->is_static()) return std::nullopt;
    return EqualPart{*parts, index->value(), true};
  }
  const bool strided = *parts == Dim(stride) && start.is_static() && start.value() < stride;
  return strided ? std::optional(EqualPart{*parts, start.value(), false}) : std::nullopt;
}

std::optional<View> slice_as_pick(Graph& graph, const View& view, std::size_t dim,
                                  const EqualPart& part, const Dim& count) {
  Labels wanted = unless_unit(graph, count);
  const Label index = graph.label(part.parts);
  wanted.insert(part.leading ? wanted.begin() : wanted.end(), index);
  const auto refined = refine(graph, std::array{view.dims[dim], wanted});
  if (!refined) return std::nullopt;
  const Labels picked = refined->terms[1](Labels{index});
  Use use = pick_product(graph, refined->terms[0](view.use), picked, part.index);
  if (!use) return std::nullopt;
  View cut = refined->terms[0](view);
  return View{std::move(use), with_dim(std::move(cut), dim, without(refined->labels, picked)).dims};
}

}  // namespace

View slice_dim(Graph& graph, const View& view, std::size_t dim, const Dim& start, const Dim& count,
               std::int64_t stride) {
  const Dim size = graph.size_of(view.dims[dim]);
  if (stride == 1 && count == size) return view;
  if (!varies(view, dim)) return with_dim(view, dim, unless_unit(graph, count));
  if (auto part = equal_part(size, start, count, stride)) {
    if (auto picked = slice_as_pick(graph, view, dim, *part, count)) return *picked;
  }
  // Trailing labels that the slice keeps whole are not touched.
  Labels lead = view.dims[dim], trail;
  Dim lead_start = start, lead_count = count;
  while (stride == 1 && lead.size() > 1) {
    const Dim last = graph.size(lead.back());
    const auto fewer_start =
        lead_start == Dim(0) ? std::optional(Dim(0)) : exact_div(lead_start, last);
    const auto fewer_count = exact_div(lead_count, last);
    if (!fewer_start || !fewer_count) break;
    trail.insert(trail.begin(), lead.back());
    lead.pop_back();
    lead_start = *fewer_start;
    lead_count = *fewer_count;
  }
  Use use = view.use;
  if (lead.size() > 1 && intersects(lead, use.flat())) {
    Labels merged;
    use = merge_groups(graph, use, {lead}, merged);
    lead = merged;
  }
  Labels rest = unless_unit(graph, lead_count);
  const Dim limit =
      lead_count == Dim(0) ? lead_start : lead_start + (lead_count - 1) * Dim(stride) + 1;
  use = graph.slice(std::move(use), lead[0], rest.empty() ? std::nullopt : std::optional(rest[0]),
                    lead_start, limit, stride);
  rest.insert(rest.end(), trail.begin(), trail.end());
  return {std::move(use), with_dim(view, dim, std::move(rest)).dims};
}

// --- operands of one node

namespace {

// Dims of one label each whose symbolic sizes JAX knows to be equal and we cannot show to be.
Refined take_as_equal(Graph& graph, std::span<const Labels> factorisations) {
  for (const Labels& labels : factorisations) {
    const Dim first = graph.size(factorisations[0][0]), other = graph.size(labels[0]);
    if (equal(first, other) == Truth::kNo) {
      throw Error("E032",
                  fmt::format("sizes {} and {} of one dim differ", first.str(), other.str()));
    }
  }
  const Label common = graph.label(graph.size_of(factorisations[0]));
  Refined refined{{common}, std::vector<Substitution>(factorisations.size())};
  for (std::size_t i = 0; i < factorisations.size(); ++i) {
    refined.terms[i].set(factorisations[i][0], {common});
  }
  return refined;
}

}  // namespace

Labels align(Graph& graph, std::span<View> views, std::span<const std::size_t> dims) {
  std::vector<std::size_t> varying;
  std::vector<Labels> factorisations;
  Labels repeated;  // what a dim that nobody varies along looks like
  for (std::size_t i = 0; i < views.size(); ++i) {
    const Labels& dim = views[i].dims[dims[i]];
    if (varies(views[i], dims[i])) {
      varying.push_back(i);
      factorisations.push_back(dim);
    } else if (!dim.empty() && repeated.empty()) {
      repeated = unless_unit(graph, graph.size_of(dim));
    }
  }
  if (varying.empty()) return repeated;
  auto refined = refine(graph, factorisations);
  if (!refined) {
    for (std::size_t i : varying) views[i] = merge_dim(graph, views[i], dims[i]);
    factorisations.clear();
    for (std::size_t i : varying) factorisations.push_back(views[i].dims[dims[i]]);
    refined = refine(graph, factorisations);
    if (!refined) refined = take_as_equal(graph, factorisations);
  }
  for (std::size_t i = 0; i < varying.size(); ++i) {
    views[varying[i]] = refined->terms[i](views[varying[i]]);
  }
  return refined->labels;
}

Unified unify(Graph& graph, std::vector<View> views) {
  std::size_t rank = 0;
  for (const View& view : views) rank = std::max(rank, view.dims.size());
  std::vector<std::size_t> positions;  // of the others
  std::vector<View> ranked;
  Unified unified{std::vector<Use>(views.size()), {}};
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (views[i].dims.size() == rank) {
      positions.push_back(i);
      ranked.push_back(std::move(views[i]));
    } else {
      unified.uses[i] = std::move(views[i].use);
    }
  }
  for (std::size_t dim = 0; dim < rank; ++dim) {
    unified.dims.push_back(align(graph, ranked, std::vector<std::size_t>(ranked.size(), dim)));
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    unified.uses[positions[i]] = std::move(ranked[i].use);
  }
  return unified;
}

namespace {

// Equal pieces: index i of a new leading label of the dim.
View concatenate_equal(Graph& graph, std::vector<View> pieces, std::size_t axis) {
  const Label along = graph.label(std::ssize(pieces));
  Unified unified = unify(graph, std::move(pieces));
  View result{graph.stack(std::move(unified.uses), along), std::move(unified.dims)};
  result.dims[axis].insert(result.dims[axis].begin(), along);
  return result;
}

View concatenate_unequal(Graph& graph, std::vector<View> pieces, std::size_t axis,
                         const Dim& size) {
  std::vector<std::optional<Label>> joined;
  for (View& piece : pieces) {
    piece = merge_dim(graph, piece, axis);
    const Labels& dim = piece.dims[axis];
    joined.push_back(dim.empty() ? std::nullopt : std::optional(dim[0]));
    piece.dims.erase(piece.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  Unified unified = unify(graph, std::move(pieces));
  const Label to = graph.label(size);
  View result{graph.concat(std::move(unified.uses), joined, to), std::move(unified.dims)};
  result.dims.insert(result.dims.begin() + static_cast<std::ptrdiff_t>(axis), Labels{to});
  return result;
}

}  // namespace

View join_dim(Graph& graph, std::vector<View> pieces, std::size_t dim, Units units) {
  std::vector<View> present;
  Dims sizes;
  for (View& piece : pieces) {
    const Dim size = graph.size_of(piece.dims[dim]);
    if (size == Dim(0)) continue;
    sizes.push_back(size);
    present.push_back(std::move(piece));
  }
  if (present.empty()) return std::move(pieces[0]);
  if (present.size() == 1) return std::move(present[0]);
  const bool equal_sizes =
      std::ranges::all_of(sizes, [&](const Dim& size) { return size == sizes[0]; });
  const bool stacks = equal_sizes && (units == Units::kStacked || !sizes[0].is_one());
  if (stacks) return concatenate_equal(graph, std::move(present), dim);
  Dim total = 0;
  for (const Dim& size : sizes) total = total + size;
  return concatenate_unequal(graph, std::move(present), dim, total);
}

}  // namespace jaxport::axis
