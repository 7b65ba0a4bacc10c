// SPDX-License-Identifier: Apache-2.0
// Constants of any size: Constant nodes become initializers, movements of weights become views of
// them, and what is there twice is there once.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "onnx/walk.h"
#include "pass/fold.h"
#include "pass/local.h"
#include "pass/pass.h"
#include "support/hash.h"
#include "support/hash_index.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Initializer;
using onnx::Node;
using onnx::ValueId;

// --- Constant nodes

std::optional<Tensor> value_of_constant(const Node& node) {
  if (node.op != "Constant" || !node.domain.empty() || node.attrs.size() != 1) return std::nullopt;
  const auto& value = node.attrs[0].value;
  if (const auto* tensor = std::get_if<Tensor>(&value)) return *tensor;
  if (const auto* number = std::get_if<float>(&value)) return scalar(DType::kF32, *number);
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return int_scalar(DType::kI64, *number);
  if (const auto* numbers = std::get_if<Ints>(&value)) return int64s(*numbers);
  if (const auto* numbers = std::get_if<std::vector<float>>(&value)) {
    MutableTensor result = allocate(DType::kF32, {std::ssize(*numbers)});
    std::ranges::copy(*numbers, result.as<float>());
    return result.tensor;
  }
  return std::nullopt;
}

// A result of a subgraph stays the result of a node; one of the main graph may be an initializer.
std::size_t lift(onnx::Model& model, Graph& graph) {
  std::size_t lifted = 0;
  const bool is_main = &graph == &model.graph;
  lifted += std::erase_if(graph.nodes, [&](const Node& node) {
    auto value = value_of_constant(node);
    if (!value || node.out.size() != 1 || node.out[0] == onnx::kAbsent) return false;
    const bool is_output = std::ranges::find(graph.outputs, node.out[0]) != graph.outputs.end();
    if (is_output && !is_main) return false;
    Shape shape = value->shape;
    model.values[node.out[0]].type = onnx::TensorType{value->dtype, to_dims(shape)};
    graph.initializers.push_back({node.out[0], whole(std::move(*value)), std::move(shape)});
    return true;
  });
  for (const Node& node : graph.nodes) {
    onnx::for_each_subgraph(node, [&](Graph& inner) { lifted += lift(model, inner); });
  }
  return lifted;
}

// --- movements of weights

// The view with a stride for each dim of its shape.
std::optional<StridedView> with_dims(const Initializer& weight) {
  if (weight.view.sizes == weight.shape) return weight.view;
  if (!weight.view.is_dense()) return std::nullopt;
  return StridedView{weight.view.base, weight.view.offset, weight.shape,
                     row_major_strides(weight.shape)};
}

std::optional<Shape> static_shape(const Local& local, ValueId id) {
  const Dims* dims = local.shape(id);
  if (dims == nullptr) return std::nullopt;
  Shape shape;
  for (const Dim& size : *dims) {
    if (!size.is_static()) return std::nullopt;
    shape.push_back(size.value());
  }
  return shape;
}

// A large weight that others read as it is would be there twice.
bool may_move(const Local& local, ValueId id) {
  constexpr std::int64_t kSmall = 4096;
  const Initializer* weight = local.constant(id);
  return weight != nullptr && (local.is_used_once(id) || weight->view.size() <= kSmall);
}

bool transposes_weight(Local& local, Node& node) {
  const Initializer* weight = local.constant(node.in[0]);
  if (!may_move(local, node.in[0]) || weight->view.size() == 0) return false;
  const auto from = with_dims(*weight);
  if (!from) return false;
  Ints perm(from->sizes.size());
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (const auto given = ints_attribute(node, "perm")) perm = *given;
  StridedView to{from->base, from->offset, {}, {}};
  for (std::int64_t axis : perm) {
    const auto at = from_front(axis, from->sizes.size());
    if (!at) return false;
    to.sizes.push_back(from->sizes[*at]);
    to.strides.push_back(from->strides[*at]);
  }
  Shape shape = to.sizes;
  return local.replace(node, local.add_weight(std::move(to), std::move(shape)));
}

bool regroups_weight(Local& local, Node& node) {
  const auto shape = static_shape(local, node.out[0]);
  if (!shape || !may_move(local, node.in[0])) return false;
  return local.replace(node, local.add_weight(local.constant(node.in[0])->view, *shape));
}

constexpr LocalRule kWeightMoves[] = {
    {"Flatten", regroups_weight},     {"Reshape", regroups_weight},   {"Squeeze", regroups_weight},
    {"Transpose", transposes_weight}, {"Unsqueeze", regroups_weight},
};
static_assert(std::ranges::is_sorted(kWeightMoves, {}, &LocalRule::op));

// --- equal weights

class EqualWeights {
 public:
  explicit EqualWeights(onnx::Model& model) : rewriter_(model) {
    onnx::for_each_graph(model.graph, [this](const Graph& graph) {
      inputs_.insert(graph.inputs.begin(), graph.inputs.end());
      for (const Initializer& weight : graph.initializers) ++unsorted_alike_[kind_of(weight)];
    });
  }

  std::size_t share(Graph& graph) {
    const std::size_t outside = seen_.size();
    std::size_t shared = std::erase_if(graph.initializers, [this](const Initializer& weight) {
      return share_or_remember(weight);
    });
    for (const Node& node : graph.nodes) {
      onnx::for_each_subgraph(node, [&](Graph& inner) { shared += share(inner); });
    }
    seen_.shrink(outside);
    return shared;
  }
  void finish() { rewriter_.finish(); }

 private:
  // Only weights of one dtype and shape are read and compared.
  static std::uint64_t kind_of(const Initializer& weight) {
    auto hash = static_cast<std::uint64_t>(weight.view.base.dtype);
    for (std::int64_t size : weight.shape) hash = mix(hash, static_cast<std::uint64_t>(size));
    return hash;
  }

  static Tensor content(const Initializer& weight) {
    Tensor tensor = materialise(weight.view);
    tensor.shape = weight.shape;
    return tensor;
  }

  bool share_or_remember(const Initializer& weight) {
    const bool is_alone = unsorted_alike_[kind_of(weight)] < 2;
    if (is_alone || inputs_.contains(weight.value)) return false;
    const Tensor tensor = content(weight);
    const std::uint64_t hash = content_hash(tensor);
    const Initializer* kept = seen_.find(hash, [&](const Initializer& other) {
      return same_bytes(content(other), tensor) && rewriter_.can_replace(weight.value, other.value);
    });
    if (kept == nullptr) {
      seen_.add(hash, weight);
      return false;
    }
    rewriter_.replace(weight.value, kept->value);
    return true;
  }

  Rewriter rewriter_;
  std::unordered_set<ValueId> inputs_;
  std::unordered_map<std::uint64_t, std::size_t> unsorted_alike_;
  HashIndex<Initializer> seen_;
};

}  // namespace

std::size_t lift_constants(onnx::Model& model) { return lift(model, model.graph); }

std::size_t move_weights(onnx::Model& model) { return apply_rules(model, kWeightMoves); }

std::size_t share_weights(onnx::Model& model) {
  EqualWeights weights(model);
  const std::size_t shared = weights.share(model.graph);
  weights.finish();
  return shared;
}

}  // namespace jaxport::pass
