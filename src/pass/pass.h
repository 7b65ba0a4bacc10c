// SPDX-License-Identifier: Apache-2.0
// ONNX -> ONNX passes, one file each. All keep the graph valid and the names of inputs and outputs.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "onnx/ir.h"

namespace jaxport::pass {

// Each returns how many nodes, results or initializers it removed or moved.
std::size_t remove_dead_code(onnx::Model& model);   // nodes, results, carries and initializers
                                                    // that nobody needs
std::size_t hoist_invariants(onnx::Model& model);   // out of loops: what every step computes alike
std::size_t merge_equal_nodes(onnx::Model& model);  // CSE
std::size_t remove_noops(
    onnx::Model& model);  // Cast to the same type, Reshape to the same shape,
                          // identity Transpose, Identity, Expand to the same shape
std::size_t merge_views(
    onnx::Model& model);  // Transpose of Transpose, Reshape of Reshape, Cast chains
std::size_t merge_slices(onnx::Model& model);  // Slice of Slice along other axes
std::size_t merge_copies(onnx::Model& model);  // Concat of Concats, Gather of a large Gather
std::size_t fold_block_moves(
    onnx::Model& model);  // Reshape, Transpose, Reshape that are DepthToSpace or SpaceToDepth
std::size_t flatten_rows(onnx::Model& model);        // tokens whose products Gemm can take
std::size_t fold_constants(onnx::Model& model);      // nodes that compute with small constants only
std::size_t make_average_pools(onnx::Model& model);  // Reshape and ReduceMean of blocks
std::size_t make_batch_norms(onnx::Model& model);    // Mul and Add of a constant for each channel
std::size_t make_gemms(onnx::Model& model);          // MatMul and Add of matrices
std::size_t name_constant_results(onnx::Model& model);  // results that are initializers
std::size_t share_constants(onnx::Model& model);        // equal small initializers become one

// Calls that carry their body become calls of functions, after all other passes. Returns how many
// functions there are.
std::size_t make_functions(onnx::Model& model);

struct Pass {
  std::string_view name;
  std::size_t (*run)(onnx::Model&);
};
std::span<const Pass> pipeline();  // in order
void run_all(onnx::Model& model);  // the pipeline until nothing changes, at most 4 rounds

}  // namespace jaxport::pass
