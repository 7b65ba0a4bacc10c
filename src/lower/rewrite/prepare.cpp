// SPDX-License-Identifier: Apache-2.0
#include "lower/rewrite/prepare.h"

#include <algorithm>
#include <span>
#include <type_traits>

#include "lower/macro/macro.h"
#include "lower/rewrite/rewrite.h"
#include "raise/engine/raise.h"

namespace jaxport::lower {
namespace {

using axis::Use;

// What is tried at a node, with those of the facts about it that it asks for.
struct Attempt {
  Use (*rewrite)(axis::Graph&, const Use&, const axis::UseCounts&, const Options&);
  bool (*when)(const Options&) = nullptr;  // always, unless given
};

template <auto kRewrite>
Use with(axis::Graph& graph, const Use& use, const axis::UseCounts& uses, const Options& options) {
  using Rewrite = decltype(kRewrite);
  if constexpr (std::is_invocable_v<Rewrite, axis::Graph&, const Use&>) {
    return kRewrite(graph, use);
  } else if constexpr (std::is_invocable_v<Rewrite, axis::Graph&, const Use&, const Options&>) {
    return kRewrite(graph, use, options);
  } else if constexpr (std::is_invocable_v<Rewrite, axis::Graph&, const Use&,
                                           const axis::UseCounts&>) {
    return kRewrite(graph, use, uses);
  } else {
    return kRewrite(graph, use, uses, options);
  }
}

// An op that a rule made, in the form that the target takes: rewritten, or its decomposition.
Use available(axis::Graph& graph, const Use& use, const Options& options) {
  if (!raise::is_raised(*use.node)) return {};
  if (!is_available(*use.node, options)) return raise::expand(graph, use);
  const auto rewritten = find_macro(*use.node)->rewritten;
  return rewritten ? rewritten(use, options) : Use{};
}

bool has_inexact_sigmoid(const Options& options) {
  return options.preferences().has_inexact_sigmoid;
}

bool is_exact(const Options& options) { return options.exact; }

// In each of these the first that finds something is taken.
constexpr Attempt kOps[] = {{with<available>}, {with<narrow_norm>}};
constexpr Attempt kForms[] = {{with<mean>},
                              {with<window_mean>},
                              {with<gather_inside>},
                              {with<triangle>},
                              {with<eye>},
                              {with<whole_rope>},
                              {with<sizes_side_by_side>},
                              {with<sign_test>},
                              {with<rotation>},
                              {with<floor_division>},
                              {with<search_in_order>},
                              {with<order_without_nan>},
                              {with<order_with_signs>, is_exact},
                              {with<plain_exponential>},
                              {with<exact_sigmoid>, has_inexact_sigmoid},
                              {with<scatter_inside>}};
constexpr Attempt kScales[] = {{with<fold_affine>}};
constexpr Attempt kBiases[] = {{with<conv_bias>}};
constexpr Attempt kTransposed[] = {{with<conv_transpose>}};

bool has_convolution(const axis::Program& program) {
  return std::ranges::any_of(axis::topological(program), [](const axis::Node* node) {
    return node->is(axis::Kind::kPrim, "conv_general_dilated");
  });
}

void rewrite(axis::Program& program, std::span<const Attempt> attempts, const Options& options) {
  axis::rebuild(program, [&](axis::Graph& graph, const Use& use, const axis::UseCounts& uses) {
    for (const auto& [attempt, when] : attempts) {
      if (when && !when(options)) continue;
      if (Use found = attempt(graph, use, uses, options)) return found;
    }
    return Use{};
  });
  if (options.after) options.after(program);
}

}  // namespace

void prepare(axis::Program& program, const Options& options) {
  rewrite(program, kOps, options);
  rewrite(program, kForms, options);
  rewrite(program, kScales, options);
  if (has_convolution(program)) {
    rewrite(program, kBiases, options);
    rewrite(program, kTransposed, options);
  }
  for (axis::Program* region : axis::regions(program)) prepare(*region, options);
}

}  // namespace jaxport::lower
