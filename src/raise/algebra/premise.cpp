// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/premise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <vector>

#include "axis/graph/pattern.h"
#include "raise/algebra/views.h"
#include "raise/engine/raise.h"

namespace jaxport::raise {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Use;

// --- masks of attention

namespace {

constexpr double kMaskLevel = -1e4;
// exp of this is zero in f32 and f64, with room for scores of ordinary size.
constexpr double kFar = 1e3;
// Half a unit in the last place of this number in f32 is 4e22.
constexpr double kAbsorbing = -1e30;
constexpr double kLowestFinite = Preferences::kLowestFill;
// From one absorbing fill to the next; kLowestFinite allows six of them.
constexpr double kStep = 16;
constexpr std::size_t kMostFills = 6, kMostAdded = 4;
constexpr std::int64_t kMostElements = 1 << 20;

double largest(DType dtype) {
  if (dtype == DType::kF16) return 65504;
  return dtype == DType::kF64 ? std::numeric_limits<double>::max()
                              : static_cast<double>(std::numeric_limits<float>::max());
}

float rounded(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(value < -kLargest ? -kInfinity : value);
}

std::vector<float> subset_sums(const std::vector<double>& fills) {
  std::vector<float> sums{0};
  for (double fill : fills) {
    const std::size_t count = sums.size();
    for (std::size_t i = 0; i < count; ++i) sums.push_back(sums[i] + rounded(fill));
  }
  return sums;
}

}  // namespace

bool is_mask_fill(double fill) { return fill <= kMaskLevel; }

std::optional<double> scaled_fill(double fill, double factor, DType dtype) {
  const double scaled = fill * factor;
  if (!(factor > 0) || !(scaled <= -kFar)) return std::nullopt;
  if (std::isfinite(fill) && !is_held(scaled, dtype)) return std::nullopt;
  return scaled;
}

bool is_held(double value, DType dtype) { return std::abs(value) <= largest(dtype); }

bool absorbs(double fill) { return fill <= kAbsorbing; }

bool is_far_below(double fill, double other) {
  return fill <= other - std::max(kFar, 1e-3 * std::abs(other));
}

std::vector<double> absorbing_fills(const std::vector<double>& fills) {
  std::vector<double> levels;
  for (double fill : fills) {
    if (std::isfinite(fill)) levels.push_back(fill);
  }
  std::ranges::sort(levels);
  levels.erase(std::ranges::unique(levels).begin(), levels.end());
  if (levels.size() > kMostFills) return {};
  for (std::size_t i = 1; i < levels.size(); ++i) {
    if (!is_far_below(levels[i - 1], levels[i])) return {};
  }
  std::vector<double> result;
  for (double fill : fills) {
    const auto rank = std::ranges::lower_bound(levels, fill) - levels.begin();
    result.push_back(
        std::isfinite(fill) ? kLowestFinite / std::pow(kStep, static_cast<double>(rank)) : fill);
  }
  return result;
}

double finite_fill(double fill) { return std::isinf(fill) ? fill : std::max(fill, kLowestFinite); }

bool sums_stay_in_order(const std::vector<double>& fills) {
  if (fills.size() > kMostAdded) return false;
  std::vector<double> changed;
  for (double fill : fills) changed.push_back(finite_fill(fill));
  const std::vector<float> before = subset_sums(fills), after = subset_sums(changed);
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if ((before[i] < before[j]) != (after[i] < after[j]) ||
          (before[i] > before[j]) != (after[i] > after[j])) {
        return false;
      }
    }
  }
  return true;
}

namespace {

std::optional<Range> range_of_values(const Tensor& values) {
  Range range{kInfinity, -kInfinity, true};
  for (std::int64_t i = 0; i < values.size(); ++i) {
    const double value = values.at(i);
    if (std::isnan(value) || value == kInfinity) return std::nullopt;
    if (std::isinf(value)) {
      range.is_finite = false;
      continue;
    }
    range.lowest = std::min(range.lowest, value);
    range.highest = std::max(range.highest, value);
  }
  if (range.lowest > range.highest) return std::nullopt;
  return range;
}

std::optional<Range> either(const std::optional<Range>& a, const std::optional<Range>& b) {
  if (!a || !b) return std::nullopt;
  return Range{std::min(a->lowest, b->lowest), std::max(a->highest, b->highest),
               a->is_finite && b->is_finite};
}

std::optional<Range> range_of_closed(Graph& graph, const Use& use) {
  if (!is_closed(*use.node)) return std::nullopt;
  const Labels order = use.flat();
  std::int64_t elements = 1;
  for (Label label : order) elements *= graph.size(label).value();
  if (elements > kMostElements) return std::nullopt;
  return range_of_values(evaluated(graph, use, order));
}

}  // namespace

std::optional<Range> range_of(Graph& graph, const Use& use) {
  if (is_pointwise(use, "select_n") && use.node->edges.size() == 3) {
    return either(range_of(graph, graph.child(use, 1)), range_of(graph, graph.child(use, 2)));
  }
  if (use.node->kind == Kind::kConstant) return range_of_values(use.node->data);
  return range_of_closed(graph, use);
}

