// SPDX-License-Identifier: Apache-2.0
// The values of a whole program.
#include "axis/evaluate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "axis/graph/pattern.h"
#include "eval/eval.h"
#include "front/params.h"
#include "jaxport/error.h"

namespace jaxport::axis {
namespace {

// Which form of the bodies of loops and branches is run.
enum class Bodies : std::uint8_t { kAsTraced, kRegions };

std::vector<Tensor> evaluate_inside(const Program& program, std::span<const Tensor> inputs,
                                    Expand expand, const DimBindings& outer, Bodies which);

// Bodies of branches, of scans and of marked calls run as the regions that were made of them. A
// while has no region that corresponds to its body alone, so it runs as it was traced.
eval::RunRegion region_runner(const PrimInfo& prim, Expand expand) {
  std::vector<const front::Function*> bodies;
  if (prim.eqn.primitive == "scan") {
    bodies.push_back(front::ScanParams::read(prim.eqn).body.get());
  } else if (prim.eqn.primitive == "cond") {
    for (const auto& branch : front::CondParams::read(prim.eqn).branches) {
      bodies.push_back(branch.get());
    }
  } else if (front::function_mark(prim.eqn)) {
    bodies.push_back(front::get_region(prim.eqn, "jaxpr").get());
  }
  if (bodies.empty() || bodies.size() != prim.regions.size()) return {};
  return [&prim, expand, bodies](const front::Function& body, std::span<const Tensor> operands,
                                 const DimBindings& outer) {
    const auto which = std::ranges::find(bodies, &body) - bodies.begin();
    return evaluate_inside(*prim.regions[which], operands, expand, outer, Bodies::kRegions);
  };
}

// The values of a program's nodes for one set of inputs.
class Evaluator {
 public:
  Evaluator(const Program& program, std::span<const Tensor> inputs, Expand expand,
            const DimBindings& outer, Bodies bodies)
      : graph_(*program.graph),
        inputs_(inputs),
        expand_(expand),
        bodies_(bodies),
        bindings_(bind(program, inputs, outer)) {}

  Tensor output(const View& view, const front::Type& type) {
    compute(view.use.node);
    const Labels dims = flatten(view.dims);
    return with_shape(read_context(view.use, dims), bound_sizes(type.shape, bindings_));
  }

 private:
  static DimBindings bind(const Program& program, std::span<const Tensor> inputs,
                          const DimBindings& outer) {
    front::Function signature;
    signature.name = "program";
    for (const Input& input : program.inputs) {
      signature.params.push_back(signature.add_value(input.type, input.name));
    }
    return eval::bind(signature, inputs, outer);
  }

  // The value of a node that a use sees, over context labels in the given order.
  Tensor read_context(const Use& use, const Labels& order) {
    Dims sizes;
    std::map<Label, Label> index;
    for (Label label : order) {
      index.emplace(label, static_cast<Label>(sizes.size()));
      sizes.push_back(graph_.size(label));
    }
    Pattern axes = use.labels;
    for (Labels& axis : axes) {
      for (Label& label : axis) label = index.at(label);
    }
    Labels all(order.size());
    std::iota(all.begin(), all.end(), 0);
    const Shape bound = bound_sizes(sizes, bindings_);
    return read(by_label(values_.at(use.node), axes, bound), all, bound, true);
  }

  // Evaluates everything below `root`, operands first.
  void compute(const Node* root) {
    std::vector<const Node*> pending{root};
    while (!pending.empty()) {
      const Node* node = pending.back();
      if (values_.contains(node)) {
        pending.pop_back();
        continue;
      }
      const std::size_t before = pending.size();
      for (const Edge& edge : node->edges) {
        if (!values_.contains(edge.node)) pending.push_back(edge.node);
      }
      if (pending.size() > before) continue;
      pending.pop_back();
      values_.emplace(node, value(*node));
    }
  }

  Tensor value(const Node& node) {
    if (node.kind == Kind::kInput) return input(node);
    if (node.kind == Kind::kMacro) return expanded(node);
    const bool is_named = node.kind == Kind::kPointwise || node.kind == Kind::kPrim;
    if (is_named && !eval::knows(node.name)) return expanded(node);
    std::vector<Tensor> operands;
    for (const Edge& edge : node.edges) operands.push_back(values_.at(edge.node));
    if (node.kind == Kind::kPrim) return prim(node, operands);
    return evaluate_node(node, operands, bindings_);
  }

  Tensor input(const Node& node) const {
    const auto index = static_cast<std::size_t>(node.get<std::int64_t>("index"));
    return with_shape(inputs_[index], bound_sizes(node.sizes, bindings_));
  }

  // All results of a primitive are computed once.
  Tensor prim(const Node& node, std::span<const Tensor> operands) {
    std::vector<const Node*> key;
    for (const Edge& edge : node.edges) key.push_back(edge.node);
    auto [entry, is_new] = prim_results_.try_emplace({node.prim.get(), std::move(key)});
    if (is_new) {
      entry->second = evaluate_prim(
          node, operands, bindings_,
          bodies_ == Bodies::kRegions ? region_runner(*node.prim, expand_) : eval::RunRegion{});
    }
    Shape shape;
    for (std::size_t axis = 0; axis < node.out.size(); ++axis) {
      shape.push_back(evaluate(node.axis_size(axis), bindings_));
    }
    return with_shape(entry->second.at(node.result), std::move(shape));
  }

  Tensor expanded(const Node& node) {
    const Use self = graph_.self(&node);
    const Use body = expand_ ? expand_(graph_, self) : Use{};
    if (!body || body.node == &node) {
      throw Error("E040", fmt::format("the evaluator does not know '{}'", node.name));
    }
    compute(body.node);
    return read_context(body, self.flat());
  }

  Graph& graph_;
  std::span<const Tensor> inputs_;
  Expand expand_;
  Bodies bodies_;
  DimBindings bindings_;
  std::unordered_map<const Node*, Tensor> values_;
  std::map<std::pair<const PrimInfo*, std::vector<const Node*>>, std::vector<Tensor>> prim_results_;
};

std::vector<Tensor> evaluate_inside(const Program& program, std::span<const Tensor> inputs,
                                    Expand expand, const DimBindings& outer, Bodies which) {
  Evaluator evaluator(program, inputs, expand, outer, which);
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    results.push_back(evaluator.output(program.outputs[i], program.output_types[i]));
  }
  return results;
}

}  // namespace

std::vector<Tensor> evaluate(const Program& program, std::span<const Tensor> inputs,
                             Expand expand) {
  return evaluate_inside(program, inputs, expand, {}, Bodies::kRegions);
}

std::vector<Tensor> evaluate_constants(const Program& program, Expand expand) {
  return evaluate_inside(program, {}, expand, {}, Bodies::kAsTraced);
}

}  // namespace jaxport::axis
