// SPDX-License-Identifier: Apache-2.0
// real and imag move down through complex arithmetic until no complex value is left.
#include <utility>

#include "axis/pointwise.h"

namespace jaxport::axis {
namespace {

// The two parts of a complex value, in the dtype of the parts.
struct Parts {
  const Call& call;
  Use real(const Use& z) const { return call.make("real", {z}); }
  Use imag(const Use& z) const { return call.make("imag", {z}); }
  Use part(const Use& z) const { return call.make(call.name, {z}); }
  bool wants_real() const { return call.name == "real"; }
  // A real number has the imaginary part 0 by construction: only here 0 * y is 0, not NaN.
  Use times(const Use& a, const Use& b) const {
    auto is_zero = [&](const Use& use) { return call.graph.scalar_value(use) == 0.0; };
    if (is_zero(a) || is_zero(b)) return call.graph.scalar(0, call.dtype);
    return call.make("mul", {a, b});
  }
};

Use of_product(const Parts& parts, const Use& z) {
  Graph& graph = parts.call.graph;
  const Use a = graph.child(z, 0), b = graph.child(z, 1);
  const Use ar = parts.real(a), ai = parts.imag(a), br = parts.real(b), bi = parts.imag(b);
  if (parts.wants_real()) {
    return parts.call.make("sub", {parts.times(ar, br), parts.times(ai, bi)});
  }
  return parts.call.make("add", {parts.times(ar, bi), parts.times(ai, br)});
}

// exp(x + iy) = exp(x) (cos y + i sin y)
Use of_exponential(const Parts& parts, const Use& z) {
  const Use y = parts.call.graph.child(z, 0);
  const Use angle = parts.imag(y);
  const Use length = parts.call.make("exp", {parts.real(y)});
  const Use turn = parts.call.make(parts.wants_real() ? "cos" : "sin", {angle});
  return parts.call.make("mul", {length, turn});
}

Use of_conversion(const Parts& parts, const Use& z) {
  const Use x = parts.call.graph.child(z, 0);
  if (is_complex(x.node->dtype)) return {};
  if (parts.wants_real()) return parts.call.make("convert_element_type", {x});
  return parts.call.graph.scalar(0, parts.call.dtype);
}

Use of_conjugate(const Parts& parts, const Use& z) {
  const Use x = parts.call.graph.child(z, 0);
  if (!is_complex(x.node->dtype)) return of_conversion(parts, z);
  return parts.wants_real() ? parts.real(x) : parts.call.make("neg", {parts.imag(x)});
}

Use of_pick(const Parts& parts, const Use& z) {
  Graph& graph = parts.call.graph;
  const auto* index = z.node->attr("k")->get_if<std::int64_t>();
  return graph.pick(parts.part(graph.child(z, 0)), graph.role(z, "p")[0], *index);
}

Use of_stack(const Parts& parts, const Use& z) {
  Graph& graph = parts.call.graph;
  std::vector<Use> operands = graph.children(z);
  for (Use& operand : operands) operand = parts.part(operand);
  return graph.stack(std::move(operands), graph.role(z, "p")[0]);
}

Use of_pointwise(const Parts& parts, const Use& z) {
  Graph& graph = parts.call.graph;
  const std::string_view name = z.node->name;
  if (name == "complex") return graph.child(z, parts.wants_real() ? 0 : 1);
  if (name == "add" || name == "sub") {
    return parts.call.make(name, {parts.part(graph.child(z, 0)), parts.part(graph.child(z, 1))});
  }
  if (name == "neg") return parts.call.make("neg", {parts.part(graph.child(z, 0))});
  if (name == "mul") return of_product(parts, z);
  if (name == "exp") return of_exponential(parts, z);
  if (name == "convert_element_type") return of_conversion(parts, z);
  if (name == "conj") return of_conjugate(parts, z);
  return {};
}

Use part_of(const Call& call) {
  const Parts parts{call};
  const Use& z = call[0];
  switch (z.node->kind) {
    case Kind::kPointwise:
      return of_pointwise(parts, z);
    case Kind::kPick:
      return of_pick(parts, z);
    case Kind::kStack:
      return of_stack(parts, z);
    default:
      return {};
  }
}

}  // namespace

Use complex_part(const Call& call) {
  // Deeper arithmetic than this stays complex from there on.
  constexpr int kDeepest = 200;
  ComplexParts& parts = call.parts;
  if (parts.depth == kDeepest) return {};
  auto& known = call.name == "real" ? parts.real : parts.imag;
  if (auto found = known.find(call[0]); found != known.end()) return found->second;
  ++parts.depth;
  Use part = part_of(call);
  --parts.depth;
  if (part) known.emplace(call[0], part);
  return part;
}

}  // namespace jaxport::axis
