// SPDX-License-Identifier: Apache-2.0
#include "raise/algebra/piecewise.h"

#include <cmath>
#include <limits>
#include <vector>

namespace jaxport::raise {
namespace {

// No activation has more than a few; a spelling may have some of its own.
constexpr std::size_t kMaxBreaks = 16;

// Literals are rounded, and may be computed from others.
double tolerance(DType dtype) { return dtype == DType::kF64 ? 0x1p-48 : 0x1p-21; }

// Whether some x lies between. Narrower types than f32 are taken for f32.
bool has_number(double lo, double hi, DType dtype) {
  if (dtype == DType::kF64) return std::nextafter(lo, kInfinity) < hi;
  constexpr auto kMost = std::numeric_limits<float>::max();
  if (lo >= kMost) return false;
  auto next = lo < -kMost ? -std::numeric_limits<float>::infinity() : static_cast<float>(lo);
  if (next <= lo) next = std::nextafter(next, std::numeric_limits<float>::infinity());
  return next < hi;
}

struct Break {
  double at;
  bool is_exact;
};

class Comparison {
 public:
  Comparison(const Function& function, const Function& known, DType dtype)
      : function_(function), known_(known), dtype_(dtype) {}

  std::optional<Difference> run() {
    std::vector<Difference> intervals{{-kInfinity, kInfinity}};
    while (!intervals.empty()) {
      const auto [lo, hi] = intervals.back();
      intervals.pop_back();
      if (!has_number(lo, hi, dtype_)) continue;
      const std::optional<double> split = compare(lo, hi);
      if (!split) return Difference{lo, hi};
      if (*split == hi) continue;
      intervals.push_back({*split, hi});
      intervals.push_back({lo, *split});
    }
    for (const Break& point : breaks_) {
      if (!agree_at(point)) return Difference{point.at, point.at};
    }
    return std::nullopt;
  }

 private:
  // `hi` when the functions are equal on the interval, a point inside to cut it at, nullopt when
  // they differ.
  std::optional<double> compare(double lo, double hi) {
    Piece of_function{lo, hi}, of_known{lo, hi};
    const Form got = function_(Form::x(of_function));
    if (of_function.is_over()) return cut(of_function);
    const Form want = known_(Form::x(of_known));
    if (of_known.is_over()) return cut(of_known);
    return same(got, want, tolerance(dtype_)) ? std::optional(hi) : std::nullopt;
  }

  std::optional<double> cut(const Piece& piece) {
    if (!piece.split || breaks_.size() == kMaxBreaks) return std::nullopt;
    breaks_.push_back({*piece.split, piece.is_split_exact});
    return piece.split;
  }

  bool agree_at(const Break& point) const {
    Piece of_function{point.at, point.at}, of_known{point.at, point.at};
    const Form got = function_(Form::x(of_function)), want = known_(Form::x(of_known));
    const auto value = got.constant(), other = want.constant();
    if (of_function.is_over() || of_known.is_over() || !value || !other) return false;
    const double scale = got.magnitude() + want.magnitude();
    if (!(std::abs(*value - *other) <= tolerance(dtype_) * scale)) return false;
    return point.is_exact || !jumps(point.at);
  }

  // A continuous function changes by less over a smaller distance. The distances are larger than
  // what rounding moves a condition by.
  bool jumps(double at) const {
    const double far = at == 0 ? 0x1p-8 : std::abs(at) * 0x1p-8;
    return change(at, far / 1024) > change(at, far) / 2;
  }

  double change(double at, double distance) const {
    Piece below{at - distance, at - distance}, above{at + distance, at + distance};
    const auto from = known_(Form::x(below)).constant(), to = known_(Form::x(above)).constant();
    return from && to ? std::abs(*to - *from) : kInfinity;
  }

  const Function& function_;
  const Function& known_;
  DType dtype_;
  std::vector<Break> breaks_;
};

}  // namespace

std::optional<Difference> find_difference(const Function& function, const Function& known,
                                          DType dtype) {
  return Comparison(function, known, dtype).run();
}

}  // namespace jaxport::raise
