// SPDX-License-Identifier: Apache-2.0
// X(k) = sum over n of x(n) w^(n k), w = exp(-2 pi i / N), by products with constant matrices. ONNX
// Runtime's DFT loses digits where N is no power of two (1e-4 of the largest result at N = 1000, in
// f64 too), and products are faster as long as their matrices are small.
#include <bit>
#include <cmath>
#include <complex>

#include "lower/rows/fourier.h"
#include "onnx/schema.h"
#include "support/preferences.h"

namespace jaxport::lower {
namespace {

using Complex = std::complex<double>;

// exp(2 pi i k / n), by quarters of the circle so that 1, i, -1 and -i are exact.
Complex root(std::int64_t k, std::int64_t n) {
  const std::int64_t quarter = 4 * k / n;
  Complex w = std::polar(1.0, M_PI / 2 * static_cast<double>(4 * k % n) / static_cast<double>(n));
  for (std::int64_t turn = 0; turn < quarter; ++turn) w = {-w.imag(), w.real()};
  return w;
}

// All powers of the root of one transform.
class Roots {
 public:
  Roots(std::int64_t length, bool is_inverse) {
    for (std::int64_t k = 0; k < length; ++k) {
      const Complex w = root(k, length);
      powers_.push_back(is_inverse ? w : std::conj(w));
    }
  }
  const Complex& operator()(std::int64_t power) const {
    return powers_[power % std::ssize(powers_)];
  }

 private:
  std::vector<Complex> powers_;
};

// What a frequency counts: of a spectrum whose other half is missing, all but those that are their
// own mirror image stand for two.
double weight(const Fourier& of, std::int64_t frequency) {
  if (!of.is_inverse) return 1;
  if (frequency >= of.frequencies()) return 0;
  const bool is_single = !of.to_real || frequency == 0 || 2 * frequency == of.length;
  return (is_single ? 1.0 : 2.0) / static_cast<double>(of.length);
}

// Transforms of one length share their constants.
Value constant(Ctx& c, Tensor tensor) {
  for (const onnx::Initializer& known : c.op.model().graph.initializers) {
    if (known.shape == tensor.shape && known.view.is_dense() &&
        same_bytes(known.view.base, tensor)) {
      return c.op.weight(known.view, known.shape, "");
    }
  }
  return c.constant(std::move(tensor));
}

void put(MutableTensor& to, std::int64_t index, double value) {
  if (to.tensor.dtype == DType::kF64) {
    to.as<double>()[index] = value;
  } else {
    to.as<float>()[index] = static_cast<float>(value);
  }
}

// The rows or the columns of a matrix: numbers of one or two parts, n parts or part n.
struct Side {
  std::int64_t count, parts = 2;
  bool parts_first = false;
  std::int64_t size() const { return count * parts; }
  std::int64_t index(std::int64_t number, std::int64_t part) const {
    return parts_first ? part * count + number : number * parts + part;
  }
};

// Complex factors as a matrix that takes rows of parts to columns of parts: re + i im times w is
// re w + im (i w). [pages, rows, columns]; one page has no dim of its own.
template <class Factor>
Value matrix(Ctx& c, DType dtype, std::int64_t pages, const Side& rows, const Side& columns,
             const Factor& factor) {
  Shape shape{rows.size(), columns.size()};
  if (pages > 1) shape.insert(shape.begin(), pages);
  MutableTensor result = allocate(dtype, shape);
  for (std::int64_t page = 0; page < pages; ++page) {
    for (std::int64_t row = 0; row < rows.count; ++row) {
      for (std::int64_t column = 0; column < columns.count; ++column) {
        const Complex w = factor(page, row, column);
        const double values[2][2] = {{w.real(), w.imag()}, {-w.imag(), w.real()}};
        for (std::int64_t in = 0; in < rows.parts; ++in) {
          const std::int64_t start = (page * rows.size() + rows.index(row, in)) * columns.size();
          for (std::int64_t out = 0; out < columns.parts; ++out) {
            put(result, start + columns.index(column, out), values[in][out]);
          }
        }
      }
    }
  }
  return constant(c, std::move(result.tensor));
}

std::int64_t matrix_entries(const Fourier& of) {
  return of.in_count() * of.in_parts() * of.out_count() * of.out_parts();
}

Value by_matrix(Ctx& c, const Fourier& of, Value x) {
  const Dim batch = x.shape()[0];
  const Roots roots(of.length, of.is_inverse);
  const Value factors = matrix(
      c, x.dtype(), 1, {of.in_count(), of.in_parts()}, {of.out_count(), of.out_parts()},
      [&](auto, std::int64_t in, std::int64_t out) { return weight(of, in) * roots(in * out); });
  const Value rows = c.reshape(x, {batch, of.in_count() * of.in_parts()});
  return c.reshape(c.op.MatMul(rows, factors), {batch, of.out_count(), of.out_parts()});
}

// N = N1 N2 with N1 >= N2 next to each other; N2 = 1 for primes.
struct Split {
  explicit Split(std::int64_t length) {
    for (std::int64_t factor = 1; factor * factor <= length; ++factor) {
      if (length % factor == 0) second = factor;
    }
    first = length / second;
  }
  // Frequencies k1 + N1 k2 of a half spectrum: k2 runs to half of N2.
  std::int64_t second_frequencies(const Fourier& of) const {
    return of.from_real || of.to_real ? second / 2 + 1 : second;
  }
  std::int64_t entries(const Fourier& of) const {
    return first * first * of.in_parts() * of.out_parts() +
           first * second * 2 * second_frequencies(of) * 2;
  }
  std::int64_t first = 1, second = 1;
};

// n = N2 n1 + n2, k = k1 + N1 k2 (J. W. Cooley, J. W. Tukey): the sum over n1 for each k1 and n2
// with the factors of length N1, then for each k1 the sum over n2 with the factors w^(n2 k).
class TwoProducts {
  using Index = std::int64_t;
  // The factors of length N1; conjugate in a matrix that has the parts on its other side.
  auto inner(bool is_conjugate) const {
    return [=, this](Index, Index n, Index k) {
      const Complex& w = roots_(n * k * n2_);
      return is_conjugate ? std::conj(w) : w;
    };
  }

