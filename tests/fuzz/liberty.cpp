// SPDX-License-Identifier: Apache-2.0
// Where a raised program may differ from the program as written: docs/adding-a-rule.md, "Numerics
// that a rule may change", and docs/architecture.md, "Where numbers differ".
//
// A liberty says which numbers inside of the program as written it is about. These are replaced by
// others, and the program runs on: elements of the results that change are excused, and no others.
#include "liberty.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "edit.h"
#include "interpret.h"
#include "jaxport/error.h"
#include "rng.h"
#include "values.h"

namespace jaxport::fuzz {
namespace {

using Tensors = std::vector<Tensor>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool is_among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool has_name(const Runs& runs, const std::vector<std::string_view>& names) {
  return std::ranges::any_of(runs.names, [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  });
}

bool is_infinite(double x) { return std::isinf(x); }
bool is_huge(double x) { return std::abs(x) > 1e30; }

// The number of an operand at an element of the result; of operands with another shape, any that
// the test holds for.
template <class Test>
bool holds_at(const Tensor& operand, std::int64_t i, std::int64_t count, const Test& test) {
  if (!is_float(operand.dtype)) return false;
  if (operand.size() == count) return test(operand.at(i));
  for (std::int64_t k = 0; k < operand.size(); ++k) {
    if (test(operand.at(k))) return true;
  }
  return false;
}

// The tensor with other numbers where `test` holds for the index.
template <class Test, class Value>
Tensor with(const Tensor& tensor, const Test& test, const Value& value) {
  if (!is_float(tensor.dtype)) return tensor;
  MutableTensor copy = allocate(DType::kF64, tensor.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    copy.as<double>()[i] = test(i) ? value(i) : tensor.at(i);
  }
  return tensor.dtype == DType::kF64 ? copy.tensor
                                     : cast_all({copy.tensor}, DType::kF64, tensor.dtype)[0];
}

// Other numbers. Some of them are seen behind a comparison, a logarithm or a maximum, and equal
// ones would cancel: one kind alone, a little different at each place, or all kinds mixed.
struct Poison {
  static constexpr double kNumbers[] = {kNan, kInf, -kInf, -0.37, 0.61, 0,
                                        900,  -900, 3e4,   3e38,  1e300};
  static constexpr std::size_t kCount = std::size(kNumbers), kVariants = 3 * kCount;
  std::size_t variant;

  double at(std::int64_t i) const {
    const double factor = 1 + static_cast<double>(i % 7) / 8;
    if (variant < kCount) return kNumbers[variant] * factor;
    Rng rng(variant + kVariants * static_cast<std::uint64_t>(i));
    return rng.of(kNumbers);
  }
};

// Replaces the numbers that one liberty is about, equation after equation.
class Spoiler {
 public:
  explicit Spoiler(Poison poison) : poison_(poison) {}

  // "A spelling that overflows in JAX does not overflow when it is raised", "A subtracted inf or
  // NaN has no effect", "softplus written as log(1 + exp(x)) is x where exp(x) overflows".
  void exponentials(const front::Eqn& eqn, const Tensors&, Tensor& out) {
    if (is_among(eqn.primitive, {"exp", "exp2"})) poison_infinite(out);
  }
  // The logarithm of such a sum is infinite, and so is what it is subtracted from.
  void logarithms(const front::Eqn& eqn, const Tensors&, Tensor& out) {
    if (eqn.primitive == "log") poison_infinite(out);
  }
  void infinite_terms(const front::Eqn& eqn, const Tensors&, Tensor& out) {
    has_log_ = has_log_ || eqn.primitive == "log";
    if (has_log_ && is_among(eqn.primitive, {"add", "sub"})) poison_infinite(out);
  }
  void poison_infinite(Tensor& out) const {
    const Tensor before = out;
    poison(out, [&](std::int64_t i) { return !std::isfinite(before.at(i)); });
  }

  // A sum of exponentials is 0 when the maximum is not subtracted.
  void vanished_sums(const front::Eqn& eqn, const Tensors&, Tensor& out) {
    has_exp_ = has_exp_ || is_among(eqn.primitive, {"exp", "exp2"});
    const bool is_sum = eqn.primitive == "reduce_sum";
    if (!has_exp_ || !(is_sum || (eqn.primitive == "dot_general" && !has_vanished_))) return;
    const Tensor before = out;
    poison(out, [&](std::int64_t i) {
      if (before.at(i) == 0) has_vanished_ = true;
      return before.at(i) == 0;
    });
  }

