// SPDX-License-Identifier: Apache-2.0
#include "raise/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "raise/activation.h"
#include "raise/cone.h"
#include "raise/views.h"

namespace jaxport::raise {
namespace {

using axis::Use;

// The first points tell most functions apart. Those around zero see an added eps, the large ones
// see saturation; none is so large that exp overflows where a careful spelling would not.
constexpr double kPoints[] = {-1.3, 0.9, -0.31, 2.4,   -1e-3, -1e-7, 0,    1e-7, 1e-3,
                              -200, -60, -20,   -9.5,  -6.1,  -4,    -3.2, -3,   -2.9,
                              -2,   -1,  -0.7,  -0.05, 0.04,  0.3,   1,    1.7,  2.95,
                              3,    3.3, 4.1,   5.7,   6.3,   9,     21,   60,   200};

// A spelling that treats these differently, such as jnp.nan_to_num on the way, is another function.
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSpecial[] = {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()};

// Real spellings of an activation pass few values on the way down.
constexpr int kMaxBases = 6;
constexpr std::size_t kMaxPaired = 8;

struct Tolerance {
  double relative, absolute;
  bool accepts(double a, double b) const {
    if (!std::isfinite(b)) return a == b || (std::isnan(a) && std::isnan(b));
    return std::abs(a - b) <= absolute + relative * std::abs(b);
  }
};
// A loose absolute tolerance would swallow an added eps.
Tolerance strict(DType dtype) { return {dtype == DType::kF64 ? 1e-12 : 1e-5, 1e-13}; }
constexpr Tolerance kLoose{0.02, 0.02};

// What the tolerance cannot see may still matter: max(x, 1e-20) guards a division, max(x, 0) does
// not.
bool has_unseen_literal(const Cone& cone) {
  constexpr double kLeast = 1e-9;
  return std::ranges::any_of(
      cone.literals(), [](double literal) { return literal != 0 && std::abs(literal) < kLeast; });
}

// Special points, and points at and around the literals, their differences and ratios: a threshold
// far out is seen.
std::vector<double> own_points(const Cone& cone) {
  std::vector<double> centres = cone.literals();
  const auto paired = std::span(cone.literals()).first(std::min(centres.size(), kMaxPaired));
  for (double a : paired) {
    for (double b : paired) {
      centres.push_back(a - b);
      if (b != 0) centres.push_back(a / b);
    }
  }
  std::vector<double> points(std::begin(kSpecial), std::end(kSpecial));
  for (double centre : centres) {
    if (!std::isfinite(centre)) continue;
    for (double factor : {0.999, 1.0, 1.001}) {
      points.push_back(centre * factor);
      points.push_back(-centre * factor);
    }
  }
  return points;
}

// The cone's values at kPoints, computed when somebody asks: most functions differ at the first.
class Samples {
 public:
  explicit Samples(const Cone& cone) : cone_(cone) { values_.reserve(std::size(kPoints)); }
  const Cone& cone() const { return cone_; }
  double at(std::size_t i) {
    while (values_.size() <= i) values_.push_back(cone_.at(kPoints[values_.size()]));
    return values_[i];
  }

