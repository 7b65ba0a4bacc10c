// SPDX-License-Identifier: Apache-2.0
// Activations are recognised by what they compute, not by their spelling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "raise/algebra/cone.h"
#include "raise/algebra/piecewise.h"
#include "raise/algebra/views.h"
#include "raise/engine/rules.h"
#include "raise/rules/activation.h"

namespace jaxport::raise {
namespace {

using axis::Use;

// These points only choose what is worth a proof; the first tell most functions apart.
constexpr double kPoints[] = {-1.3, 0.9, -0.31, 2.4, -20, -6.1, -3.2, 0, 0.04, 3.3, 5.7, 9, 60};

// A spelling that treats these differently, such as jnp.nan_to_num on the way, is another function.
constexpr double kSpecial[] = {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()};

// Real spellings of an activation pass few values on the way down.
constexpr int kMaxBases = 6;

bool is_like(double a, double b) {
  constexpr double kTolerance = 0.02;
  return std::abs(a - b) <= kTolerance * (1 + std::abs(b));
}

// Up to the roundings of literals.
bool is_same(double a, double b) {
  constexpr double kTolerance = 1e-6;
  if (!std::isfinite(b)) return a == b || (std::isnan(a) && std::isnan(b));
  return std::abs(a - b) <= kTolerance * std::abs(b);
}

// The cone's values at kPoints, computed when they are asked for: most functions differ at the
// first.
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

bool is_like(Samples& samples, const Candidate& candidate) {
  for (std::size_t i = 0; i < std::size(kPoints); ++i) {
    if (!is_like(samples.at(i), candidate.value(kPoints[i]))) return false;
  }
  return true;
}

// alpha is what the node will have: ONNX keeps it in f32.
std::optional<Candidate> candidate_for(const Activation& activation, const Cone& cone,
                                       DType dtype) {
  if (activation.alpha.is_empty()) return Candidate{&activation, 0};
  const bool is_narrow = dtype != DType::kF64 && !activation.alpha.is_jump;
  const double alpha = rounded_to(is_narrow ? DType::kF32 : dtype,
                                  activation.solve([&](double x) { return cone.at(x); }));
  if (!activation.alpha.has(alpha)) return std::nullopt;
  return Candidate{&activation, alpha};
}

// Where the cone is not shown to be the candidate; nullopt when it is.
std::optional<Difference> difference(const Cone& cone, const Candidate& candidate, DType dtype) {
  for (double x : kSpecial) {
    if (!is_same(cone.at(x), candidate.value(x))) return Difference{x, x};
  }
  return find_difference(
      [&](const Form& x) { return cone.on(x); },
      [&](const Form& x) { return candidate.activation->form(x, candidate.alpha); }, dtype);
}

std::string reason(const Cone& cone, const Candidate& candidate, const Difference& found) {
  const bool is_point = found.lo == found.hi || std::isnan(found.lo);
  const double x = is_point ? found.lo : Piece{found.lo, found.hi}.inside();
  const double value = std::abs(cone.at(x) - candidate.value(x));
  if (value > 0 && std::isfinite(value)) {
    return fmt::format("the values differ by {:.1g} at {:.4g}", value, x);
  }
  if (is_point) return fmt::format("the values differ at {}", x);
  return fmt::format("not the same expression between {:.4g} and {:.4g}", found.lo, found.hi);
}

// The activation that a cone resembles most, and why it is not that one.
struct NearMiss {
  std::string_view name;
  std::string reason;
  double distance = kInfinity;
};

double distance(Samples& samples, const Candidate& candidate) {
  double most = 0;
  for (std::size_t i = 0; i < std::size(kPoints); ++i) {
    most = std::max(most, std::abs(samples.at(i) - candidate.value(kPoints[i])));
  }
  return most;
}

std::optional<Candidate> identify(const Matcher& m, Samples& samples, DType dtype,
                                  NearMiss& nearest) {
  const Cone& cone = samples.cone();
  for (const Activation& activation : activations()) {
    if (!m.allows(activation.name)) continue;
    const auto candidate = candidate_for(activation, cone, dtype);
    if (!candidate || !is_like(samples, *candidate)) continue;
    const auto found = difference(cone, *candidate, dtype);
    if (!found) return candidate;
    const double away = distance(samples, *candidate);
    if (away >= nearest.distance) continue;
    nearest = {activation.name, reason(cone, *candidate, *found), away};
  }
  return std::nullopt;
}

Use raised(axis::Graph& graph, const Candidate& candidate, const Use& base) {
  front::Attrs attrs;
  if (!candidate.activation->alpha.is_empty()) {
    attrs = to_attrs(AlphaAttr{as_written(candidate.alpha, base.node->dtype)});
  }
  return graph.pointwise(candidate.activation->name, {base}, base.node->dtype, std::move(attrs));
}

// The raised node when `root` is an activation of some value below it. One call serves the rules
// of all activations.
Use match_activation(const Matcher& m, const Use& root) {
  const DType dtype = root.node->dtype;
  if (!is_float(dtype)) return {};
  const axis::Labels labels = root.flat();
  Cone cone(m.graph, root);
  Use found;
  NearMiss nearest;
  for (int i = 0; i < kMaxBases && cone.next(); ++i) {
    const Use& base = cone.base();
    if (!cone.is_curved() || base.node->dtype != dtype) continue;
    if (!same_set(base.flat(), labels)) continue;
    // The deepest base wins: relu(relu(x)) is relu(x).
    Samples samples(cone);
    NearMiss near;
    if (auto candidate = identify(m, samples, dtype, near)) {
      if (cone.picks_shared_value(m.uses)) {
        m.miss(candidate->activation->name, root,
               "another user may compare a part with the result");
        continue;
      }
      found = raised(m.graph, *candidate, base);
    } else if (nearest.name.empty() && !cone.has_raised()) {
      nearest = std::move(near);
    }
  }
  if (!found && !nearest.name.empty()) m.miss(nearest.name, root, nearest.reason);
  return found;
}

std::vector<Rule> one_rule_each() {
  // The names at which the spelling of an activation may end.
  const std::vector<std::string_view> roots = {"add", "clamp", "div", "log",      "log1p",
                                               "max", "min",   "mul", "select_n", "sub"};
  std::vector<Rule> rules;
  for (const Activation& activation : activations()) {
    rules.push_back({activation.name, roots, match_activation});
  }
  return rules;
}

}  // namespace

Rules activation_rules() {
  static const std::vector<Rule> kRules = one_rule_each();
  return kRules;
}

}  // namespace jaxport::raise
