// SPDX-License-Identifier: Apache-2.0
#include "lower/layout/layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "lower/layout/label_set.h"

namespace jaxport::lower {

bool divides_properly(const Dim& divisor, const Dim& value) {
  const auto quotient = exact_div(value, divisor);
  return quotient && !quotient->is_one();
}

namespace {

using Boundaries = std::vector<std::vector<Dim>>;  // by axis: strides at which a layout splits it

void add_boundaries(const Layout& layout, Boundaries& boundaries) {
  for (const PhysicalDim& dim : layout) {
    for (const AxisPiece& piece : dim) {
      if (boundaries.size() <= static_cast<std::size_t>(piece.axis)) {
        boundaries.resize(static_cast<std::size_t>(piece.axis) + 1);
      }
      auto& at = boundaries[piece.axis];
      for (const Dim& boundary : {piece.stride, piece.stride * piece.size}) {
        if (std::ranges::find(at, boundary) == at.end()) at.push_back(boundary);
      }
    }
  }
}

// Boundaries strictly inside a piece, from the outermost to the innermost.
std::vector<Dim> inner_boundaries(const AxisPiece& piece, const std::vector<Dim>& boundaries) {
  const Dim end = piece.stride * piece.size;
  std::vector<Dim> inner;
  for (const Dim& at : boundaries) {
    if (divides_properly(piece.stride, at) && divides_properly(at, end)) inner.push_back(at);
  }
  // Counted ahead: nothing may look at what is being sorted.
  const std::vector<Dim> all = inner;
  auto divisors = [&](const Dim& at) {
    return std::ranges::count_if(
        all, [&](const Dim& other) { return exact_div(at, other).has_value(); });
  };
  std::ranges::stable_sort(inner, std::greater<>(), divisors);
  return inner;
}

bool cut_side(Layout& layout, const Boundaries& boundaries) {
  for (PhysicalDim& dim : layout) {
    PhysicalDim pieces;
    for (const AxisPiece& piece : dim) {
      auto inner = inner_boundaries(piece, boundaries[piece.axis]);
      inner.push_back(piece.stride);
      Dim end = piece.stride * piece.size;
      for (const Dim& at : inner) {
        auto size = exact_div(end, at);
        if (!size) return false;
        pieces.push_back({piece.axis, at, *size});
        end = at;
      }
    }
    dim = std::move(pieces);
  }
  return true;
}

// After cutting, a side is a list of dims of positions: position i is the i-th piece of the target.
using Places = std::vector<std::vector<int>>;

struct Route {
  std::vector<Step> steps;
  double price = 0;
};

class Planner {
 public:
  Planner(const Layout& to, const Layout& to_as_asked) : to_(to), asked_(to_as_asked) {
    for (const PhysicalDim& dim : to) {
      for (const AxisPiece& piece : dim) {
        pieces_.push_back(piece);
        dim_of_.push_back(static_cast<int>(&dim - to.data()));
      }
    }
  }

  std::optional<Places> positions(const Layout& from) const {
    Places result;
    std::size_t count = 0;
    for (const PhysicalDim& dim : from) {
      auto& at = result.emplace_back();
      for (const AxisPiece& piece : dim) {
        auto found = std::ranges::find(pieces_, piece);
        if (found == pieces_.end()) return std::nullopt;
        at.push_back(static_cast<int>(found - pieces_.begin()));
        ++count;
      }
    }
    if (count != pieces_.size()) return std::nullopt;
    return result;
  }

  bool in_order(const Places& from) const {
    int next = 0;
    for (const auto& dim : from) {
      for (int at : dim) {
        if (at != next++) return false;
      }
    }
    return true;
  }

  // Split the dims of the source only where the target is not contiguous.
  static Places split_where_torn(const Places& from) {
    Places result;
    for (const auto& dim : from) {
      auto* run = &result.emplace_back();
      for (int at : dim) {
        if (!run->empty() && at != run->back() + 1) run = &result.emplace_back();
        run->push_back(at);
      }
    }
    return result;
  }

  // Maximal runs that are contiguous in both and lie inside one dim of the target, after the
  // target's unit dims.
  Places runs_inside_target_dims(const Places& from) const {
    Places result(static_cast<std::size_t>(
        std::ranges::count_if(to_, [](const PhysicalDim& dim) { return dim.empty(); })));
    bool open = false;
    for (const auto& dim : from) {
      for (int at : dim) {
        bool extends =
            open && at == result.back().back() + 1 && dim_of_[at] == dim_of_[result.back().back()];
        if (!extends) result.emplace_back();
        result.back().push_back(at);
        open = true;
      }
    }
    return result;
  }

