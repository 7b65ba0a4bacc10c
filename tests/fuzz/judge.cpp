// SPDX-License-Identifier: Apache-2.0
// A difference counts when it is larger than what rounding makes of this program at this input. How
// much that is, is measured: the program as written runs in f64 with every rounding wrong by a
// random amount.
//
//   in f64   1e-9 of the value and 1e-13, 40 times what roundings of 1e-14 give, and 2^-22 of the
//            error that the program itself has in f32
//   in f32   1e-4 of the value and 2.5e-7, 40 times what roundings of 1e-6 give, and 64 times the
//            error of the program as written
//   16 bits  as f32 with roundings of the type: a raised node of such a type rounds once where the
//            program as written rounds after each operation
//
// Errors are measured against the f64 run of the program as written. Where f32 as written gives inf
// or NaN and f64 does not, the raised program may be as good as f64.
#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common.h"
#include "edit.h"
#include "eval/eval.h"
#include "interpret.h"
#include "jaxport/error.h"
#include "liberty.h"
#include "values.h"

namespace jaxport::fuzz {
namespace {

struct Bounds {
  double relative, absolute, noise, error;
};
constexpr Bounds kBounds64{1e-9, 1e-13, 1e-14, 0x1p-22};
constexpr Bounds kBounds32{1e-4, 2.5e-7, 1e-6, 64};

Bounds bounds_of(const Runs& runs) {
  const int bits = mantissa_bits(runs.narrowest);
  if (bits >= mantissa_bits(DType::kF32)) return runs.dtype == DType::kF64 ? kBounds64 : kBounds32;
  const double rounding = std::ldexp(1, -bits);
  return {8 * rounding, 8 * rounding, rounding, 64};
}

bool same_value(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

double distance(double a, double b) {
  if (same_value(a, b)) return 0;
  return std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : kInf;
}

// A result of 16 bits is rounded up or down.
double rounding_of(DType dtype) {
  const int bits = mantissa_bits(dtype);
  return bits == 0 ? 0 : std::ldexp(1, -bits);
}

struct Element {
  std::size_t result;
  std::int64_t index;
};

std::vector<Element> suspects(const Runs& runs, const Bounds& bounds) {
  std::vector<Element> found;
  for (std::size_t k = 0; k < runs.plain.size(); ++k) {
    const Tensor &plain = runs.plain[k], &raised = runs.raised[k];
    if (plain.dtype == raised.dtype && same_bytes(plain, raised)) continue;
    for (std::int64_t i = 0; i < plain.size(); ++i) {
      const double u = plain.at(i), v = raised.at(i);
      if (same_value(u, v)) continue;
      const double relative = std::max(bounds.relative, rounding_of(plain.dtype));
      if (distance(u, v) > relative * std::abs(u) + bounds.absolute) found.push_back({k, i});
    }
  }
  return found;
}

// Nothing when the program cannot be run.
template <class Run>
std::vector<Tensor> tried(const Run& run) {
  try {
    return run();
  } catch (const Error&) {
    return {};
  }
}

bool is_narrow(DType dtype) { return mantissa_bits(dtype) < mantissa_bits(DType::kF32); }

// What rounding may do to each element.
class Slack {
 public:
  Slack(const Runs& runs, const Bounds& bounds) : runs_(runs), bounds_(bounds) {
    wide_ = runs.f64;
    inputs_ = cast_all(runs.inputs, DType::kF32, DType::kF64);
    const bool widen = is_narrow(runs.narrowest);
    for (DType narrow : {DType::kF16, DType::kBF16}) {
      if (!widen) continue;
      wide_ = with_dtype(wide_, narrow, DType::kF64);
      inputs_ = cast_all(inputs_, narrow, DType::kF64);
    }
    const bool is_exact = runs.dtype == DType::kF64 && !widen;
    exact_ = is_exact ? runs.plain : tried([&] { return eval::run(wide_, inputs_); });
    narrow_ = runs.dtype == DType::kF32 || widen ? runs.plain : tried([&] {
      return eval::run(runs.f32, cast_all(runs.inputs, DType::kF64, DType::kF32));
    });
  }

  // Whether it explains a difference. A comparison or a conversion shows the noise of what it reads
  // in some of the runs only: more of them are asked before the answer is no.
  bool explains(const Element& e, double by) {
    for (std::uint64_t runs : {8, 64}) {
      while (moved_.size() < runs) {
        const std::uint64_t seed = moved_.size() + 1;
        moved_.push_back(tried(
            [&] { return with_noise(wide_, inputs_, bounds_.noise, bounds_.absolute, seed); }));
      }
      const double slack = at(e);
      if (slack == kInf || by <= slack) return true;
    }
    return false;
  }

 private:
  double at(const Element& e) const {
    const double u = runs_.plain[e.result].at(e.index);
    double slack = bounds_.relative * (std::isfinite(u) ? std::abs(u) : 0) + bounds_.absolute;
    if (exact_.empty() || is_at_the_limit(u, runs_.raised[e.result].at(e.index))) return kInf;
    const double exact = exact_[e.result].at(e.index);
    double noise = 0;
    for (const auto& results : moved_) {
      if (!results.empty()) noise = std::max(noise, distance(results[e.result].at(e.index), exact));
    }
    slack += 40 * noise;
    if (!narrow_.empty()) {
      const double narrow = narrow_[e.result].at(e.index);
      const bool overflows = std::isfinite(exact) && !std::isfinite(narrow);
      if (overflows) return as_good_as(exact, e) || runs_.dtype == DType::kF64 ? kInf : slack;
      if (std::isfinite(exact)) slack += bounds_.error * distance(narrow, exact);
    }
    return slack;
  }

  // The last rounding decides between the largest number and infinity.
  bool is_at_the_limit(double u, double v) const {
    return runs_.dtype == DType::kF32 && std::isinf(v) && std::abs(u) > 3.3e38;
  }

  bool as_good_as(double exact, const Element& e) const {
    const double v = runs_.raised[e.result].at(e.index);
    return !std::isfinite(v) || distance(v, exact) <= 1e-3 * std::abs(exact) + 1e-30;
  }

  const Runs& runs_;
  const Bounds& bounds_;
  front::Function wide_;  // without types that are narrower than f64
  std::vector<Tensor> inputs_;
  std::vector<Tensor> exact_, narrow_;
  std::vector<std::vector<Tensor>> moved_;
};

}  // namespace

std::optional<Fault> judge(const Runs& runs) {
  for (std::size_t k = 0; k < runs.plain.size(); ++k) {
    const bool fits =
        runs.plain[k].dtype == runs.raised[k].dtype && runs.plain[k].shape == runs.raised[k].shape;
    if (!fits) return Fault{fmt::format("result {} has another type", k), kInf};
  }
  const Bounds bounds = bounds_of(runs);
  const std::vector<Element> found = suspects(runs, bounds);
  if (found.empty()) return std::nullopt;
  Slack slack(runs, bounds);
  std::optional<Liberties> liberties;
  std::optional<Fault> worst;
  for (const Element& e : found) {
    const double u = runs.plain[e.result].at(e.index), v = runs.raised[e.result].at(e.index);
    const double by = distance(u, v);
    if ((worst && by <= worst->size) || slack.explains(e, by)) continue;
    if (!liberties) liberties.emplace(runs);
    if (liberties->excuse(e.result, e.index)) continue;
    worst = Fault{
        fmt::format("result {} element {} is {:.9g}, raised {:.9g}", e.result, e.index, u, v), by};
  }
  return worst;
}

}  // namespace jaxport::fuzz
