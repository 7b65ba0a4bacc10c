// SPDX-License-Identifier: Apache-2.0
// Constants of any size: Constant nodes become initializers, movements of weights become views of
// them, and what is there twice is there once.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "onnx/equal.h"
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

// Only weights of one dtype and shape are read and compared.
std::uint64_t kind_of(const Initializer& weight) {
  auto hash = static_cast<std::uint64_t>(weight.view.base.dtype);
  for (std::int64_t size : weight.shape) hash = mix(hash, static_cast<std::uint64_t>(size));
  return hash;
}

const std::byte* element(const StridedView& view, std::int64_t index) {
  std::int64_t at = view.offset;
  for (std::size_t axis = view.sizes.size(); axis-- > 0;) {
    at += index % view.sizes[axis] * view.strides[axis];
    index /= view.sizes[axis];
  }
  return view.base.data.get() + at * byte_width(view.base.dtype);
}

// A few elements tell nearly all weights apart; reading all of them would take longer than the rest
// of the compiler.
std::uint64_t sampled_hash(const Initializer& weight) {
  constexpr std::int64_t kSamples = 8;
  const StridedView& view = weight.view;
  const std::int64_t samples = std::min(view.size(), kSamples);
  std::uint64_t hash = kind_of(weight);
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t index = samples == 1 ? 0 : (view.size() - 1) / (samples - 1) * i;
    hash = hash_bytes(element(view, index), byte_width(view.base.dtype), hash);
  }
  return hash;
}

// Everything between the first and the last byte that the view reads, if it only goes forward.
std::span<const std::byte> covered(const StridedView& view) {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < view.sizes.size(); ++axis) {
    if (view.strides[axis] < 0) return {};
    last += (view.sizes[axis] - 1) * view.strides[axis];
  }
  const auto width = static_cast<std::int64_t>(byte_width(view.base.dtype));
  return {view.base.data.get() + view.offset * width, static_cast<std::size_t>((last + 1) * width)};
}

// Of two weights of one kind. What was moved in the same way is compared in place.
bool same_content(const Initializer& a, const Initializer& b) {
  if (a.view.size() == 0) return true;
  if (a.view.sizes == b.view.sizes && a.view.strides == b.view.strides) {
    const auto lhs = covered(a.view), rhs = covered(b.view);
    if (!lhs.empty() &&
        (lhs.data() == rhs.data() || std::memcmp(lhs.data(), rhs.data(), lhs.size()) == 0)) {
      return true;
    }
  }
  Tensor lhs = materialise(a.view), rhs = materialise(b.view);
  lhs.shape = rhs.shape = a.shape;
  return same_bytes(lhs, rhs);
}

enum class Which : std::uint8_t { kAll, kLarge };

class EqualWeights {
 public:
  EqualWeights(onnx::Model& model, Which which) : model_(model), rewriter_(model), which_(which) {
    onnx::for_each_graph(model.graph, [this](const Graph& graph) {
      inputs_.insert(graph.inputs.begin(), graph.inputs.end());
      for (const Initializer& weight : graph.initializers) {
        if (is_wanted(weight)) ++unsorted_alike_[kind_of(weight)];
      }
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
  bool is_wanted(const Initializer& weight) const {
    return which_ == Which::kAll || !onnx::is_small(weight.view.base.dtype, weight.view.size());
  }

  bool share_or_remember(const Initializer& weight) {
    if (!is_wanted(weight) || inputs_.contains(weight.value)) return false;
    if (unsorted_alike_[kind_of(weight)] < 2) return false;
    const std::uint64_t hash = sampled_hash(weight);
    const Initializer* kept = seen_.find(hash, [&](const Initializer& other) {
      return other.view.base.dtype == weight.view.base.dtype && other.shape == weight.shape &&
             rewriter_.can_replace(weight.value, other.value) && same_content(other, weight);
    });
    if (kept == nullptr) {
      seen_.add(hash, weight);
      return false;
    }
    std::string& name = model_.values[kept->value].name;
    if (name.empty()) name = model_.values[weight.value].name;
    rewriter_.replace(weight.value, kept->value);
    return true;
  }

  onnx::Model& model_;
  Rewriter rewriter_;
  Which which_;
  std::unordered_set<ValueId> inputs_;
  std::unordered_map<std::uint64_t, std::size_t> unsorted_alike_;
  HashIndex<Initializer> seen_;
};

std::size_t share_equal(onnx::Model& model, Which which) {
  EqualWeights weights(model, which);
  const std::size_t shared = weights.share(model.graph);
  weights.finish();
  return shared;
}

}  // namespace

std::size_t lift_constants(onnx::Model& model) { return lift(model, model.graph); }

std::size_t move_weights(onnx::Model& model) { return apply_rules(model, kWeightMoves); }

std::size_t share_weights(onnx::Model& model) { return share_equal(model, Which::kAll); }

std::size_t share_large_weights(onnx::Model& model) { return share_equal(model, Which::kLarge); }

}  // namespace jaxport::pass
