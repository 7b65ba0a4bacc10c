// SPDX-License-Identifier: Apache-2.0
// Where a raised program may differ from the program as written: docs/adding-a-rule.md, "Numerics
// that a rule may change", and docs/architecture.md, "Where numbers differ". Each is a predicate
// over one run, as narrow as what the documents say.
#include <algorithm>
#include <cmath>
#include <set>

#include "interpret.h"
#include "jaxport/error.h"
#include "judge.h"

namespace jaxport::fuzz {
namespace {

// What happened inside of the program as written.
struct Trace {
  std::set<std::string> overflowed;  // primitives that made inf or NaN of numbers
  bool exp_is_not_finite = false;
  bool sum_vanished = false;         // a sum of exponentials is 0
  bool has_infinite_factor = false;  // of a product, or 0 as a divisor
  bool has_negative_zero = false;    // where its sign matters
  bool has_exp = false;
  bool has_huge = false;         // a number above 1e30
  bool has_cancelled = false;    // a sum is far smaller than its large terms
  bool has_lowest_bias = false;  // a term is -inf or the lowest f32 in a whole row
  bool is_below_fill = false;    // a case of a select is below -1e4 and below the other, a fill
};

template <class Test>
bool any(const Tensor& tensor, const Test& test) {
  if (!is_float(tensor.dtype)) return false;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (test(tensor.at(i))) return true;
  }
  return false;
}
bool is_not_finite(double x) { return !std::isfinite(x); }
bool is_zero(double x) { return x == 0; }
bool is_huge(double x) { return std::abs(x) > 1e30; }
bool is_negative_zero(double x) { return x == 0 && std::signbit(x); }

// A sum that is far smaller than a large term.
bool cancels(const Tensor& term, const Tensor& sum) {
  constexpr double kLarge = 1e4, kLost = 1e-3;
  if (!is_float(sum.dtype) || term.size() != sum.size()) return false;
  for (std::int64_t i = 0; i < sum.size(); ++i) {
    const double x = std::abs(term.at(i));
    if (x > kLarge && std::abs(sum.at(i)) < kLost * x) return true;
  }
  return false;
}

bool has_lowest_row(const Tensor& tensor) {
  constexpr double kLowest = -3.4028234663852886e38;
  if (!is_float(tensor.dtype) || tensor.shape.empty() || tensor.size() == 0) return false;
  const std::int64_t row = tensor.shape.back();
  for (std::int64_t begin = 0; begin < tensor.size(); begin += row) {
    std::int64_t i = 0;
    while (i < row && tensor.at(begin + i) <= kLowest) ++i;
    if (i == row) return true;
  }
  return false;
}

// Some number is lower than a fill that is finite and low itself.
bool is_below(const Tensor& score, const Tensor& fill) {
  constexpr double kHighestFill = -1e4;
  if (!is_float(fill.dtype) || fill.size() == 0) return false;
  const double level = fill.at(0);
  const bool is_fill = std::isfinite(level) && level <= kHighestFill &&
                       !any(fill, [&](double x) { return x != level; });
  return is_fill && any(score, [&](double x) { return std::isfinite(x) && x < level; });
}

void watch(Trace& trace, const front::Eqn& eqn, const std::vector<Tensor>& in,
           const std::vector<Tensor>& out) {
  const auto has = [](const std::vector<Tensor>& tensors, bool (*test)(double)) {
    return std::ranges::any_of(tensors, [&](const Tensor& t) { return any(t, test); });
  };
  const std::string& name = eqn.primitive;
  if (!has(in, is_not_finite) && has(out, is_not_finite)) trace.overflowed.insert(name);
  if (has(out, is_huge)) trace.has_huge = true;
  const bool is_exp = name == "exp" || name == "exp2";
  if (is_exp && has(out, is_not_finite)) trace.exp_is_not_finite = true;
  const bool sums = name == "reduce_sum" || name == "dot_general";
  if (trace.has_exp && sums && has(out, is_zero)) trace.sum_vanished = true;
  trace.has_exp |= is_exp;
  if (name == "select_n" && in.size() == 3) {
    trace.is_below_fill |= is_below(in[1], in[2]) || is_below(in[2], in[1]);
  }
  if ((name == "mul" || name == "div") && has(in, is_not_finite)) trace.has_infinite_factor = true;
  if (name == "div" && any(in[1], is_zero)) trace.has_infinite_factor = true;
  const bool sees_sign = name == "div" || name == "rsqrt" || name == "add";
  if (sees_sign && has(in, is_negative_zero)) trace.has_negative_zero = true;
  if ((name == "add" || name == "sub") && (cancels(in[0], out[0]) || cancels(in[1], out[0])))
    trace.has_cancelled = true;
  if (name == "add" && std::ranges::any_of(in, has_lowest_row)) trace.has_lowest_bias = true;
}

bool has_name(const Runs& runs, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(runs.names, [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  });
}

bool is_softmax(const Runs& runs) {
  return has_name(runs, {"softmax", "log_softmax", "logsumexp", "attention"});
}

// "A spelling that overflows in JAX does not overflow when it is raised": an exponential without
// the maximum subtracted is inf, or all of a row are 0. Any number may be subtracted, so one that
// is inf or NaN has no effect; and an exponential that a mask multiplies with 0 is 0.
bool softmax_does_not_overflow(const Runs& runs, const Trace& trace) {
  return is_softmax(runs) && (trace.exp_is_not_finite || trace.sum_vanished);
}

// log(1 + exp(x)) is x where exp(x) is inf.
bool softplus_does_not_overflow(const Runs& runs, const Trace& trace) {
  return has_name(runs, {"softplus", "mish"}) && trace.exp_is_not_finite;
}

// "A variance written as E[x²] − E[x]² becomes the two-pass form": squares overflow in one of the
// forms alone.
bool variance_in_two_passes(const Runs& runs, const Trace& trace) {
  if (!has_name(runs, {"layer_norm", "rms_norm"})) return false;
  return std::ranges::any_of(trace.overflowed, [](const std::string& name) {
    return name == "mul" || name == "square" || name == "integer_pow" || name == "reduce_sum" ||
           name == "dot_general" || name == "sub";
  });
}

// A factor that moves past a sum: inf times a sum is not the sum of inf times its terms.
bool factor_is_infinite(const Runs& runs, const Trace& trace) {
  return (is_softmax(runs) || has_name(runs, {"layer_norm", "rms_norm"})) &&
         trace.has_infinite_factor;
}

bool has_input_above(const Runs& runs, double limit) {
  return std::ranges::any_of(runs.inputs, [&](const Tensor& tensor) {
    return any(tensor, [&](double x) { return std::isfinite(x) && std::abs(x) > limit; });
  });
}

// Sums of a cell and products of a rotation are associated differently, and so is a sum of products
// with one factor: one may overflow where the other does not.
bool association_of_huge_numbers(const Runs& runs, const Trace& trace) {
  if (has_name(runs, {"lstm", "gru", "rnn", "rope", "partial_rope"}))
    return trace.has_huge || has_input_above(runs, 1e9);
  return runs.dtype == DType::kF32 && has_input_above(runs, 1e30) &&
         std::ranges::any_of(runs.raised, [](const Tensor& t) { return any(t, is_not_finite); });
}

// "A row of Attention whose bias is an input and -inf or the lowest f32 everywhere gives 0".
bool bias_is_lowest(const Runs& runs, const Trace& trace) {
  return has_name(runs, {"attention"}) && trace.has_lowest_bias;
}

// Terms of a score are added in another order: large ones that cancel leave other digits.
bool score_cancels(const Runs& runs, const Trace& trace) {
  return has_name(runs, {"attention"}) && trace.has_cancelled;
}

// A score that is lower than the finite fill of a mask: JAX prefers what is masked, the op does
// not. No model has scores below -1e4 by intention.
bool score_below_the_fill(const Runs& runs, const Trace& trace) {
  return has_name(runs, {"attention"}) && trace.is_below_fill;
}

// x + 0 is x in the axis graph, also for -0.
bool sign_of_zero(const Runs&, const Trace& trace) { return trace.has_negative_zero; }

struct Liberty {
  std::string_view name;
  bool (*applies)(const Runs&, const Trace&);
};
constexpr Liberty kLiberties[] = {
    {"softmax does not overflow", softmax_does_not_overflow},
    {"softplus does not overflow", softplus_does_not_overflow},
    {"variance in two passes", variance_in_two_passes},
    {"a factor is infinite", factor_is_infinite},
    {"association of huge numbers", association_of_huge_numbers},
    {"a bias is the lowest number", bias_is_lowest},
    {"terms of a score cancel", score_cancels},
    {"a score below the fill", score_below_the_fill},
    {"sign of zero", sign_of_zero},
};

}  // namespace

std::string_view liberty(const Runs& runs) {
  Trace trace;
  try {
    interpret(runs.dtype == DType::kF64 ? runs.f64 : runs.f32, runs.inputs,
              [&](const front::Eqn& eqn, const std::vector<Tensor>& in, std::vector<Tensor>& out) {
                watch(trace, eqn, in, out);
              });
  } catch (const Error&) {
    return {};
  }
  for (const Liberty& liberty : kLiberties) {
    if (liberty.applies(runs, trace)) return liberty.name;
  }
  return {};
}

}  // namespace jaxport::fuzz