 private:
  const Cone& cone_;
  std::vector<double> values_;
};

// A function and its alpha, to be compared with what the cone computes.
struct Candidate {
  const Activation* activation;
  double alpha;
  double value(double x) const { return activation->value(x, alpha); }
};

bool agrees(Samples& samples, const Candidate& candidate, const Tolerance& tolerance) {
  for (std::size_t i = 0; i < std::size(kPoints); ++i) {
    if (!tolerance.accepts(samples.at(i), candidate.value(kPoints[i]))) return false;
  }
  return true;
}

bool agrees_at_own_points(const Cone& cone, const Candidate& candidate,
                          const Tolerance& tolerance) {
  return std::ranges::all_of(own_points(cone), [&](double x) {
    return tolerance.accepts(cone.at(x), candidate.value(x));
  });
}

// alpha is 1 (which no spelling writes down), a literal, or one over a literal.
std::vector<Candidate> candidates(const Activation& activation, const Cone& cone) {
  if (activation.alpha.is_empty()) return {{&activation, 0}};
  std::vector<Candidate> result;
  const auto add = [&](double alpha) {
    if (activation.alpha.has(alpha)) result.push_back({&activation, alpha});
  };
  add(1);
  for (double literal : cone.literals()) add(std::abs(literal));
  for (double literal : cone.literals()) add(1 / std::abs(literal));
  return result;
}

template <class Visit>
void for_each_candidate(const Matcher& m, Samples& samples, Visit visit) {
  for (const Activation& activation : activations()) {
    if (!m.allows(activation.name)) continue;
    for (const Candidate& candidate : candidates(activation, samples.cone())) visit(candidate);
  }
}

std::optional<Candidate> identify(const Matcher& m, Samples& samples, DType dtype) {
  if (has_unseen_literal(samples.cone())) return std::nullopt;
  const Tolerance tolerance = strict(dtype);
  std::optional<Candidate> found;
  for_each_candidate(m, samples, [&](const Candidate& candidate) {
    if (!found && agrees(samples, candidate, tolerance) &&
        agrees_at_own_points(samples.cone(), candidate, tolerance)) {
      found = candidate;
    }
  });
  return found;
}

// Where a candidate differs most from the cone, and by how much.
struct Difference {
  double value, at;
};
Difference difference(const Cone& cone, const Candidate& candidate) {
  std::vector<double> points = own_points(cone);
  points.insert(points.end(), std::begin(kPoints), std::end(kPoints));
  Difference worst{0, 0};
  for (double x : points) {
    const double got = cone.at(x), want = candidate.value(x);
    if (!std::isfinite(want) && kLoose.accepts(got, want)) continue;  // inf - inf is no difference
    const double value = std::abs(got - want);
    if (std::isnan(value)) return {kInfinity, x};
    if (value > worst.value) worst = {value, x};
  }
  return worst;
}

std::string reason(const Difference& difference) {
  if (std::isinf(difference.value)) return fmt::format("the values differ at {}", difference.at);
  return fmt::format("the values differ by {:.1g} at {:.4g}", difference.value, difference.at);
}

// Says by how much the nearest activation is missed. False when none is near.
bool explain(const Matcher& m, const Use& root, Samples& samples) {
  std::string_view nearest;
  Difference least{0, 0};
  for_each_candidate(m, samples, [&](const Candidate& candidate) {
    if (!agrees(samples, candidate, kLoose)) return;
    const Difference found = difference(samples.cone(), candidate);
    if (!nearest.empty() && found.value >= least.value) return;
    nearest = candidate.activation->name;
    least = found;
  });
  if (nearest.empty()) return false;
  m.miss(nearest, root, reason(least));
  return true;
}

Use raised(axis::Graph& graph, const Candidate& candidate, const Use& base) {
  front::Attrs attrs;
  if (!candidate.activation->alpha.is_empty()) {
    attrs = {{"alpha", front::Attr{as_written(candidate.alpha, base.node->dtype)}}};
  }
  return graph.pointwise(candidate.activation->name, {base}, base.node->dtype, std::move(attrs));
}

}  // namespace

Use match_activation(const Matcher& m, const Use& root) {
  const DType dtype = root.node->dtype;
  if (!is_float(dtype)) return {};
  const axis::Labels labels = root.flat();
  Cone cone(m.graph, root);
  Use found;
  bool explained = false;
  for (int i = 0; i < kMaxBases && cone.next(); ++i) {
    const Use& base = cone.base();
    if (!cone.is_curved() || base.node->dtype != dtype) continue;
    if (!same_set(base.flat(), labels)) continue;
    // The deepest base wins: relu(relu(x)) is relu(x).
    Samples samples(cone);
    if (auto candidate = identify(m, samples, dtype)) {
      found = raised(m.graph, *candidate, base);
    } else if (!found && !explained && !cone.has_raised()) {
      explained = explain(m, root, samples);
    }
  }
  return found;
}

}  // namespace jaxport::raise
