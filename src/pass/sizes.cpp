// SPDX-License-Identifier: Apache-2.0
// Sizes that are computed: those that are known become constants, those that are computed twice are
// computed once, and a Reshape whose shape has one unknown size needs no computed one.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "onnx/walk.h"
#include "pass/contents.h"
#include "pass/pass.h"
#include "pass/rewriter.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Node;
using onnx::ValueId;

class Sizes {
 public:
  explicit Sizes(onnx::Model& model) : model_(model), rewriter_(model), contents_(model) {
    onnx::for_each_graph(model.graph, [this](const Graph& graph) {
      for (ValueId id : graph.outputs) is_output_.insert(id);
    });
  }

  std::size_t run() {
    const std::size_t changes = fold(model_.graph);
    rewriter_.finish();
    return changes;
  }

 private:
  // A computed value, for others with the same elements.
  struct Known {
    ValueId value;
    Dims elements;
    bool is_scalar;
    DType dtype;
  };

  std::size_t fold(Graph& graph) {
    for (const onnx::Initializer& constant : graph.initializers) {
      contents_.add(constant);
      constants_.insert(constant.value);
    }
    const std::size_t outside = known_.size();
    std::size_t changes = 0;
    std::vector<bool> is_removed(graph.nodes.size(), false);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      Node& node = graph.nodes[i];
      rewriter_.update_inputs(node);
      onnx::for_each_subgraph(node, [&](Graph& inner) { changes += fold(inner); });
      if (!node.domain.empty()) continue;
      contents_.visit(node);
      const bool is_folded = node.out.size() == 1 && node.out[0] != onnx::kAbsent &&
                             !is_output_.contains(node.out[0]) &&
                             (make_constant(graph, node) || take_known(node));
      if (is_folded) {
        is_removed[i] = true;
        ++changes;
      } else if (node.op == "Reshape" && !is_output_.contains(node.in[1])) {
        changes += simplify_target(graph, node) ? 1 : 0;
      }
    }
    known_.resize(outside);
    erase_nodes(graph, is_removed);
    return changes;
  }

  bool make_constant(Graph& graph, const Node& node) {
    auto tensor = contents_.tensor(node.out[0]);
    if (!tensor) return false;
    Shape shape = tensor->shape;
    graph.initializers.push_back({node.out[0], whole(std::move(*tensor)), std::move(shape)});
    constants_.insert(node.out[0]);
    return true;
  }

  bool take_known(const Node& node) {
    const Dims* elements = contents_.of(node.out[0]);
    const auto& type = model_.values[node.out[0]].type;
    if (elements == nullptr || !type) return false;
    const bool is_scalar = contents_.is_scalar(node.out[0]);
    const auto same = std::ranges::find_if(known_, [&](const Known& other) {
      return other.elements == *elements && other.is_scalar == is_scalar &&
             other.dtype == type->dtype;
    });
    if (same == known_.end()) {
      known_.push_back({node.out[0], *elements, is_scalar, type->dtype});
      return false;
    }
    rewriter_.replace(node.out[0], same->value);
    return true;
  }

  // Static sizes as they are, sizes of the input copied with 0, and at most one -1.
  bool simplify_target(Graph& graph, Node& node) {
    const Dims* target = contents_.of(node.in[1]);
    if (target == nullptr || constants_.contains(node.in[1])) return false;
    const auto& type = model_.values[node.in[0]].type;
    Ints sizes;
    bool has_rest = false, copies = false;
    for (std::size_t i = 0; i < target->size(); ++i) {
      const Dim& size = (*target)[i];
      const bool is_of_input =
          type && type->shape && i < type->shape->size() && (*type->shape)[i] == size;
      if (size.is_static() && size.value() != 0) {
        has_rest |= size.value() == -1;
        sizes.push_back(size.value());
      } else if (is_of_input) {
        copies = true;
        sizes.push_back(0);
      } else if (!size.is_static() && !std::exchange(has_rest, true)) {
        sizes.push_back(-1);
      } else {
        return false;
      }
    }
    if (has_rest && (copies || std::ranges::count(sizes, -1) != 1)) return false;
    if (node.attr("allowzero") != nullptr) return false;
    const auto id = static_cast<ValueId>(model_.values.size());
    const std::int64_t count = std::ssize(sizes);
    model_.values.push_back({onnx::TensorType{DType::kI64, Dims{Dim(count)}}, ""});
    rewriter_.add(id, nullptr);
    graph.initializers.push_back({id, whole(int64s(sizes)), {count}});
    constants_.insert(id);
    node.in[1] = id;
    return true;
  }

  onnx::Model& model_;
  Rewriter rewriter_;
  Contents contents_;
  std::unordered_set<ValueId> is_output_, constants_;
  std::vector<Known> known_;  // of this graph and those around it
};

}  // namespace

std::size_t fold_sizes(onnx::Model& model) { return Sizes(model).run(); }

}  // namespace jaxport::pass
