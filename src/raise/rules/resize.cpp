// SPDX-License-Identifier: Apache-2.0
// resize(x, weights…)[o…] = sum over i… of x[i…] weights[i, o]…, for one axis i or two;
// resize(x, indices…)[o…] = x[indices[o]…] in mode nearest.
//
// jax.image.resize contracts each axis with a matrix that it computes from positions, or looks up
// nearest neighbours. The matrix or table is evaluated here and compared with what ONNX Resize
// would do; it stays an operand, so that the decomposition has JAX's own numbers.
#include <algorithm>
#include <cmath>

#include "axis/graph/pattern.h"
#include "front/params.h"
#include "raise/algebra/interpolation.h"
#include "raise/algebra/views.h"
#include "raise/engine/ops.h"
#include "raise/engine/rules.h"

namespace jaxport::raise {
namespace {

using axis::Graph;
using axis::Kind;
using axis::Label;
using axis::Labels;
using axis::Pattern;
using axis::Use;

constexpr std::int64_t kMostWeights = 1 << 20;

// The same value as a constant over these labels.
Use as_constant(Graph& graph, const Tensor& value, const Labels& dims) {
  Use use = graph.constant(value);
  axis::Substitution seen;
  const Labels own = use.flat();
  for (std::size_t i = 0; i < own.size(); ++i) seen.set(own[i], {dims[i]});
  return seen(use);
}

// --- one axis

struct Resized {
  Use x, table;  // table: weights over (from, to), or indices over (to)
  Label from, to;
  Interpolation how;
};

// The resize below x along another axis, when it is one node with this; else nullopt.
std::optional<ResizeOp> joinable(const Matcher& m, const Resized& r) {
  Use x = r.x;
  if (x.node->kind == Kind::kRelayout && m.uses[x.node] <= 1) x = m.graph.child(x, 0);
  if (!x || !is<ResizeOp>(*x.node) || m.uses[x.node] > 1) return std::nullopt;
  auto inner = read<ResizeOp>(x);
  const bool is_free = inner.axes.size() == 1 && inner.axes[0].to != r.from;
  const bool agrees = inner.mode == r.how.mode &&
                      ((r.how.plain && inner.plain) || (r.how.antialias && inner.antialias));
  return is_free && agrees ? std::optional(std::move(inner)) : std::nullopt;
}

Use to_macro(const Matcher& m, const Resized& r, const Use& root) {
  ResizeOp op{r.x, {}, std::string(r.how.mode), r.how.antialias, r.how.plain};
  if (auto inner = joinable(m, r)) {
    op = *std::move(inner);
    op.plain = op.plain && r.how.plain;
    op.antialias = op.antialias && r.how.antialias;
  }
  op.axes.push_back({r.table, r.from, r.to});
  return make(std::move(op), root.flat());
}

// --- linear and cubic: a contraction with a matrix

// A look at one column spares the evaluation of most weights of a network.
bool may_be_means(Graph& graph, const Use& weights, Label from) {
  if (!graph.is_constant(weights) || weights.labels.size() != 2) return true;
  const Tensor& data = weights.node->data;
  const bool is_first = weights.labels[0] == Labels{from};
  const std::int64_t count = data.shape[is_first ? 0 : 1], stride = is_first ? data.shape[1] : 1;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += data.at(i * stride);
  return std::abs(sum - 1) < 0.01;
}

Use match_weights(const Matcher& m, const Use& root) {
  Graph& graph = m.graph;
  const DType dtype = root.node->dtype;
  if (!is_float(dtype) || dtype == DType::kF64) return {};
  for (std::size_t k : {0u, 1u}) {
    const Use weights = graph.child(root, k), x = graph.child(root, 1 - k);
    const Labels labels = weights.flat(), from = axis::without(labels, root.flat()),
                 to = axis::without(labels, x.flat());
    if (labels.size() != 2 || from.size() != 1 || to.size() != 1 || from == to) continue;
    const bool is_stored = graph.is_constant(weights);
    if (x.node->dtype != dtype || weights.node->dtype != dtype) continue;
    if (!is_closed(*weights.node) || is_closed(*x.node)) continue;
    if (graph.size_of(labels).value() > kMostWeights) continue;
    if (!may_be_means(graph, weights, from[0])) continue;
    const Labels dims{from[0], to[0]};
    const Tensor table = evaluated(graph, weights, dims);
    const auto how = interpolation_by(table);
    if (how) return to_macro(m, {x, as_constant(graph, table, dims), from[0], to[0], *how}, root);
    if (!is_stored && are_means(table)) {
      return m.miss(root, "the weights are not those of ONNX Resize");
    }
  }
  return {};
}

// --- nearest: a look-up along one dim

// The dim of x that the gather looks up, when it takes all other dims whole.
std::optional<std::size_t> looked_up(const axis::PrimInfo& gather) {
  const auto params = front::GatherParams::read(gather.eqn);
  const Ints& map = params.map;
  const Dims &shape = gather.in[0].shape, &index = gather.in[1].shape;
  if (map.size() != 1 || params.dropped != map) return std::nullopt;
  if (index.size() != 2 || !index[1].is_one()) return std::nullopt;
  const auto dim = static_cast<std::size_t>(map[0]);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != dim && !(params.slice_sizes[i] == shape[i])) return std::nullopt;
  }
  return dim;
}

