// SPDX-License-Identifier: Apache-2.0
// ONNX -> ONNX passes, one file each. All keep the graph valid and the names of inputs and outputs.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

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
std::size_t multiply_before_gathering(
    onnx::Model& model);                        // products of rows that are gathered several times
std::size_t make_means(onnx::Model& model);     // the half of a sum
std::size_t make_one_hots(onnx::Model& model);  // comparisons of an index with all classes
std::size_t make_short_reductions(
    onnx::Model& model);  // squares, magnitudes, roots and logarithms beside a ReduceSum
std::size_t name_constant_results(onnx::Model& model);  // results that are initializers
std::size_t share_constants(onnx::Model& model);        // equal small initializers become one
std::size_t share_large_weights(onnx::Model& model);  // and equal large ones, whatever their names

// --- for models that others wrote

std::size_t lift_constants(onnx::Model& model);       // Constant nodes become initializers
std::size_t take_known_branches(onnx::Model& model);  // If with a known condition
std::size_t fold_sizes(onnx::Model& model);           // sizes that are known or computed twice
std::size_t fold_numbers(onnx::Model& model);         // as fold_constants, of floats and more
std::size_t remove_identities(onnx::Model& model);    // x + 0, Dropout, Concat of one, …
std::size_t shorten_corridors(onnx::Model& model);    // Reshape, Transpose, Expand, …
std::size_t cancel_pieces(onnx::Model& model);        // Split, Concat, Slice
std::size_t move_weights(onnx::Model& model);         // Transpose or Reshape of a weight
std::size_t hoist_safe_invariants(
    onnx::Model& model);  // as hoist_invariants, where the loop may take no step
std::size_t absorb_scales(onnx::Model& model);  // into the weights of Conv, Gemm, MatMul
std::size_t share_weights(onnx::Model& model);  // equal initializers of any size

// Calls that carry their body become calls of functions, after all other passes. Returns how many
// functions there are.
std::size_t make_functions(onnx::Model& model);

// Constants that one body of control flow alone reads become constants of it, after everything that
// looks for equal ones. Returns how many there are.
std::size_t move_constants_inwards(onnx::Model& model);

struct Pass {
  std::string_view name;
  std::size_t (*run)(onnx::Model&);
};
std::span<const Pass> pipeline();  // in order

// What a pass did in all rounds.
struct PassCount {
  std::string_view name;
  std::size_t changes = 0;
  double seconds = 0;
};
using PassCounts = std::vector<PassCount>;
// Runs a pass, adds to its count and returns its changes.
std::size_t run_counted(const Pass& pass, onnx::Model& model, PassCount& count);

// The pipeline until nothing changes, at most 4 rounds. `after` hears of each pass that changed
// something. Returns a count for each pass, in order.
PassCounts run_all(onnx::Model& model, const std::function<void(const Pass&)>& after = {});

}  // namespace jaxport::pass
