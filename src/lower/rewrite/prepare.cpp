// SPDX-License-Identifier: Apache-2.0
#include "lower/rewrite/prepare.h"

#include <algorithm>

#include "lower/macro/macro.h"
#include "lower/rewrite/rewrite.h"
#include "raise/engine/raise.h"

namespace jaxport::lower {
namespace {

using axis::Use;

// An op that a rule made, in the form that the target takes: rewritten, or its decomposition.
Use available(axis::Graph& graph, const Use& use, const Options& options) {
  if (!raise::is_raised(*use.node)) return {};
  if (!is_available(*use.node, options)) return raise::expand(graph, use);
  const auto rewritten = find_macro(*use.node)->rewritten;
  return rewritten ? rewritten(use, options) : Use{};
}

bool has_convolution(const axis::Program& program) {
  return std::ranges::any_of(axis::topological(program), [](const axis::Node* node) {
    return node->is(axis::Kind::kPrim, "conv_general_dilated");
  });
}

}  // namespace

void prepare(axis::Program& program, const Options& options) {
  const Preferences& preferences = options.preferences();
  const auto rewrite = [&](const axis::Rewrite& by) {
    axis::rebuild(program, by);
    if (options.after) options.after(program);
  };
  rewrite([&](axis::Graph& graph, const Use& use, const axis::UseCounts& uses) {
    const Use found = available(graph, use, options);
    return found ? found : narrow_norm(graph, use, uses, options);
  });
  rewrite([&](axis::Graph& graph, const Use& use, const axis::UseCounts& uses) {
    Use found = mean(graph, use, uses);
    if (!found) found = window_mean(graph, use, uses, options.opset);
    if (!found) found = gather_inside(graph, use);
    if (!found) found = triangle(graph, use);
    if (!found) found = eye(graph, use);
    if (!found) found = whole_rope(graph, use, uses);
    if (!found) found = sizes_side_by_side(graph, use);
    if (!found) found = sign_test(graph, use, options.opset);
    if (!found) found = rotation(graph, use);
    if (!found) found = floor_division(graph, use);
    if (!found) found = search_in_order(graph, use);
    if (!found) found = order_without_nan(graph, use);
    if (!found && options.exact) found = order_with_signs(graph, use);
    if (!found) found = plain_exponential(graph, use, uses);
    if (!found && preferences.has_inexact_sigmoid) found = exact_sigmoid(graph, use);
    return found ? found : scatter_inside(graph, use);
  });
  rewrite(fold_affine);
  if (has_convolution(program)) {
    rewrite(conv_bias);
    rewrite([&](axis::Graph& graph, const Use& use, const axis::UseCounts&) {
      return conv_transpose(graph, use, options);
    });
  }
  for (axis::Program* region : axis::regions(program)) prepare(*region, options);
}

}  // namespace jaxport::lower
