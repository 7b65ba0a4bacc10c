// SPDX-License-Identifier: Apache-2.0
#include "pass/optimise.h"

#include <algorithm>
#include <vector>

#include "onnx/schema.h"
#include "onnx/walk.h"
#include "pass/understand.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Model;
using onnx::ValueId;

// Types are inferred anew where others read them. flatten_rows and what makes ops for ONNX Runtime
// come behind what takes nodes away.
constexpr Pass kAnyModelPasses[] = {
    {"lift_constants", lift_constants},
    {"take_known_branches", take_known_branches},
    {"fold_sizes", fold_sizes},
    {"fold_numbers", fold_numbers},
    // These four are the folding passes.
    {"remove_identities", remove_identities},
    {"merge_views", merge_views},
    {"shorten_corridors", shorten_corridors},
    {"cancel_pieces", cancel_pieces},
    {"merge_slices", merge_slices},
    {"merge_copies", merge_copies},
    {"remove_noops", remove_noops},
    {"move_weights", move_weights},
    {"fold_block_moves", fold_block_moves},
    {"make_average_pools", make_average_pools},
    {"absorb_scales", absorb_scales},
    {"make_gemms", make_gemms},
    {"hoist_safe_invariants", hoist_safe_invariants},
    {"share_weights", share_weights},
    {"merge_equal_nodes", merge_equal_nodes},
    {"name_constant_results", name_constant_results},
    {"remove_dead_code", remove_dead_code},
};
constexpr std::size_t kFoldingPasses = 4;
constexpr int kMostRoundsOfAll = 8;
// A number that is folded may tell the shape of the next one.
constexpr int kMostFolds = 24;

// Before IR version 4 each initializer was an input, too; passes make some that are none.
constexpr std::int64_t kFreeInitializers = 4;

// What passes that build nodes set as for a model of ours.
struct Header {
  std::int64_t ir_version;
  std::vector<onnx::OpsetImport> opsets;
};

// Types that the file declares where nothing is inferred, and those of all inputs.
void restore_types(Model& model, const std::vector<onnx::ValueInfo>& declared) {
  onnx::for_each_graph(model.graph, [&](const Graph& graph) {
    for (ValueId id : graph.inputs) {
      if (id < declared.size()) model.values[id].type = declared[id].type;
    }
  });
  for (std::size_t id = 0; id < declared.size(); ++id) {
    if (!model.values[id].type) model.values[id].type = declared[id].type;
  }
}

}  // namespace

std::span<const Pass> passes_for_any_model() { return kAnyModelPasses; }

PassCounts optimise(Model& model, std::span<const std::pair<std::string, std::string>> functions) {
  const Header header{std::max(model.ir_version, kFreeInitializers), model.opsets};
  const std::vector<onnx::ValueInfo> declared(model.values.begin(), model.values.end());
  PassCounts counts;
  for (const Pass& pass : kAnyModelPasses) counts.push_back({pass.name});
  mark_foreign(model, functions);
  const auto run = [&](std::size_t i) { return run_counted(kAnyModelPasses[i], model, counts[i]); };
  for (int round = 0; round < kMostRoundsOfAll; ++round) {
    std::size_t changes = 0;
    for (int fold = 0; fold < kMostFolds; ++fold) {
      infer_types(model);
      std::size_t folded = 0;
      for (std::size_t i = 0; i < kFoldingPasses; ++i) folded += run(i);
      changes += folded;
      if (folded == 0) break;
    }
    for (std::size_t i = kFoldingPasses; i < std::size(kAnyModelPasses); ++i) changes += run(i);
    if (changes == 0) break;
  }
  restore_types(model, declared);
  model.ir_version = header.ir_version;
  model.opsets = header.opsets;
  onnx::name_values(model);
  return counts;
}

}  // namespace jaxport::pass