 public:
  TwoProducts(Ctx& ctx, const Fourier& fourier, const Split& split, DType dtype_of_x)
      : c_(ctx),
        of_(fourier),
        n1_(split.first),
        n2_(split.second),
        k2_(split.second_frequencies(fourier)),
        dtype_(dtype_of_x),
        roots_(fourier.length, fourier.is_inverse) {}

  Value from_complex(Value x) {
    const Dim batch = x.shape()[0];
    const Value columns = c_.transpose(c_.reshape(x, {batch, n1_, n2_, 2}), {0, 2, 1, 3});
    const Value first = matrix(c_, dtype_, 1, {n1_}, {n1_}, inner(false));
    const Value sums = c_.op.MatMul(c_.reshape(columns, {batch, n2_, n1_ * 2}), first);
    const Value by_page = c_.transpose(c_.reshape(sums, {batch, n2_, n1_, 2}), {2, 0, 1, 3});
    return from_pages(c_.reshape(by_page, {n1_, batch, n2_ * 2}), {n2_});
  }

  // The first product from the left, which needs no order of its own.
  Value from_real(Value x) {
    const Dim batch = x.shape()[0];
    const Value first = matrix(c_, dtype_, 1, {n1_}, {n1_, 1}, inner(true));
    const Value sums = c_.op.MatMul(first, c_.reshape(x, {batch, n1_, n2_}));
    const Value by_page = c_.transpose(c_.reshape(sums, {batch, n1_, 2 * n2_}), {1, 0, 2});
    return from_pages(by_page, {n2_, 2, true});
  }