  // The same in the quotient: 0 / 0.
  void vanished_quotients(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    if (eqn.primitive != "div") return;
    const std::int64_t count = out.size();
    const auto is_zero = [](double x) { return x == 0; };
    poison(out, [&](std::int64_t i) {
      return holds_at(in[0], i, count, is_zero) && holds_at(in[1], i, count, is_zero);
    });
  }

  // "A variance written as E[x²] − E[x]² becomes the two-pass form": squares overflow in one of the
  // forms alone.
  void squares(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    if (!is_among(eqn.primitive,
                  {"mul", "square", "integer_pow", "reduce_sum", "dot_general", "sub"}))
      return;
    const Tensor before = out;
    poison(out, [&](std::int64_t i) {
      return !std::isfinite(before.at(i)) && std::ranges::none_of(in, [&](const Tensor& operand) {
        return holds_at(operand, i, before.size(), [](double x) { return !std::isfinite(x); });
      });
    });
  }

  // A factor that moves past a sum: inf times a sum is not the sum of inf times its terms.
  void infinite_factors(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    if (!is_among(eqn.primitive, {"mul", "div"})) return;
    const bool divides = eqn.primitive == "div";
    const std::int64_t count = out.size();
    poison(out, [&](std::int64_t i) {
      const auto is_no_number = [](double x) { return !std::isfinite(x); };
      return holds_at(in[0], i, count, is_no_number) || holds_at(in[1], i, count, is_no_number) ||
             (divides && holds_at(in[1], i, count, [](double x) { return x == 0; }));
    });
  }

  // Sums of a cell and products of a rotation are associated differently: one may overflow where
  // the other does not.
  void huge_sums(const front::Eqn&, const Tensors&, Tensor& out) {
    const Tensor before = out;
    poison(out, [&](std::int64_t i) { return is_huge(before.at(i)); });
  }

  // "A row of Attention whose bias is an input, and -inf or the lowest f32 wherever the row is not
  // masked, gives 0".
  void lowest_biases(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    constexpr double kLowest = -3.4028234663852886e38;
    if (eqn.primitive != "add" || out.shape.empty()) return;
    const std::int64_t row = out.shape.back();
    for (const Tensor& bias : in) {
      if (bias.size() != out.size()) continue;
      poison(out, [&](std::int64_t i) {
        const std::int64_t begin = i / row * row;
        for (std::int64_t k = begin; k < begin + row; ++k) {
          if (!(bias.at(k) <= kLowest)) return false;
        }
        return true;
      });
    }
  }

  // "The fill of a mask (-1e4 and lower) is taken to be less than the scores".
  void below_the_fill(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    if (eqn.primitive != "select_n" || in.size() != 3) return;
    for (std::size_t which : {1, 2}) {
      const Tensor &score = in[which], &fill = in[3 - which];
      if (!is_fill(fill)) continue;
      poison(out, [&](std::int64_t i) {
        return std::isfinite(score.at(i)) && score.at(i) < fill.at(0);
      });
    }
  }
  static bool is_fill(const Tensor& tensor) {
    constexpr double kHighestFill = -1e4;
    if (!is_float(tensor.dtype) || tensor.size() == 0) return false;
    const double level = tensor.at(0);
    if (!std::isfinite(level) || level > kHighestFill) return false;
    for (std::int64_t i = 1; i < tensor.size(); ++i) {
      if (tensor.at(i) != level) return false;
    }
    return true;
  }

  // "The sign of a zero may change": x + 0 is x, max(x, -0) is relu(x).
  void negative_zeros(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    if (!is_among(eqn.primitive, {"add", "sub", "max", "min", "reduce_sum"})) return;
    const Tensor before = out;
    const auto is_negative_zero = [](double x) { return x == 0 && std::signbit(x); };
    out = with(
        out,
        [&](std::int64_t i) {
          return before.at(i) == 0 && std::ranges::any_of(in, [&](const Tensor& operand) {
                   return holds_at(operand, i, before.size(), is_negative_zero);
                 });
        },
        [&](std::int64_t i) { return -before.at(i); });
  }

