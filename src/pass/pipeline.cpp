// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>

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
    {"share_large_weights", share_large_weights},
    {"merge_equal_nodes", merge_equal_nodes},
    {"name_constant_results", name_constant_results},
    {"remove_dead_code", remove_dead_code},
};
constexpr int kMostRounds = 4;

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

std::size_t run_counted(const Pass& pass, onnx::Model& model, PassCount& count) {
  using Clock = std::chrono::steady_clock;
  watch().enter("passes");
  const auto start = Clock::now();
  const std::size_t changes = pass.run(model);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  count.changes += changes;
  count.seconds += seconds;
  if (changes > 0 && watch().hears("passes")) {
    watch().say("passes", fmt::format("{}: {} nodes or values less, {:.1f} ms", pass.name, changes,
                                      1e3 * seconds));
  }
  return changes;
}

PassCounts run_all(onnx::Model& model, const std::function<void(const Pass&)>& after) {
  PassCounts counts;
  for (const Pass& pass : kPipeline) counts.push_back({pass.name});
  for (int round = 0; round < kMostRounds; ++round) {
    std::size_t changes = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::size_t by_this = run_counted(kPipeline[i], model, counts[i]);
      if (by_this > 0 && after) after(kPipeline[i]);
      changes += by_this;
    }
    if (changes == 0) break;
  }
  return counts;
}

}  // namespace jaxport::pass