  // [Reshape to `split`] Transpose [Reshape to the target].
  Route through(const Places& from, const Places& split) const {
    Route plan;
    if (split != from) add(plan, {{}, layout(split)}, kReshapePrice);
    const auto perm = permutation(split);
    Places moved;
    for (auto i : perm) moved.push_back(split[i]);
    if (!std::ranges::is_sorted(perm)) add(plan, {perm, layout(moved)}, kTransposePrice);
    if (moved != target()) add(plan, {{}, asked_}, kReshapePrice);
    return plan;
  }

 private:
  static void add(Route& plan, Step step, double price) {
    plan.steps.push_back(std::move(step));
    plan.price += price;
  }

  Places target() const {
    Places result(to_.size());
    for (std::size_t i = 0; i < dim_of_.size(); ++i) {
      result[dim_of_[i]].push_back(static_cast<int>(i));
    }
    return result;
  }

  Layout layout(const Places& at) const {
    Layout result;
    for (const auto& dim : at) {
      auto& pieces = result.emplace_back();
      for (int i : dim) pieces.push_back(pieces_[i]);
    }
    return merged(result);
  }

  // Dims of `split` in the target's order; unit dims travel to where the target has units, the rest
  // to the front.
  std::vector<std::int64_t> permutation(const Places& split) const {
    std::vector<std::int64_t> units, real;
    for (std::size_t i = 0; i < split.size(); ++i) {
      (split[i].empty() ? units : real).push_back(static_cast<std::int64_t>(i));
    }
    std::ranges::sort(real, {}, [&](std::int64_t i) { return split[i][0]; });
    std::vector<std::int64_t> placed;
    std::size_t next_unit = 0, next_real = 0;
    int owed = 0;  // pieces of the target not yet covered: a run may span several of its dims
    for (const PhysicalDim& dim : to_) {
      if (dim.empty()) {
        if (next_unit < units.size()) placed.push_back(units[next_unit++]);
        continue;
      }
      for (owed -= static_cast<int>(dim.size()); owed < 0; ++next_real) {
        placed.push_back(real[next_real]);
        owed += static_cast<int>(split[real[next_real]].size());
      }
    }
    std::vector<std::int64_t> result(units.begin() + static_cast<std::ptrdiff_t>(next_unit),
                                     units.end());
    result.insert(result.end(), placed.begin(), placed.end());
    return result;
  }

  const Layout& to_;
  const Layout& asked_;
  AxisPieces pieces_;
  std::vector<int> dim_of_;  // which dim of the target a piece lies in
};

}  // namespace

AxisPieces label_pieces(const axis::Pattern& axes, const Dims& sizes) {
  AxisPieces pieces(sizes.size());
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    Dim stride = 1;
    for (auto label = axes[axis].rbegin(); label != axes[axis].rend(); ++label) {
      const Dim& size = sizes[*label];
      pieces[*label] = {static_cast<std::int32_t>(axis), stride, size};
      stride = stride * size;
    }
  }
  return pieces;
}

Layout to_layout(const Arrangement& arrangement, const AxisPieces& pieces) {
  Layout layout;
  layout.reserve(arrangement.size());
  for (const axis::Labels& labels : arrangement) {
    PhysicalDim& dim = layout.emplace_back();
    for (axis::Label label : labels) {
      const AxisPiece& piece = pieces[label];
      if (piece.axis >= 0) dim.push_back(piece);
    }
  }
  return merged(layout);
}

Arrangement to_arrangement(const Layout& layout, const axis::Pattern& axes, const Dims& sizes) {
  const AxisPieces pieces = label_pieces(axes, sizes);
  const auto holds = [&](const AxisPiece& piece, axis::Label label) {
    return overlap(piece, pieces[label]);
  };
  // Of [4 B] seen as (B 4) nothing can be said about where the labels lie.
  const auto is_seen = [&](axis::Label label) {
    return std::ranges::any_of(layout, [&](const PhysicalDim& dim) {
      return std::ranges::any_of(dim, [&](const AxisPiece& piece) { return holds(piece, label); });
    });
  };
  LabelSet done(sizes.size());
  Arrangement result;
  for (const PhysicalDim& dim : layout) {
    axis::Labels labels;
    for (const AxisPiece& piece : dim) {
      const axis::Labels& axis = axes[piece.axis];
      const bool is_whole = !std::ranges::all_of(axis, is_seen);
      for (axis::Label label : axis) {
        if (done.has(label) || (!is_whole && !holds(piece, label))) continue;
        done.add({label});
        labels.push_back(label);
      }
    }
    if (!labels.empty() || dim.empty()) result.push_back(std::move(labels));
  }
  return result;
}