// x as the result sees it, with a label of its own for the dim that is looked up.
struct LookUp {
  Use x;
  Labels from, to;
};
LookUp look_up(Graph& graph, const Use& root, std::size_t dim) {
  const axis::PrimInfo& gather = *root.node->prim;
  const Ints offsets = front::GatherParams::read(gather.eqn).window_dims;
  Pattern windows;  // of the result, dims of x other than `dim`
  LookUp found;
  std::size_t axis = 0;
  for (std::size_t i = 0; i < gather.out[0].shape.size(); ++i) {
    Labels labels = gather.out[0].shape[i].is_one() ? Labels{} : root.labels[axis++];
    const bool is_window =
        std::ranges::find(offsets, static_cast<std::int64_t>(i)) != offsets.end();
    if (is_window)
      windows.push_back(std::move(labels));
    else
      found.to = std::move(labels);
  }
  found.x.node = root.node->edges[0].node;
  for (std::size_t i = 0, window = 0; i < gather.in[0].shape.size(); ++i) {
    const Dim& size = gather.in[0].shape[i];
    if (i == dim && !size.is_one()) found.from = {graph.label(size)};
    const Labels& labels = i == dim ? found.from : windows[window++];
    if (!size.is_one()) found.x.labels.push_back(labels);
  }
  return found;
}

bool rises(const Tensor& indices) {
  for (std::int64_t j = 1; j < indices.size(); ++j) {
    if (indices.int_at(j) < indices.int_at(j - 1)) return false;
  }
  return true;
}

Use match_indices(const Matcher& m, const Use& root) {
  Graph& graph = m.graph;
  const auto dim = looked_up(*root.node->prim);
  if (!dim) return {};
  const Use indices = graph.child(root, 1);
  const LookUp found = look_up(graph, root, *dim);
  if (found.from.size() != 1 || found.to.size() != 1 || indices.flat().size() != 1) return {};
  const Dim from = graph.size(found.from[0]);
  if (!from.is_static() || !is_closed(*indices.node) || is_closed(*found.x.node)) return {};
  const Tensor table = evaluated(graph, indices, indices.flat());
  const auto how = interpolation_at(table, from.value());
  if (!how) {
    const bool is_computed = !graph.is_constant(indices);
    if (!is_computed || !rises(table)) return {};
    return m.miss(root, "the indices are not those of ONNX Resize");
  }
  const Use constant = as_constant(graph, table, found.to);
  return to_macro(m, {found.x, constant, found.from[0], found.to[0], *how}, root);
}

Use match_resize(const Matcher& m, const Use& root) {
  return root.node->kind == Kind::kContract ? match_weights(m, root) : match_indices(m, root);
}

}  // namespace

Rules resize_rules() {
  static const Rule kRules[] = {{"resize", {"contract", "gather"}, match_resize}};
  return kRules;
}

namespace {

// x[indices] along `from`: a gather over [from][other dims]
Use taken(Graph& graph, const Use& x, const Use& indices, Label from, Label to) {
  const Labels rest = axis::without(x.flat(), {from});
  auto info = std::make_shared<axis::PrimInfo>();
  front::Type in{x.node->dtype, {graph.size(from)}}, out{x.node->dtype, {graph.size(to)}};
  front::GatherParams params{{{}, {0}, {0}, {}, {}, "promise_in_bounds"}, {1}, {}};
  Pattern axes{{from}}, result{{to}};
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

Use ResizeOp::expand() const {
  Graph& graph = *x.node->graph;
  Use y = x;
  for (const Axis& axis : axes) {
    y = is_nearest() ? taken(graph, y, axis.table, axis.from, axis.to)
                     : graph.contract(y, axis.table, {axis.from}, x.node->dtype);
  }
  return y;
}

}  // namespace jaxport::raise
