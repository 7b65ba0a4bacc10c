// SPDX-License-Identifier: Apache-2.0
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

// Merged views leave no-ops behind, shared constants and hoisted nodes make more nodes equal, and
// all of them leave dead code.
constexpr Pass kPipeline[] = {
    {"merge_views", merge_views},
    {"merge_slices", merge_slices},
    {"merge_copies", merge_copies},
    {"remove_noops", remove_noops},
    {"fold_block_moves", fold_block_moves},
    {"make_average_pools", make_average_pools},
    {"flatten_rows", flatten_rows},
    {"make_gemms", make_gemms},
    {"make_batch_norms", make_batch_norms},
    {"hoist_invariants", hoist_invariants},
    {"fold_constants", fold_constants},
    {"share_constants", share_constants},
    {"merge_equal_nodes", merge_equal_nodes},
    {"name_constant_results", name_constant_results},
    {"remove_dead_code", remove_dead_code},
};
constexpr int kMostRounds = 4;

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

void run_all(onnx::Model& model) {
  for (int round = 0; round < kMostRounds; ++round) {
    std::size_t removed = 0;
    for (const Pass& pass : kPipeline) removed += pass.run(model);
    if (removed == 0) return;
  }
}

}  // namespace jaxport::pass