Layout merged(const Layout& layout) {
  Layout result;
  result.reserve(layout.size());
  for (const PhysicalDim& dim : layout) {
    PhysicalDim& out = result.emplace_back();
    for (const AxisPiece& piece : dim) {
      if (!out.empty() && out.back().axis == piece.axis &&
          out.back().stride == piece.stride * piece.size) {
        out.back() = {piece.axis, piece.stride, out.back().size * piece.size};
      } else {
        out.push_back(piece);
      }
    }
  }
  return result;
}

Dim size_of(const axis::Labels& labels, const Dims& sizes) {
  Dim size = 1;
  for (axis::Label label : labels) size = size * sizes[label];
  return size;
}

Dims sizes_of(const Layout& layout) {
  Dims sizes;
  sizes.reserve(layout.size());
  for (const PhysicalDim& dim : layout) {
    Dim size = 1;
    for (const AxisPiece& piece : dim) size = size * piece.size;
    sizes.push_back(size);
  }
  return sizes;
}

double price_of(const std::vector<Step>& steps) {
  return std::accumulate(steps.begin(), steps.end(), 0.0, [](double sum, const Step& step) {
    return sum + (step.perm.empty() ? kReshapePrice : kTransposePrice);
  });
}

bool cut(Layout& lhs, Layout& rhs) {
  Boundaries boundaries;
  add_boundaries(lhs, boundaries);
  add_boundaries(rhs, boundaries);
  return cut_side(lhs, boundaries) && cut_side(rhs, boundaries);
}

bool overlap(const AxisPiece& a, const AxisPiece& b) {
  if (a.axis != b.axis) return false;
  const Dim a_end = a.stride * a.size, b_end = b.stride * b.size;
  if (a.stride.is_static() && b.stride.is_static() && a_end.is_static() && b_end.is_static()) {
    return std::max(a.stride.value(), b.stride.value()) < std::min(a_end.value(), b_end.value());
  }
  auto starts_inside = [](const AxisPiece& inner, const AxisPiece& outer, const Dim& outer_end) {
    if (!exact_div(inner.stride, outer.stride)) return false;
    auto rest = exact_div(outer_end, inner.stride);
    return rest && !rest->is_one();
  };
  return starts_inside(a, b, b_end) || starts_inside(b, a, a_end);
}

namespace {

// Every axis as one dim, in the order in which the layout has them first.
Layout whole_axes(const Layout& layout) {
  Layout whole;
  for (const PhysicalDim& dim : layout) {
    for (const AxisPiece& piece : dim) {
      auto axis = std::ranges::find_if(
          whole, [&](const PhysicalDim& found) { return found[0].axis == piece.axis; });
      if (axis == whole.end()) axis = whole.insert(whole.end(), {AxisPiece{piece.axis, 1, 1}});
      (*axis)[0].size = (*axis)[0].size * piece.size;
    }
  }
  return whole;
}

// (2 6) and (3 4) of one axis, or [B T] and [T B]: the two sides have no common cut, but each has
// one with the whole axis.
std::optional<std::vector<Step>> through_whole_axes(const Layout& from, const Layout& to) {
  const Layout whole = whole_axes(to);
  if (whole == to || whole == from) return std::nullopt;
  auto steps = conversion(from, whole), last = conversion(whole, to);
  if (!steps || !last) return std::nullopt;
  const bool meet =
      !steps->empty() && !last->empty() && steps->back().perm.empty() && last->front().perm.empty();
  if (meet) steps->pop_back();
  steps->insert(steps->end(), last->begin(), last->end());
  return steps;
}

}  // namespace

std::optional<std::vector<Step>> conversion(const Layout& from, const Layout& to) {
  if (from == to) return std::vector<Step>{};
  Layout source = from, target = to;
  if (!cut(source, target)) return through_whole_axes(from, to);
  if (source == target) return std::vector<Step>{};
  Planner planner(target, to);
  auto positions = planner.positions(source);
  if (!positions) return through_whole_axes(from, to);
  if (planner.in_order(*positions)) return std::vector<Step>{{{}, to}};
  Route torn = planner.through(*positions, Planner::split_where_torn(*positions));
  Route runs = planner.through(*positions, planner.runs_inside_target_dims(*positions));
  return torn.price <= runs.price ? std::move(torn.steps) : std::move(runs.steps);
}

}  // namespace jaxport::lower
