// SPDX-License-Identifier: Apache-2.0
// Algebra as rules want to see it: products, sums, means. Views only look, to a bounded depth;
// nothing is rewritten, so a rule that fails leaves the program as it was written.
#pragma once

#include <optional>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::raise {

struct Power {
  axis::Use base;
  double exponent;
  friend bool operator==(const Power&, const Power&) = default;
};
// coefficient * product of powers
struct Product {
  double coefficient = 1;
  std::vector<Power> powers;
};
// Deep enough for every spelling seen in practice; the bound keeps a pass linear.
constexpr int kViewDepth = 6;
// Looks through mul, div, neg, integer_pow, sqrt, rsqrt and pow by a literal.
Product factors(axis::Graph& graph, const axis::Use& use, int depth = kViewDepth);
// What is left of the product without the factors of `part`, whose labels are bound to those of the
// product; nullopt when it does not have them all.
std::optional<Product> quotient(axis::Graph& graph, const Product& product, const axis::Use& part,
                                axis::Binding& binding);
// A cheap test before factors(): some node that it would meet passes. Looks at no labels.
bool has_factor(const axis::Node& node, bool (*test)(const axis::Node&));
// The way back: coefficient * first * product of powers.
axis::Use multiply(double coefficient, axis::Use first, const std::vector<Power>& rest);
// The powers without those at i and j.
std::vector<Power> all_but(const std::vector<Power>& powers, std::size_t i, std::size_t j);

struct Addend {
  double coefficient;
  axis::Use use;
};
// constant + sum of coefficient * use
struct Sum {
  double constant = 0;
  std::vector<Addend> terms;
};
// Looks through add, sub, neg, and mul and div by a literal.
Sum terms(axis::Graph& graph, const axis::Use& use);

// A reduction taken apart: its operand, whose labels `over` exist only below it.
struct Reduction {
  axis::Use of;
  axis::Labels over;
};
Reduction reduced(axis::Graph& graph, const axis::Use& use);
// If `product` is r * mean(x)^e, written with the sum of `count` elements in place of the mean,
// returns r; nullopt when there are other factors.
std::optional<double> mean_ratio(axis::Graph& graph, const Product& product, const Power& sum,
                                 const Dim& count);
// mean_over(x) -> x, over
std::optional<Reduction> mean_of(axis::Graph& graph, const axis::Use& use);
// x - mean_over(x) -> x, over; here `over` are labels of x in the context of `use`.
std::optional<Reduction> centred(axis::Graph& graph, const axis::Use& use);

// --- small facts
bool is_pointwise(const axis::Use& use, std::string_view name);
bool is_zero(const axis::Graph& graph, const axis::Use& use);
bool is_sum(const axis::Use& use);  // reduce_sum
// The operand of x^2, or an empty Use.
axis::Use squared(axis::Graph& graph, const axis::Use& use);
// The value below conversions between floating point types.
axis::Use without_float_converts(axis::Graph& graph, axis::Use use);
// The same; `narrowest` becomes the narrowest dtype on the way when that is narrower.
axis::Use without_float_converts(axis::Graph& graph, axis::Use use, DType& narrowest);
// The boolean m below float(m), or an empty Use.
axis::Use converted_bool(axis::Graph& graph, const axis::Use& use);
DType sum_type(DType dtype);       // 16-bit sums are kept in f32, as JAX does
DType narrower(DType a, DType b);  // the float type with fewer bits of mantissa
// A literal arrives rounded to its dtype: 1e-6 as 9.99999997e-07. The shortest decimal that rounds
// to the same f32 is what the user wrote.
double as_written(double value, DType dtype);
// Equal up to a few roundings of `dtype`: literals arrive rounded.
bool near(double a, double b, DType dtype);

// Computed from literals, constants and positions alone, in a few steps, and of static size: known
// when the program is converted.
bool is_closed(const axis::Node& root);
// The value of such a use, dense over these labels.
Tensor evaluated(axis::Graph& graph, const axis::Use& use, const axis::Labels& order);

bool is_subset(const axis::Labels& some, const axis::Labels& all);
bool same_set(const axis::Labels& a, const axis::Labels& b);
axis::Labels resolve_all(const axis::Labels& labels, const axis::Binding& binding);

}  // namespace jaxport::raise