namespace {

double largest_magnitude(const Tensor& values) {
  double largest = 0;
  const std::int64_t count = std::min(values.size(), kMostElements);
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = std::abs(values.at(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

// A maximum or a part of numbers is as large as they are.
bool hands_numbers_on(Kind kind) {
  return axis::treats_labels_alike(kind) && kind != Kind::kContract;
}

}  // namespace

double largest_literal(const axis::Node& root) {
  constexpr std::size_t kMostNodes = 64;
  std::vector<const axis::Node*> seen{&root};
  double largest = 0;
  for (std::size_t next = 0; next < seen.size(); ++next) {
    const axis::Node& node = *seen[next];
    if (node.kind == Kind::kConstant && is_float(node.dtype))
      largest = std::max(largest, largest_magnitude(node.data));
    if (!hands_numbers_on(node.kind) || !is_float(node.dtype)) continue;
    for (const axis::Edge& edge : node.edges) {
      if (std::ranges::find(seen, edge.node) == seen.end()) seen.push_back(edge.node);
    }
    if (seen.size() > kMostNodes) return kInfinity;
  }
  return largest;
}

bool is_beyond(double fill, double literal) {
  constexpr double kMargin = 1e8;
  return absorbs(fill) && literal * kMargin <= -fill;
}

bool may_cancel(double fill, double literal) {
  constexpr double kMargin = 1e3;
  return !(literal * kMargin <= -fill);
}

// --- clamps

Use clamped_at_zero(Graph& graph, const Use& use) {
  if (is_pointwise(use, "select_n") && use.node->edges.size() == 3) {
    const Use test = graph.child(use, 0), u = graph.child(use, 1);
    const bool clamps = is_pointwise(test, "lt") && graph.child(test, 0) == u &&
                        is_zero(graph, graph.child(test, 1)) && is_zero(graph, graph.child(use, 2));
    return clamps ? u : Use{};
  }
  if (!is_pointwise(use, "max")) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    if (is_zero(graph, graph.child(use, i))) return graph.child(use, 1 - i);
  }
  return {};
}

// --- values that cancel

namespace {

constexpr std::size_t kMostSources = 96;
using Nodes = std::unordered_set<const axis::Node*>;

// The node and what it is computed from, as far as the bound allows.
Nodes unsorted_sources(const axis::Node& root) {
  Nodes unsorted_seen{&root};
  std::vector<const axis::Node*> pending{&root};
  for (std::size_t next = 0; next < pending.size() && pending.size() < kMostSources; ++next) {
    for (const axis::Edge& edge : pending[next]->edges) {
      if (unsorted_seen.insert(edge.node).second) pending.push_back(edge.node);
    }
  }
  return unsorted_seen;
}

bool is_number(const axis::Node& node) {
  return node.kind == axis::Kind::kConstant || node.kind == axis::Kind::kIota;
}

// Computed from constants and from what `of` is computed from, in a bounded number of nodes.
bool is_made_of(const axis::Node& value, const axis::Node& of) {
  if (value.edges.size() == 1 && value.edges[0].node == &of) return true;  // the usual maximum
  const Nodes unsorted_known = unsorted_sources(of);
  Nodes unsorted_seen{&value};
  std::vector<const axis::Node*> pending{&value};
  while (!pending.empty()) {
    const axis::Node& node = *pending.back();
    pending.pop_back();
    if (unsorted_known.contains(&node)) continue;
    if (node.edges.empty() && !is_number(node)) return false;
    for (const axis::Edge& edge : node.edges) {
      if (unsorted_seen.insert(edge.node).second) pending.push_back(edge.node);
    }
    if (unsorted_seen.size() > kMostSources) return false;
  }
  return true;
}

// A constant beside which the operation keeps a finite number finite, and an infinite one infinite.
bool is_harmless(const axis::Node& operation, const axis::Node& constant) {
  if (constant.dtype == DType::kBool) return true;
  if (!constant.out.empty() || !is_float(constant.dtype)) return false;
  const double value = constant.data.at(0);
  if (operation.name == "max") return value < kInfinity;
  if (operation.name == "min") return value > -kInfinity;
  if (operation.name == "clamp") return !std::isnan(value);
  return std::isfinite(value) && (operation.name == "select_n" || value != 0);
}

// Guards and scales: maximum, where(isfinite(maximum), maximum, 0), 2 maximum.
bool keeps_finite(const axis::Node& node) {
  constexpr std::string_view kGuards[] = {
      "clamp", "convert_element_type", "div", "max", "min", "mul", "select_n"};
  if (node.kind != axis::Kind::kPointwise ||
      std::ranges::find(kGuards, node.name) == std::end(kGuards)) {
    return false;
  }
  const auto is_constant = [](const axis::Edge& edge) {
    return edge.node->kind == axis::Kind::kConstant;
  };
  const bool scales = node.name == "mul" || node.name == "div";
  if (scales && !is_constant(node.edges[1])) return false;
  return std::ranges::all_of(node.edges, [&](const axis::Edge& edge) {
    return !is_constant(edge) || is_harmless(node, *edge.node);
  });
}

}  // namespace

bool is_made_of_maxima(const axis::Node& value, const axis::Node& of) {
  Nodes unsorted_seen{&value};
  std::vector<const axis::Node*> pending{&value};
  while (!pending.empty()) {
    const axis::Node& node = *pending.back();
    pending.pop_back();
    if (node.is(axis::Kind::kReduce, "reduce_max") || node.dtype == DType::kBool) {
      if (!is_made_of(node, of)) return false;
      continue;
    }
    if (node.kind == axis::Kind::kConstant) continue;  // its user has looked at it
    if (!keeps_finite(node)) return false;
    for (const axis::Edge& edge : node.edges) {
      if (unsorted_seen.insert(edge.node).second) pending.push_back(edge.node);
    }
    if (unsorted_seen.size() > kMostSources) return false;
  }
  return value.kind != axis::Kind::kConstant;
}

}  // namespace jaxport::raise