  // The same backwards: the sum over k2 for each k1 and n2, then the one over k1.
  Value to_real(Value z) {
    const Dim batch = z.shape()[0];
    if (const std::int64_t missing = k2_ * n1_ - of_.in_count(); missing > 0) {
      z = c_.op.Pad(z, c_.ints({0, 0, 0, 0, missing, 0}));
    }
    const Value by_page = c_.transpose(c_.reshape(z, {batch, k2_, n1_, 2}), {2, 0, 1, 3});
    const Value factors =
        matrix(c_, dtype_, n1_, {k2_}, {n2_, 2, true},
               [&](Index k1, Index k, Index n) { return outer(n, k1 + n1_ * k); });
    const Value sums = c_.op.MatMul(c_.reshape(by_page, {n1_, batch, k2_ * 2}), factors);
    const Value rows = c_.reshape(c_.transpose(sums, {1, 0, 2}), {batch, n1_ * 2, n2_});
    const Value last = matrix(c_, dtype_, 1, {n1_, 1}, {n1_}, inner(true));
    return c_.reshape(c_.op.MatMul(last, rows), {batch, of_.length, 1});
  }

 private:
  Complex outer(std::int64_t n, std::int64_t k) const { return roots_(n * k) * weight(of_, k); }

  Value from_pages(Value x, const Side& rows) {
    const Dim batch = x.shape()[1];
    const Value factors = matrix(c_, dtype_, n1_, rows, {k2_}, [&](Index k1, Index n, Index k) {
      return outer(n, k1 + n1_ * k);
    });
    const Value sums = c_.reshape(c_.op.MatMul(x, factors), {n1_, batch, k2_, 2});
    const Value all = c_.reshape(c_.transpose(sums, {1, 2, 0, 3}), {batch, k2_ * n1_, 2});
    if (k2_ * n1_ == of_.out_count()) return all;
    return c_.op.Slice(all, c_.ints({0}), c_.ints({of_.out_count()}), c_.ints({1}));
  }

  Ctx& c_;
  const Fourier& of_;
  std::int64_t n1_, n2_, k2_;
  DType dtype_;
  Roots roots_;
};

Value by_two_products(Ctx& c, const Fourier& of, const Split& split, Value x) {
  TwoProducts products(c, of, split, x.dtype());
  if (of.from_real) return products.from_real(x);
  return of.to_real ? products.to_real(x) : products.from_complex(x);
}

// --- lengths whose matrices would be too large: complex transforms of smaller ones

// x times constant complex factors; both have parts.
Value times(Ctx& c, Value x, const Shape& shape, const std::vector<Complex>& factors) {
  MutableTensor real = allocate(x.dtype(), shape), imaginary = allocate(x.dtype(), shape);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    put(real, static_cast<std::int64_t>(i), factors[i].real());
    put(imaginary, static_cast<std::int64_t>(i), factors[i].imag());
  }
  const Value re = constant(c, std::move(real.tensor)),
              im = constant(c, std::move(imaginary.tensor));
  const auto part = [&](std::int64_t i) {
    return c.op.Slice(x, c.ints({i}), c.ints({i + 1}), c.ints({-1}));
  };
  const Value a = part(0), b = part(1);
  return c.op.call("Concat", {a * re - b * im, a * im + b * re}, {{"axis", -1}});
}

// Cooley and Tukey with transforms of length N1 and N2 and the factors w^(n2 k1) between them.
Value by_stages(Ctx& c, const Fourier& of, const Split& split, Value x) {
  const Dim batch = x.shape()[0];
  const std::int64_t n1 = split.first, n2 = split.second;
  const Roots roots(of.length, of.is_inverse);
  std::vector<Complex> factors;
  for (std::int64_t n = 0; n < n2; ++n) {
    for (std::int64_t k = 0; k < n1; ++k) factors.push_back(roots(n * k));
  }
  const Value columns = c.transpose(c.reshape(x, {batch, n1, n2, 2}), {0, 2, 1, 3});
  const Value inner = transformed(c, {.length = n1, .is_inverse = of.is_inverse},
                                  c.reshape(columns, {batch * n2, n1, 2}));
  const Value turned = times(c, c.reshape(inner, {batch, n2, n1, 2}), {n2, n1, 1}, factors);
  const Value rows = c.reshape(c.transpose(turned, {0, 2, 1, 3}), {batch * n1, n2, 2});
  const Value outer = transformed(c, {.length = n2, .is_inverse = of.is_inverse}, rows);
  const Value in_order = c.transpose(c.reshape(outer, {batch, n1, n2, 2}), {0, 2, 1, 3});
  return c.reshape(in_order, {batch, of.length, 2});
}

// The transform of constants whose number is a power of two.
std::vector<Complex> spectrum(const std::vector<Complex>& x) {
  if (x.size() == 1) return x;
  std::vector<Complex> even, odd, result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) (i % 2 == 0 ? even : odd).push_back(x[i]);
  even = spectrum(even);
  odd = spectrum(odd);
  const auto length = static_cast<std::int64_t>(x.size());
  for (std::size_t k = 0; k < even.size(); ++k) {
    const Complex turned = odd[k] * std::conj(root(static_cast<std::int64_t>(k), length));
    result[k] = even[k] + turned;
    result[k + even.size()] = even[k] - turned;
  }
  return result;
}

