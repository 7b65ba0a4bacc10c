// SPDX-License-Identifier: Apache-2.0
#include "axis/expr.h"

namespace jaxport::axis {
namespace {

Use unary(std::string_view name, const Use& x) {
  return x.node->graph->pointwise(name, {x}, x.node->dtype);
}

Use binary(std::string_view name, const Use& a, const Term& b) {
  return a.node->graph->pointwise(name, {a, b.beside(a)}, a.node->dtype);
}

Use binary(std::string_view name, double a, const Use& b) {
  return b.node->graph->pointwise(name, {Term(a).beside(b), b}, b.node->dtype);
}

Use compared(std::string_view name, const Use& a, const Term& b) {
  return a.node->graph->pointwise(name, {a, b.beside(a)}, DType::kBool);
}

}  // namespace

Use Term::beside(const Use& other) const {
  return use ? *use : other.node->graph->scalar(value, other.node->dtype);
}

Use operator+(const Use& a, Term b) { return binary("add", a, b); }
Use operator+(double a, const Use& b) { return binary("add", a, b); }
Use operator-(const Use& a, Term b) { return binary("sub", a, b); }
Use operator-(double a, const Use& b) { return binary("sub", a, b); }
Use operator*(const Use& a, Term b) { return binary("mul", a, b); }
Use operator*(double a, const Use& b) { return binary("mul", a, b); }
Use operator/(const Use& a, Term b) { return binary("div", a, b); }
Use operator/(double a, const Use& b) { return binary("div", a, b); }
Use operator-(const Use& x) { return unary("neg", x); }

Use abs(const Use& x) { return unary("abs", x); }
Use erf(const Use& x) { return unary("erf", x); }
Use exp(const Use& x) { return unary("exp", x); }
Use expm1(const Use& x) { return unary("expm1", x); }
Use log(const Use& x) { return unary("log", x); }
Use log1p(const Use& x) { return unary("log1p", x); }
Use logistic(const Use& x) { return unary("logistic", x); }
Use rsqrt(const Use& x) { return unary("rsqrt", x); }
Use sqrt(const Use& x) { return unary("sqrt", x); }
Use tanh(const Use& x) { return unary("tanh", x); }
Use max(const Use& a, Term b) { return binary("max", a, b); }
Use min(const Use& a, Term b) { return binary("min", a, b); }
Use pow(const Use& base, Term exponent) { return binary("pow", base, exponent); }

Use clamp(Term lo, const Use& x, Term hi) {
  return x.node->graph->pointwise("clamp", {lo.beside(x), x, hi.beside(x)}, x.node->dtype);
}

Use integer_pow(const Use& base, std::int64_t exponent) {
  return base.node->graph->pointwise("integer_pow", {base}, base.node->dtype,
                                     {{"y", front::Attr{exponent}}});
}

Use eq(const Use& a, Term b) { return compared("eq", a, b); }
Use ge(const Use& a, Term b) { return compared("ge", a, b); }
Use gt(const Use& a, Term b) { return compared("gt", a, b); }
Use logical_and(const Use& a, const Use& b) { return binary("and", a, b); }
Use logical_not(const Use& a) { return unary("not", a); }

Use select(const Use& mask, const Use& kept, Term other) {
  return mask.node->graph->pointwise("select_n", {mask, other.beside(kept), kept},
                                     kept.node->dtype);
}
Use select(const Use& mask, double kept, const Use& other) {
  return mask.node->graph->pointwise("select_n", {mask, other, Term(kept).beside(other)},
                                     other.node->dtype);
}

Use convert(const Use& x, DType dtype) {
  if (x.node->dtype == dtype) return x;
  return x.node->graph->pointwise("convert_element_type", {x}, dtype);
}

Use reduce_max(const Use& x, const Labels& over) {
  return x.node->graph->reduce("reduce_max", x, over, x.node->dtype);
}
Use reduce_sum(const Use& x, const Labels& over) {
  return x.node->graph->reduce("reduce_sum", x, over, x.node->dtype);
}

}  // namespace jaxport::axis
