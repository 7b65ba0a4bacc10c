// SPDX-License-Identifier: Apache-2.0
// Where a raised program may differ from the program as written: docs/adding-a-rule.md, "Numerics
// that a rule may change", and docs/architecture.md, "Where numbers differ".
//
// A liberty says which numbers inside of the program as written it is about. These are replaced by
// others, and the program runs on: elements of the results that change are excused, and no others.
#include "spoil.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "common.h"
#include "edit.h"
#include "jaxport/error.h"

namespace jaxport::fuzz {
namespace {

bool is_infinite(double x) { return std::isinf(x); }
bool is_huge(double x) { return std::abs(x) > 1e30; }

template <class Test>
bool holds_somewhere(const Tensor& operand, const Test& test) {
  for (std::int64_t i = 0; is_float(operand.dtype) && i < operand.size(); ++i) {
    if (test(operand.at(i))) return true;
  }
  return false;
}

// The element of an operand that broadcasts to the shape; -1 when it does not.
std::int64_t element_at(const Tensor& operand, const Shape& shape, std::int64_t i) {
  if (operand.shape.empty()) return 0;
  if (operand.shape.size() != shape.size()) return -1;
  std::int64_t element = 0, stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) {
    const std::int64_t size = operand.shape[axis];
    if (size != 1 && size != shape[axis]) return -1;
    element += size == 1 ? 0 : i % size * stride;
    stride *= size;
  }
  return element;
}

// Whether the test holds for an operand at an element of the result, or anywhere in it when the
// equation mixes elements.
template <class Test>
bool holds_at(const front::Eqn& eqn, const Tensor& operand, const Tensor& out, std::int64_t i,
              const Test& test) {
  const bool mixes = is_among(eqn.primitive, {"dot_general", "reduce_sum"});
  const std::int64_t element = mixes ? -1 : element_at(operand, out.shape, i);
  if (element < 0) return holds_somewhere(operand, test);
  return is_float(operand.dtype) && test(operand.at(element));
}

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
  void poison_infinite(Tensor& out) {
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
    const Tensor before = out;
    const auto is_zero = [](double x) { return x == 0; };
    poison(out, [&](std::int64_t i) {
      return holds_at(eqn, in[0], before, i, is_zero) && holds_at(eqn, in[1], before, i, is_zero);
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
        return holds_at(eqn, operand, before, i, [](double x) { return !std::isfinite(x); });
      });
    });
  }

  // A factor that moves past a sum: inf times a sum is not the sum of inf times its terms.
  void infinite_factors(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    if (!is_among(eqn.primitive, {"mul", "div"})) return;
    const bool divides = eqn.primitive == "div";
    const Tensor before = out;
    const auto is_no_number = [](double x) { return !std::isfinite(x); };
    const double tiny = before.dtype == DType::kF64 ? 1e-307 : 1e-37;  // has no reciprocal
    const auto is_no_divisor = [&](double x) { return !(std::abs(x) > tiny) || std::isinf(x); };
    poison(out, [&](std::int64_t i) {
      return holds_at(eqn, in[0], before, i, is_no_number) ||
             (divides ? holds_at(eqn, in[1], before, i, is_no_divisor)
                      : holds_at(eqn, in[1], before, i, is_no_number));
    });
  }

  // Sums of a cell and products of a rotation are associated differently: one may overflow where
  // the other does not.
  void huge_sums(const front::Eqn&, const Tensors&, Tensor& out) {
    const Tensor before = out;
    poison(out, [&](std::int64_t i) { return is_huge(before.at(i)); });
  }

  // "Sums and products run in another order: where parts of them overflow, one may".
  void huge_products(const front::Eqn& eqn, const Tensors&, Tensor& out) {
    if (!is_among(eqn.primitive, {"mul", "div", "dot_general"})) return;
    const Tensor before = out;
    const double limit = before.dtype == DType::kF64 ? 1e300 : 1e30;
    poison(out, [&](std::int64_t i) { return std::abs(before.at(i)) > limit; });
  }

  // "A row of Attention whose bias is an input, and -inf or the lowest f32 wherever the row is not
  // masked, gives 0": the row of scores, and the NaN that its product with the values is.
  void lowest_biases(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    const Tensor before = out;
    if (eqn.primitive == "dot_general" && has_low_row_) {
      out = with(
          out, [&](std::int64_t i) { return std::isnan(before.at(i)); },
          [](std::int64_t) { return 0; });
      return;
    }
    if (!is_among(eqn.primitive, {"add", "sub"}) || out.shape.empty()) return;
    for (std::size_t which : {0, 1}) {
      const double sign = which == 1 && eqn.primitive == "sub" ? -1 : 1;
      poison(out, [&](std::int64_t i) {
        const bool is_low = is_low_row(in[which], sign, before.shape, i);
        has_low_row_ = has_low_row_ || is_low;
        return is_low;
      });
    }
  }
  static bool is_low_row(const Tensor& bias, double sign, const Shape& shape, std::int64_t i) {
    constexpr double kLowest = -3.4028234663852886e38;
    const std::int64_t row = shape.back(), begin = i / row * row;
    for (std::int64_t k = begin; k < begin + row; ++k) {
      const std::int64_t element = element_at(bias, shape, k);
      if (element < 0 || !(sign * bias.at(element) <= kLowest)) return false;
    }
    return true;
  }

  // "The fill of a mask (-1e4 and lower) is taken to be less than the scores". What another mask
  // filled in is no score.
  void below_the_fill(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    if (eqn.primitive != "select_n" || in.size() != 3) return;
    for (std::size_t which : {1, 2}) {
      const Tensor &score = in[which], &fill = in[3 - which];
      if (!is_fill(fill)) continue;
      poison(out, [&](std::int64_t i) {
        const double x = score.at(i);
        return std::isfinite(x) && x < fill.at(0) && !fills_.contains(x);
      });
      fills_.insert(fill.at(0));
    }
  }
  // "A bias is taken to be less than 1e-8 of a fill of -1e30 or lower".
  void beside_the_fill(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    constexpr double kAbsorbing = -1e30;
    for (const Tensor& operand : in) {
      if (eqn.primitive == "select_n" && is_fill(operand) && operand.at(0) <= kAbsorbing)
        fills_.insert(operand.at(0));
    }
    if (!is_among(eqn.primitive, {"add", "sub"}) || fills_.empty()) return;
    const Tensor before = out;
    const auto is_filled = [&](double x) { return fills_.contains(x); };
    const auto is_large = [&](double x) {
      return std::isfinite(x) && std::abs(x) > -1e-8 * *fills_.rbegin() && !is_filled(x);
    };
    for (std::size_t which : {0, 1}) {
      poison(out, [&](std::int64_t i) {
        return holds_at(eqn, in[which], before, i, is_filled) &&
               holds_at(eqn, in[1 - which], before, i, is_large);
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
                   return holds_at(eqn, operand, before, i, is_negative_zero);
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
          return holds_at(eqn, in.back(), before, i, [](double x) { return x == 0; });
        },
        [&](std::int64_t i) { return -before.at(i); });
  }

  // "A factor that does not vary along the axes of a sum is multiplied with the sum": an infinity
  // meets a zero, or another one, in one of the forms alone. Not where NaN is among the factors.
  void infinite_products(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    if (eqn.primitive != "dot_general" || !is_float(out.dtype)) return;
    const Tensor before = out;
    const Tensor infinite = terms_with(eqn, in, is_infinite),
                 nan = terms_with(eqn, in, [](double x) { return std::isnan(x); });
    poison(out, [&](std::int64_t i) {
      return !std::isfinite(before.at(i)) && infinite.at(i) > 0 && nan.at(i) == 0;
    });
  }

  // "`(x - max) k` is `k x`, which overflows where |k x| does."
  void scaled_differences(const front::Eqn& eqn, const Tensors& in, Tensor& out) {
    if (is_among(eqn.primitive, {"add", "sub"}) && is_float(out.dtype)) {
      front::Eqn sum = eqn;
      sum.primitive = "add";
      Tensors terms;
      for (const Tensor& operand : in) terms.push_back(magnitudes(operand));
      sizes_.emplace(out.data.get(), std::pair(out, (*apply_)(sum, terms)[0]));
    }
    const auto known = sizes_.find(in.empty() ? nullptr : in[0].data.get());
    if (!is_among(eqn.primitive, {"mul", "div"}) || known == sizes_.end()) return;
    const Tensor product = (*apply_)(eqn, {known->second.second, magnitudes(in[1])})[0];
    const Tensor before = out;
    poison(out, [&](std::int64_t i) {
      const bool overflows = std::isinf(product.at(i)) && std::isfinite(before.at(i));
      has_low_row_ = has_low_row_ || overflows;
      return overflows;
    });
  }

  void use(const Apply& apply) { apply_ = &apply; }

 private:
  static Tensor magnitudes(const Tensor& tensor) {
    return with(
        tensor, [](std::int64_t) { return true; },
        [&](std::int64_t i) { return std::abs(tensor.at(i)); });
  }

  // How many terms of each sum of products have a factor that the test holds for.
  template <class Test>
  Tensor terms_with(const front::Eqn& eqn, const Tensors& in, const Test& test) const {
    const auto always = [](std::int64_t) { return true; };
    const auto ones = [&](const Tensor& operand) {
      return with(operand, always, [](std::int64_t) { return 1; });
    };
    const auto marked = [&](const Tensor& operand) {
      return with(operand, always, [&](std::int64_t i) { return test(operand.at(i)) ? 1 : 0; });
    };
    const Tensor first = (*apply_)(eqn, {marked(in[0]), ones(in[1])})[0];
    const Tensor second = (*apply_)(eqn, {ones(in[0]), marked(in[1])})[0];
    return with(
        first, [](std::int64_t) { return true; },
        [&](std::int64_t i) { return first.at(i) + second.at(i); });
  }

  template <class Test>
  void poison(Tensor& tensor, const Test& test) {
    ++poisoned_;
    tensor = with(tensor, test, [&](std::int64_t i) { return poison_.at(i, poisoned_); });
  }

  Poison poison_;
  std::uint64_t poisoned_ = 0;    // tensors
  const Apply* apply_ = nullptr;  // the equation at hand, with other operands
  // By the numbers of a sum: the sum, and that of the magnitudes of its terms.
  std::map<const void*, std::pair<Tensor, Tensor>> sizes_;
  std::set<double> fills_;  // of masks
  bool has_exp_ = false, has_log_ = false, has_vanished_ = false, has_low_row_ = false;
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
      {{}, &Spoiler::huge_products},
      {{"attention"}, &Spoiler::lowest_biases},
      {{"attention"}, &Spoiler::below_the_fill},
      {{"attention"}, &Spoiler::beside_the_fill},
      {{}, &Spoiler::negative_zeros},
      {{}, &Spoiler::zero_divisors},
      {{}, &Spoiler::infinite_products},
      // The last, because it knows sums by the place of their numbers.
      {{"softmax", "log_softmax", "logsumexp", "attention"}, &Spoiler::scaled_differences},
  };
  return kAll;
}

}  // namespace

bool has_name(const Runs& runs, const std::vector<std::string_view>& names) {
  return std::ranges::any_of(runs.names, [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  });
}

std::vector<std::size_t> liberties_of(const Runs& runs) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < all_liberties().size(); ++i) {
    const Liberty& liberty = all_liberties()[i];
    if (liberty.names.empty() || has_name(runs, liberty.names)) found.push_back(i);
  }
  return found;
}

Tensors plain_run(const Runs& runs, const Tensors& inputs, const Watch& watch) {
  try {
    return interpret(runs.dtype == DType::kF64 ? runs.f64 : runs.f32, inputs, watch);
  } catch (const Error&) {
    return {};
  }
}

Tensors spoiled_run(const Runs& runs, Poison poison, std::span<const std::size_t> liberties) {
  Spoiler spoiler(poison);
  Watch watch;
  watch.after = [&](const front::Eqn& eqn, const Tensors& in, Tensors& out, const Apply& apply) {
    spoiler.use(apply);
    for (Tensor& tensor : out) {
      for (std::size_t each : liberties) {
        (spoiler.*all_liberties()[each].spoil)(eqn, in, tensor);
      }
    }
  };
  return plain_run(runs, runs.inputs, watch);
}

}  // namespace jaxport::fuzz
