// SPDX-License-Identifier: Apache-2.0
// Arrays that are copied twice, such as the cache of one layer out of the cache of all of them: a
// Concat of Concats is one, and a part of a part comes straight from the whole.
#include <optional>
#include <unordered_map>
#include <utility>

#include "onnx/attributes.h"
#include "onnx/builder.h"
#include "onnx/schema.h"
#include "onnx/walk.h"
#include "pass/pass.h"
#include "pass/rewriter.h"

namespace jaxport::pass {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::Node;
using onnx::Value;
using onnx::ValueId;

// Copying less is not worth a node.
constexpr std::int64_t kFewElements = 4096;

// Gather of one element along one axis.
struct Part {
  ValueId whole;
  std::int64_t axis, index;
};

class Copies {
 public:
  explicit Copies(const onnx::Model& model) : uses_(use_counts(model)) {}

  std::size_t run(Graph& graph, Builder& op) {
    find_parts(graph, op);
    std::size_t merged = 0;
    for (Node& node : std::exchange(graph.nodes, {})) {
      onnx::for_each_subgraph(node, [&](Graph& inner) {
        Builder inner_op(op, inner);
        merged += Copies(uses_).run(inner, inner_op);
      });
      if (node.domain.empty() && (join(op, node) || take_from_whole(op, node))) ++merged;
      if (node.domain.empty() && node.op == "Concat") unsorted_concats_[node.out[0]] = node;
      graph.nodes.push_back(std::move(node));
    }
    return merged;
  }

 private:
  // For a graph inside of one.
  explicit Copies(std::vector<std::uint32_t> uses) : uses_(std::move(uses)) {}

  static const Dims* shape(const Builder& op, ValueId id) {
    const auto& type = op.info(id).type;
    return type && type->shape ? &*type->shape : nullptr;
  }

  static std::optional<std::int64_t> axis_of(const Builder& op, const Node& node) {
    const Dims* dims = shape(op, node.in[0]);
    if (dims == nullptr) return std::nullopt;
    const std::int64_t axis = int_attribute(node, "axis", 0);
    return axis < 0 ? axis + std::ssize(*dims) : axis;
  }

  // Concat(Concat(a, b), c) = Concat(a, b, c) along one axis, where nobody else needs the inner.
  bool join(const Builder& op, Node& node) const {
    if (node.op != "Concat") return false;
    std::vector<ValueId> pieces;
    for (ValueId id : node.in) {
      const auto inner = unsorted_concats_.find(id);
      const bool joins = inner != unsorted_concats_.end() && uses_[id] == 1 && axis_of(op, node) &&
                         axis_of(op, inner->second) == axis_of(op, node);
      if (joins)
        pieces.insert(pieces.end(), inner->second.in.begin(), inner->second.in.end());
      else
        pieces.push_back(id);
    }
    if (pieces.size() == node.in.size()) return false;
    node.in = std::move(pieces);
    return true;
  }

  static std::optional<Part> part_of(const Builder& op, const Node& node) {
    if (node.op != "Gather" || !node.domain.empty()) return std::nullopt;
    const Tensor* index = op.known(node.in[1]);
    const auto axis = axis_of(op, node);
    if (index == nullptr || !index->is_scalar() || index->int_at(0) < 0 || !axis) {
      return std::nullopt;
    }
    return Part{node.in[0], *axis, index->int_at(0)};
  }

  static bool is_large(const Builder& op, ValueId id) {
    const Dims* dims = shape(op, id);
    if (dims == nullptr) return false;
    std::int64_t elements = 1;
    for (const Dim& size : *dims) {
      if (!size.is_static()) return false;
      elements *= size.value();
    }
    return elements >= kFewElements;
  }

  // The large parts that are only taken apart further.
  void find_parts(const Graph& graph, const Builder& op) {
    std::unordered_map<ValueId, std::uint32_t> unsorted_taken;
    for (const Node& node : graph.nodes) {
      if (const auto part = part_of(op, node)) ++unsorted_taken[part->whole];
    }
    for (const Node& node : graph.nodes) {
      if (node.out.empty()) continue;  // an op of somebody else
      const ValueId id = node.out[0];
      const auto taken = unsorted_taken.find(id);
      if (taken == unsorted_taken.end() || taken->second != uses_[id] || !is_large(op, id))
        continue;
      if (const auto part = part_of(op, node)) unsorted_parts_.emplace(id, *part);
    }
  }

  // A Gather of a Gather becomes a Squeeze of a Slice along both axes.
  bool take_from_whole(Builder& op, Node& node) const {
    if (op.opset() < onnx::kOldestOpset) return false;  // Squeeze has axes as an input since 13
    const auto second = part_of(op, node);
    const auto found = second ? unsorted_parts_.find(second->whole) : unsorted_parts_.end();
    if (found == unsorted_parts_.end()) return false;
    const Part& first = found->second;
    const std::int64_t axis = second->axis + (second->axis >= first.axis ? 1 : 0);
    const Value axes = op.ints({first.axis, axis});
    const Value slice = op.Slice(Value(&op, first.whole), op.ints({first.index, second->index}),
                                 op.ints({first.index + 1, second->index + 1}), axes);
    node.op = "Squeeze";
    node.in = {slice.id(), axes.id()};
    node.attrs.clear();
    return true;
  }

  std::vector<std::uint32_t> uses_;  // by value, as the model stood
  std::unordered_map<ValueId, Node> unsorted_concats_;
  std::unordered_map<ValueId, Part> unsorted_parts_;
};

}  // namespace

std::size_t merge_copies(onnx::Model& model) {
  Builder op(model, static_cast<int>(model.opset()), onnx::DTypeRule::kAny);
  return Copies(model).run(model.graph, op);
}

}  // namespace jaxport::pass
