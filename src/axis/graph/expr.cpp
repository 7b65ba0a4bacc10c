// SPDX-License-Identifier: Apache-2.0
#include "axis/graph/expr.h"

namespace jaxport::axis {

Use Term::beside(const Use& other) const {
  return use ? *use : other.node->graph->scalar(value, other.node->dtype);
}

Use applied(std::string_view name, const Use& x) {
  return x.node->graph->pointwise(name, {x}, x.node->dtype);
}
Use applied(std::string_view name, const Use& a, Term b) {
  return a.node->graph->pointwise(name, {a, b.beside(a)}, a.node->dtype);
}
Use applied(std::string_view name, double a, const Use& b) {
  return b.node->graph->pointwise(name, {Term(a).beside(b), b}, b.node->dtype);
}
Use compared(std::string_view name, const Use& a, Term b) {
  return a.node->graph->pointwise(name, {a, b.beside(a)}, DType::kBool);
}

Use clamp(Term lo, const Use& x, Term hi) {
  return x.node->graph->pointwise("clamp", {lo.beside(x), x, hi.beside(x)}, x.node->dtype);
}

Use integer_pow(const Use& base, std::int64_t exponent) {
  return base.node->graph->pointwise("integer_pow", {base}, base.node->dtype,
                                     {{"y", front::Attr{exponent}}});
}

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
