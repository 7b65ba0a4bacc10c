// SPDX-License-Identifier: Apache-2.0
// Rows that are gathered several times are multiplied once: x[i] . w = (x . w)[i]. The columns of a
// Concat meet rows of the weights of their own: [x[i], y] . w = (x . w_x)[i] + y . w_y, which is a
// message along the edges of a graph.
#include <utility>

#include "pass/local.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Initializer;
using onnx::Node;
using onnx::TensorType;
using onnx::ValueId;

// A sum and a gathered row cost about as much as so many products of an element. One node more is
// worth this many products.
constexpr std::int64_t kProductsOfCopy = 32, kProductsOfNode = std::int64_t{1} << 16;

std::optional<std::int64_t> static_size(std::span<const Dim> sizes) {
  std::int64_t size = 1;
  for (const Dim& dim : sizes) {
    if (!dim.is_static()) return std::nullopt;
    size *= dim.value();
  }
  return size;
}

// Neighbouring columns of the first operand of a product.
struct Columns {
  std::vector<ValueId> pieces;
  std::int64_t count = 0;
  const Node* gather = nullptr;  // that is done after the product; nullptr: none
};

struct Product {
  const Initializer* weights;
  ValueId bias;  // kAbsent: none
  TensorType type;
  std::int64_t rows, columns;  // of the result
  std::uint32_t origin;
};

bool is_plain_gemm(const Node& gemm) {
  return int_attribute(gemm, "transA", 0) == 0 && int_attribute(gemm, "transB", 0) == 0 &&
         float_attribute(gemm, "alpha", 1) == 1 && float_attribute(gemm, "beta", 1) == 1;
}

std::optional<Product> product_of(const Local& local, const Node& node) {
  const TensorType* type = local.type(node.out[0]);
  const Initializer* weights = local.constant(node.in[1]);
  if (type == nullptr || !type->shape || type->shape->empty() || type->dtype != DType::kF32 ||
      weights == nullptr || weights->shape.size() != 2) {
    return std::nullopt;
  }
  const auto rows = static_size(std::span(*type->shape).first(type->shape->size() - 1));
  const ValueId bias = node.in.size() > 2 ? node.in[2] : onnx::kAbsent;
  if (bias != onnx::kAbsent && (local.shape(bias) == nullptr || local.shape(bias)->size() != 1)) {
    return std::nullopt;
  }
  if (!rows || (node.op == "Gemm" && !is_plain_gemm(node))) return std::nullopt;
  return Product{weights, bias, *type, *rows, weights->shape[1], node.origin};
}

// The Gather of rows of a smaller matrix that computes the value, where multiplying those is less.
const Node* gather_of_fewer(const Local& local, ValueId id, const Product& product) {
  const Node* gather = local.producer(id, "Gather");
  const Dims* table = gather != nullptr ? local.shape(gather->in[0]) : nullptr;
  if (table == nullptr || table->size() != 2 || int_attribute(*gather, "axis", 0) != 0) {
    return nullptr;
  }
  const auto size = static_size(*table);
  const std::int64_t rows = size ? table->front().value() : product.rows;
  if (rows >= product.rows || local.constant(gather->in[0]) != nullptr) return nullptr;
  const std::int64_t saved = (product.rows - rows) * table->back().value();
  const bool is_worth_it =
      saved >= kProductsOfCopy * product.rows && saved * product.columns >= kProductsOfNode;
  return is_worth_it ? gather : nullptr;
}

