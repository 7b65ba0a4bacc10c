// SPDX-License-Identifier: Apache-2.0
#include "axis/pattern.h"
#include "front/params.h"
#include "raise/expansions.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Label;
using axis::Labels;
using axis::Pattern;
using axis::Use;

// x[indices] along `from`: a gather over [from][other dims]
Use taken(Graph& graph, const Use& x, const Use& indices, Label from, Label to) {
  const Labels rest = axis::without(x.flat(), {from});
  auto info = std::make_shared<axis::PrimInfo>();
  front::Type in{x.node->dtype, {graph.size(from)}}, out{x.node->dtype, {graph.size(to)}};
  Pattern axes{{from}}, result{{to}};
  front::GatherParams params{{{}, {0}, {0}, {}, {}, "promise_in_bounds"}, {1}, {}};
  for (Label label : rest) {
    params.window_dims.push_back(std::ssize(in.shape));
    for (Dims* shape : {&in.shape, &out.shape}) shape->push_back(graph.size(label));
    params.slice_sizes.push_back(graph.size(label));
    for (Pattern* pattern : {&axes, &result}) pattern->push_back({label});
  }
  info->eqn.primitive = "gather";
  info->eqn.attrs = params.attrs();
  info->in = {std::move(in), {indices.node->dtype, {graph.size(to), 1}}};
  info->out = {std::move(out)};
  const Use index = graph.relayout(indices, {{to}});
  return {graph.prim(info, {graph.relayout(x, axes), index})[0].node, result};
}

}  // namespace

Use expand_resize(Graph& graph, const Use& use) {
  const bool is_nearest = *use.node->attr("mode")->get_if<std::string>() == "nearest";
  Use x = graph.child(use, 0);
  for (std::size_t k = 1; k < use.node->edges.size(); ++k) {
    const std::string suffix = std::to_string(k - 1);
    const Labels from = graph.role(use, "i" + suffix), to = graph.role(use, "o" + suffix);
    const Use table = graph.child(use, k);
    x = is_nearest ? taken(graph, x, table, from[0], to[0])
                   : graph.contract(x, table, from, use.node->dtype);
  }
  return x;
}

}  // namespace jaxport::raise
