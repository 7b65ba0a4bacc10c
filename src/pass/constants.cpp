// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "onnx/equal.h"
#include "onnx/walk.h"
#include "pass/pass.h"
#include "pass/rewriter.h"
#include "support/hash_index.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::Initializer;
using onnx::ValueId;

class Constants {
 public:
  explicit Constants(onnx::Model& model)
      : model_(model), rewriter_(model), is_input_(model.values.size(), false) {
    onnx::for_each_graph(model.graph, [this](const Graph& graph) {
      for (ValueId id : graph.inputs) is_input_[id] = true;
    });
  }

  std::size_t run() {
    const std::size_t shared = share(model_.graph);
    rewriter_.finish();
    return shared;
  }

 private:
  struct Constant {
    ValueId value;
    Tensor content;
  };

  // Constants of enclosing graphs are seen inside; those of a subgraph only there.
  std::size_t share(Graph& graph) {
    const std::size_t outside = seen_.size();
    std::size_t shared = std::erase_if(graph.initializers, [this](const Initializer& constant) {
      return share_or_remember(constant);
    });
    for (const onnx::Node& node : graph.nodes) {
      onnx::for_each_subgraph(node, [&](Graph& inner) { shared += share(inner); });
    }
    seen_.shrink(outside);
    return shared;
  }

  bool share_or_remember(const Initializer& constant) {
    if (is_input_[constant.value]) return false;  // a default that the caller may override
    if (!onnx::is_small(constant.view.base.dtype, constant.view.size())) return false;
    Constant one{constant.value, materialise(constant.view)};
    one.content.shape = constant.shape;
    const std::uint64_t hash = content_hash(one.content);
    const Constant* kept =
        seen_.find(hash, [&](const Constant& other) { return can_share(one, other); });
    if (kept == nullptr) {
      seen_.add(hash, std::move(one));
      return false;
    }
    std::string& name = model_.values[kept->value].name;
    if (name.empty()) name = model_.values[one.value].name;
    rewriter_.replace(one.value, kept->value);
    return true;
  }

  bool can_share(const Constant& one, const Constant& kept) const {
    return onnx::names_agree(model_.values[one.value].name, model_.values[kept.value].name) &&
           same_bytes(one.content, kept.content) && rewriter_.can_replace(one.value, kept.value);
  }

  onnx::Model& model_;
  Rewriter rewriter_;
  std::vector<bool> is_input_;  // by value
  HashIndex<Constant> seen_;
};

}  // namespace

std::size_t share_constants(onnx::Model& model) { return Constants(model).run(); }

}  // namespace jaxport::pass