  // The other sign of a zero is the other infinity.
  void zero_divisors(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    if (!is_among(eqn.primitive, {"div", "rsqrt"})) return;
    const Tensor before = out;
    out = with(
        out,
        [&](std::int64_t i) {
          return holds_at(in.back(), i, before.size(), [](double x) { return x == 0; });
        },
        [&](std::int64_t i) { return -before.at(i); });
  }

  // "A factor that does not vary along the axes of a sum is multiplied with the sum": an infinity
  // meets a zero in one of the forms alone.
  void infinite_products(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    const auto is_nan = [](double x) { return std::isnan(x); };
    if (eqn.primitive != "dot_general" || holds_at(in[0], 0, -1, is_nan) ||
        holds_at(in[1], 0, -1, is_nan))
      return;
    const Tensor before = out;
    poison(out, [&](std::int64_t i) {
      return !std::isfinite(before.at(i)) &&
             (holds_at(in[0], 0, -1, is_infinite) || holds_at(in[1], 0, -1, is_infinite));
    });
  }

 private:
  template <class Test>
  void poison(Tensor& tensor, const Test& test) const {
    tensor = with(tensor, test, [&](std::int64_t i) { return poison_.at(i); });
  }

  Poison poison_;
  bool has_exp_ = false, has_log_ = false, has_vanished_ = false;
};

using Spoil = void (Spoiler::*)(const front::Eqn&, const Tensors& in, Tensor& out);
struct Liberty {
  std::vector<std::string_view> names;  // of raised nodes; none: always
  Spoil spoil;
};
const std::vector<Liberty>& all_liberties() {
  static const std::vector<Liberty> kAll{
      {{"softmax", "log_softmax", "logsumexp", "attention", "softplus", "mish"},
       &Spoiler::exponentials},
      {{"log_softmax", "logsumexp"}, &Spoiler::logarithms},
      {{"log_softmax", "logsumexp"}, &Spoiler::infinite_terms},
      {{"softmax", "log_softmax", "logsumexp", "attention"}, &Spoiler::vanished_sums},
      {{"softmax", "attention"}, &Spoiler::vanished_quotients},
      {{"layer_norm", "rms_norm"}, &Spoiler::squares},
      {{"softmax", "log_softmax", "logsumexp", "attention", "layer_norm", "rms_norm"},
       &Spoiler::infinite_factors},
      {{"lstm", "gru", "rnn", "rope", "partial_rope"}, &Spoiler::huge_sums},
      {{"attention"}, &Spoiler::lowest_biases},
      {{"attention"}, &Spoiler::below_the_fill},
      {{}, &Spoiler::negative_zeros},
      {{}, &Spoiler::zero_divisors},
      {{}, &Spoiler::infinite_products},
  };
  return kAll;
}

Tensors plain_run(const Runs& runs, const Tensors& inputs, const Watch& watch) {
  try {
    return interpret(runs.dtype == DType::kF64 ? runs.f64 : runs.f32, inputs, watch);
  } catch (const Error&) {
    return {};
  }
}

Tensors spoiled_run(const Runs& runs, Poison poison, std::span<const Spoil> spoils) {
  Spoiler spoiler(poison);
  Watch watch;
  watch.after = [&](const front::Eqn& eqn, const Tensors& in, Tensors& out, const Apply&) {
    for (Tensor& tensor : out) {
      for (Spoil spoil : spoils) (spoiler.*spoil)(eqn, in, tensor);
    }
  };
  return plain_run(runs, runs.inputs, watch);
}

// The largest number along the axis, or of all when there is no such axis, at every element.
std::vector<double> largest_along(const Tensor& tensor, std::size_t axis) {
  std::int64_t inner = 1, size = tensor.size();
  if (axis < tensor.shape.size()) {
    size = tensor.shape[axis];
    for (std::size_t i = axis + 1; i < tensor.shape.size(); ++i) inner *= tensor.shape[i];
  }
  const auto first = [&](std::int64_t i) { return i - i / inner % size * inner; };
  std::vector<double> most(static_cast<std::size_t>(tensor.size()), -kInf);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    double& largest = most[static_cast<std::size_t>(first(i))];
    largest = std::max(largest, tensor.at(i));
  }
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    most[static_cast<std::size_t>(i)] = most[static_cast<std::size_t>(first(i))];
  }
  return most;
}