// n k = (n^2 + k^2 - (k - n)^2) / 2 makes a convolution of the transform (L. I. Bluestein), which
// two transforms of any longer length compute.
Value by_convolution(Ctx& c, const Fourier& of, Value x) {
  const std::int64_t n = of.length;
  const auto longer =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * n - 1)));
  const Roots roots(2 * n, of.is_inverse);
  std::vector<Complex> chirp, last, kernel(static_cast<std::size_t>(longer));
  for (std::int64_t i = 0; i < n; ++i) {
    chirp.push_back(roots(i * i));
    last.push_back(chirp.back() * weight(of, 0));
    kernel[i] = std::conj(chirp.back());
    kernel[(longer - i) % longer] = std::conj(chirp.back());
  }
  const Value turned = times(c, x, {n, 1}, chirp);
  const Value padded = c.op.Pad(turned, c.ints({0, 0, 0, 0, longer - n, 0}));
  const Value all = transformed(c, {.length = longer}, padded);
  const Value product = times(c, all, {longer, 1}, spectrum(kernel));
  const Value back = transformed(c, {.length = longer, .is_inverse = true}, product);
  return times(c, c.op.Slice(back, c.ints({0}), c.ints({n}), c.ints({1})), {n, 1}, last);
}

Value complex_transformed(Ctx& c, const Fourier& of, const Split& split, Value x) {
  return split.second > 1 ? by_stages(c, of, split, x) : by_convolution(c, of, x);
}

// A transform between real numbers and half a spectrum by that of complex numbers.
Value by_complex(Ctx& c, const Fourier& of, const Split& split, Value x) {
  const Fourier all{.length = of.length, .is_inverse = of.is_inverse};
  if (of.from_real) {
    const Value z = complex_transformed(c, all, split, c.op.Pad(x, c.ints({0, 0, 0, 0, 0, 1})));
    return c.op.Slice(z, c.ints({0}), c.ints({of.out_count()}), c.ints({1}));
  }
  if (!of.to_real) return complex_transformed(c, all, split, x);
  const Value z = complex_transformed(c, all, split, mirrored(c, x, of.length));
  return c.op.Slice(z, c.ints({0}), c.ints({1}), c.ints({2}));
}

}  // namespace

Value transformed(Ctx& c, const Fourier& of, Value x) {
  if (of.length == 1 && !of.from_real && !of.to_real) return x;
  if (matrix_entries(of) <= Preferences::kFewFourierEntries) return by_matrix(c, of, x);
  const Split split(of.length);
  if (split.second > 1 && split.entries(of) <= Preferences::kMostFourierEntries) {
    return by_two_products(c, of, split, x);
  }
  if (split.second == 1 && matrix_entries(of) <= Preferences::kMostFourierEntries)
    return by_matrix(c, of, x);
  const bool is_power_of_two = std::has_single_bit(static_cast<std::uint64_t>(of.length));
  const bool has_op = onnx::find_schema("DFT", c.op.opset()) != nullptr;
  return has_op && is_power_of_two ? by_op(c, of, of.length, x) : by_complex(c, of, split, x);
}

}  // namespace jaxport::lower