// What is not gathered from fewer rows stays together. Empty when nothing is gathered so, or the
// columns are not known.
std::vector<Columns> columns_of(const Local& local, ValueId operand, const Product& product) {
  std::vector<ValueId> pieces{operand};
  if (const Node* concat = local.producer(operand, "Concat")) {
    const std::size_t rank = product.type.shape->size();
    if (from_front(int_attribute(*concat, "axis", 0), rank) != rank - 1) return {};
    pieces = concat->in;
  }
  std::vector<Columns> parts;
  bool is_any_gathered = false;
  for (ValueId id : pieces) {
    const Dims* shape = local.shape(id);
    if (!local.is_used_once(operand) || shape == nullptr || !shape->back().is_static()) return {};
    const Node* gather = gather_of_fewer(local, id, product);
    is_any_gathered |= gather != nullptr;
    if (parts.empty() || gather != nullptr || parts.back().gather != nullptr) {
      parts.push_back({{}, 0, gather});
    }
    parts.back().pieces.push_back(id);
    parts.back().count += shape->back().value();
  }
  return is_any_gathered ? parts : std::vector<Columns>{};
}

TensorType with_columns(TensorType type, std::int64_t columns) {
  type.shape->back() = columns;
  return type;
}

// Rows of the weights from `first` on, which share the bytes.
ValueId rows_of_weights(Local& local, const Initializer& weights, std::int64_t first,
                        std::int64_t count) {
  StridedView view = weights.view;
  view.sizes = {count, weights.shape[1]};
  view.offset += first * weights.shape[1];
  view.strides = {weights.shape[1], 1};
  return local.add_weight(std::move(view), {count, weights.shape[1]});
}

ValueId add_node(Local& local, const Product& product, Node node, TensorType type) {
  node.origin = product.origin;
  return local.add_node(std::move(node), std::move(type));
}

// The product of these columns, with the bias if it is given.
ValueId multiplied(Local& local, const Product& product, const Columns& part, ValueId weights,
                   ValueId bias) {
  TensorType type = product.type;
  ValueId rows = part.pieces[0];
  if (part.gather != nullptr) {
    rows = part.gather->in[0];
    type.shape = Dims{local.shape(rows)->front(), product.columns};
  } else if (part.pieces.size() > 1) {
    const auto last = static_cast<std::int64_t>(type.shape->size()) - 1;
    rows = add_node(local, product, make_node("Concat", part.pieces, {{"axis", last}}),
                    with_columns(product.type, part.count));
  }
  Node node = make_node("MatMul", {rows, weights});
  if (bias != onnx::kAbsent) {
    node.op = "Gemm";
    node.in.push_back(bias);
  }
  const ValueId result = add_node(local, product, std::move(node), type);
  if (part.gather == nullptr) return result;
  return add_node(local, product,
                  make_node("Gather", {result, part.gather->in[1]}, part.gather->attrs),
                  product.type);
}

bool multiply_first(Local& local, Node& node) {
  const auto product = product_of(local, node);
  if (!product) return false;
  const std::vector<Columns> parts = columns_of(local, node.in[0], *product);
  // The weights must lie row by row for their parts to do so.
  if (parts.empty() || !product->weights->view.is_dense()) return false;
  const Initializer weights = *product->weights;
  std::vector<ValueId> terms;
  std::int64_t row = 0;
  ValueId bias = product->bias;
  for (const Columns& part : parts) {
    // The first product of few rows takes the bias.
    const ValueId added =
        part.gather != nullptr ? std::exchange(bias, onnx::kAbsent) : onnx::kAbsent;
    const ValueId some = rows_of_weights(local, weights, row, part.count);
    terms.push_back(multiplied(local, *product, part, some, added));
    row += part.count;
  }
  ValueId sum = terms[0];
  for (std::size_t i = 1; i + 1 < terms.size(); ++i) {
    sum = add_node(local, *product, make_node("Add", {sum, terms[i]}), product->type);
  }
  if (terms.size() == 1) return local.replace(node, sum);
  node.op = "Add";
  node.in = {sum, terms.back()};
  node.attrs.clear();
  return true;
}

constexpr LocalRule kProducts[] = {{"Gemm", multiply_first}, {"MatMul", multiply_first}};

}  // namespace

std::size_t multiply_before_gathering(onnx::Model& model) { return apply_rules(model, kProducts); }

}  // namespace jaxport::pass
