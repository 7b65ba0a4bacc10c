// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "pass/pass.h"
#include "support/watch.h"

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
    {"multiply_before_gathering", multiply_before_gathering},
    {"make_batch_norms", make_batch_norms},
    {"make_means", make_means},
    {"make_one_hots", make_one_hots},
    {"make_short_reductions", make_short_reductions},
    {"hoist_invariants", hoist_invariants},
    {"fold_constants", fold_constants},
    {"share_constants", share_constants},
    {"merge_equal_nodes", merge_equal_nodes},
    {"name_constant_results", name_constant_results},
    {"remove_dead_code", remove_dead_code},
};
constexpr int kMostRounds = 4;

std::size_t run(const Pass& pass, onnx::Model& model) {
  watch().enter("passes");
  const std::size_t removed = pass.run(model);
  if (removed > 0 && watch().hears("passes")) {
    watch().say("passes", fmt::format("{}: {} nodes or values less", pass.name, removed));
  }
  return removed;
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

void run_all(onnx::Model& model, const std::function<void(const Pass&)>& after) {
  for (int round = 0; round < kMostRounds; ++round) {
    std::size_t removed = 0;
    for (const Pass& pass : kPipeline) {
      const std::size_t by_this = run(pass, model);
      if (by_this > 0 && after) after(pass);
      removed += by_this;
    }
    if (removed == 0) return;
  }
}

}  // namespace jaxport::pass
