// SPDX-License-Identifier: Apache-2.0
// Small constants, as soon as a node is made: rules and smart constructors see numbers. Larger ones
// wait for lowering (lower/layout/facts.cpp), which has the same evaluator (eval/) compute them
// once it knows who needs them. What lowering writes has no form here: pass/fold.cpp.
#include "axis/evaluate/fold.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "axis/evaluate/evaluate.h"
#include "eval/eval.h"
#include "jaxport/error.h"
#include "support/watch.h"

namespace jaxport::axis {
namespace {

constexpr std::int64_t kLargestFolded = 65'536;
constexpr std::int64_t kLargestRepeated = 1024;  // a constant repeated along new labels

bool has_region(const front::Attr& attr) {
  if (attr.get_if<front::Region>()) return true;
  const auto* list = attr.get_if<front::List>();
  return list && std::ranges::any_of(*list, has_region);
}

// Products of sizes stay far below 2^63: every factor is bounded before it is multiplied.
std::optional<std::int64_t> bounded_product(const Dims& sizes, std::int64_t limit) {
  std::int64_t product = 1;
  for (const Dim& size : sizes) {
    if (!size.is_static() || size.value() > limit) return std::nullopt;
    product *= size.value();
    if (product > limit) return std::nullopt;
  }
  return product;
}

Dims result_sizes(const Node& node) {
  Dims sizes;
  for (std::size_t axis = 0; axis < node.out.size(); ++axis) sizes.push_back(node.axis_size(axis));
  return sizes;
}

bool operands_are_small(const Node& node) {
  return std::ranges::all_of(
      node.edges, [](const Edge& edge) { return edge.node->data.size() <= kLargestFolded; });
}

// Views read only what they deliver; everything else reads all of its operands.
bool is_foldable(const Node& node) {
  if (!std::ranges::all_of(node.sizes, &Dim::is_static)) return false;
  const auto elements = bounded_product(result_sizes(node), kLargestFolded);
  if (!elements) return false;
  switch (node.kind) {
    case Kind::kPick:
    case Kind::kSlice:
      return true;
    case Kind::kRelayout:
      return *elements <= std::max(kLargestRepeated, node.edges[0].node->data.size());
    case Kind::kPointwise:
      return eval::knows(node.name) && operands_are_small(node);
    case Kind::kReduce:
    case Kind::kStack:
    case Kind::kConcat:
      return operands_are_small(node);
    case Kind::kContract:
      return operands_are_small(node) && bounded_product(node.sizes, 16 * kLargestFolded);
    case Kind::kPrim: {
      const front::Eqn& eqn = node.prim->eqn;
      return eval::knows(eqn.primitive) && operands_are_small(node) &&
             std::ranges::none_of(eqn.attrs, [](const auto& a) { return has_region(a.second); });
    }
    default:
      return false;
  }
}

}  // namespace

std::optional<Tensor> fold(const Node& node) {
  const bool all_constant = std::ranges::all_of(
      node.edges, [](const Edge& edge) { return edge.node->kind == Kind::kConstant; });
  if (node.edges.empty() || !all_constant || !is_foldable(node)) return std::nullopt;
  std::vector<Tensor> operands;
  for (const Edge& edge : node.edges) operands.push_back(edge.node->data);
  try {
    return evaluate_node(node, operands, {});
  } catch (const Error& error) {
    // The evaluator does not know this dtype or these parameters: the model computes the value.
    if (error.code() == "BUG" || error.code() == kLimitCode) throw;
    return std::nullopt;
  }
}

bool is_uniform(const Tensor& tensor) {
  if (tensor.dtype != DType::kBool && !is_integer(tensor.dtype)) return false;
  const std::int64_t count = tensor.size();
  if (count < 2 || count > kLargestFolded) return false;
  const auto width = static_cast<std::size_t>(byte_width(tensor.dtype));
  const std::byte* bytes = tensor.data.get();
  return std::memcmp(bytes, bytes + width, tensor.nbytes() - width) == 0;
}

Tensor first_element(const Tensor& tensor) {
  MutableTensor first = allocate(tensor.dtype, {});
  std::memcpy(first.bytes, tensor.data.get(), first.tensor.nbytes());
  return first.tensor;
}

std::optional<Progression> progression(const Tensor& tensor) {
  if (!is_integer(tensor.dtype) || tensor.shape.size() != 1) return std::nullopt;
  const std::int64_t count = tensor.size();
  if (count < 2 || count > kLargestFolded) return std::nullopt;
  const std::int64_t start = tensor.int_at(0), next = tensor.int_at(1);
  // Differences of numbers of this size cannot overflow.
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  if (std::max(std::abs(start), std::abs(next)) > kLimit) return std::nullopt;
  const Progression found{start, next - start};
  if (found.step == 0 || (is_unsigned(tensor.dtype) && found.step < 0)) return std::nullopt;
  // Any two numbers are a progression; only 0, 1 is surely meant as one.
  if (count == 2 && !(found.start == 0 && found.step == 1)) return std::nullopt;
  for (std::int64_t i = 2; i < count; ++i) {
    if (tensor.int_at(i) != found.start + i * found.step) return std::nullopt;
  }
  return found;
}

}  // namespace jaxport::axis