// The program with exp(x - max x) in place of exp(x), along an axis that is counted from the back:
// in one of its exponentials, or in all.
constexpr std::size_t kMostAxes = 4, kMostExponentials = 3;
Tensors shifted_run(const Runs& runs, std::size_t axis_from_back, std::size_t which) {
  Watch watch;
  std::vector<const front::Eqn*> seen;
  watch.after = [&](const front::Eqn& eqn, const Tensors& in, Tensors& out, const Apply&) {
    if (eqn.primitive != "exp") return;
    if (std::ranges::find(seen, &eqn) == seen.end()) seen.push_back(&eqn);
    if (which < kMostExponentials && (which >= seen.size() || seen[which] != &eqn)) return;
    const std::vector<double> most = largest_along(in[0], in[0].shape.size() - 1 - axis_from_back);
    out[0] = with(
        out[0], [](std::int64_t) { return true; },
        [&](std::int64_t i) { return std::exp(in[0].at(i) - most[static_cast<std::size_t>(i)]); });
  };
  return plain_run(runs, runs.inputs, watch);
}

// Inputs that are huge are others.
Tensors without_huge(const Tensors& inputs, Poison poison) {
  Tensors others;
  for (const Tensor& input : inputs) {
    others.push_back(with(
        input, [&](std::int64_t i) { return std::isfinite(input.at(i)) && is_huge(input.at(i)); },
        [&](std::int64_t i) { return poison.at(i); }));
  }
  return others;
}

// Up to rounding.
bool agrees(const Tensor& a, const Tensor& b, std::int64_t i) {
  const double u = a.at(i), v = b.at(i);
  return u == v || (std::isnan(u) && std::isnan(v)) || std::abs(u - v) <= 1e-4 * std::abs(v);
}

bool differs(const Tensor& a, const Tensor& b, std::int64_t i) {
  const double u = a.at(i), v = b.at(i);
  return !(u == v || (std::isnan(u) && std::isnan(v)));
}

}  // namespace

const Tensors& Liberties::Attempt::get() {
  if (!results) results = run();
  return *results;
}

Liberties::Liberties(const Runs& runs) : runs_(runs) {
  const bool has_weights = has_name(runs, {"softmax", "attention"});
  for (std::size_t axis = 0; has_weights && axis <= kMostAxes; ++axis) {
    for (std::size_t which = 0; which <= kMostExponentials; ++which) {
      shifted_.push_back({[&runs, axis, which] { return shifted_run(runs, axis, which); }, {}});
    }
  }
  std::vector<Spoil> all;
  for (const Liberty& liberty : all_liberties()) {
    if (liberty.names.empty() || has_name(runs, liberty.names)) all.push_back(liberty.spoil);
  }
  for (std::size_t variant = 0; variant < Poison::kVariants; ++variant) {
    const Poison poison{variant};
    const auto add = [&](std::vector<Spoil> some) {
      spoiled_.push_back({[&runs, poison, some] { return spoiled_run(runs, poison, some); }, {}});
    };
    for (Spoil spoil : all) add({spoil});
    add(all);  // an overflow that is gone meets another liberty behind it
    without_huge_.push_back(
        {[&runs, poison] { return plain_run(runs, without_huge(runs.inputs, poison), {}); }, {}});
  }
}

bool Liberties::any_changes(std::vector<Attempt>& attempts, std::size_t result,
                            std::int64_t index) const {
  return std::ranges::any_of(attempts, [&](Attempt& attempt) {
    const Tensors& results = attempt.get();
    return !results.empty() && differs(results[result], runs_.plain[result], index);
  });
}

bool Liberties::excuse(std::size_t result, std::int64_t index) {
  const bool is_shifted = std::ranges::any_of(shifted_, [&](Attempt& attempt) {
    const Tensors& results = attempt.get();
    return !results.empty() && agrees(results[result], runs_.raised[result], index);
  });
  if (is_shifted || any_changes(spoiled_, result, index)) return true;
  // A sum of products with one factor is associated differently: it may overflow.
  const bool overflows = !std::isfinite(runs_.raised[result].at(index));
  return runs_.dtype == DType::kF32 && overflows && any_changes(without_huge_, result, index);
}

}  // namespace jaxport::fuzz
