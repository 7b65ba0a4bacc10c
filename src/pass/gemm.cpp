// SPDX-License-Identifier: Apache-2.0
// x . w + b of matrices is one Gemm.
#include "pass/local.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Node;
using onnx::ValueId;

bool is_matrix(const Local& local, ValueId id) {
  const Dims* shape = local.shape(id);
  if (shape == nullptr || shape->size() != 2) return false;
  const DType dtype = local.type(id)->dtype;
  return dtype == DType::kF32 || dtype == DType::kF64;
}

bool is_vector_of_columns(const Local& local, ValueId bias, ValueId product) {
  const Dims *b = local.shape(bias), *y = local.shape(product);
  return b != nullptr && y != nullptr && b->size() == 1 && y->size() == 2 &&
         b->front() == y->back();
}

// A vector is added to a product that nobody else uses.
bool take_product(Local& local, Node& sum) {
  for (std::size_t i : {0u, 1u}) {
    const Node* product = local.own_producer(sum.in[i], "MatMul");
    if (product == nullptr) continue;
    if (!is_matrix(local, product->in[0]) || !is_matrix(local, product->in[1])) continue;
    if (!is_vector_of_columns(local, sum.in[1 - i], product->out[0])) continue;
    sum.op = "Gemm";
    sum.in = {product->in[0], product->in[1], sum.in[1 - i]};
    local.take(*product);
    return true;
  }
  return false;
}

constexpr LocalRule kGemms[] = {{"Add", take_product, "MatMul"}};

}  // namespace

std::size_t make_gemms(onnx::Model& model) { return apply_rules(model, kGemms); }

}  // namespace jaxport::pass
