// SPDX-License-Identifier: Apache-2.0
// Calls that carry their body become calls of functions.
//
// A function sees nothing around it. What its body uses from there becomes an input: weights, which
// are initializers of the main graph under their names, and sizes that its own inputs do not tell.
// Small constants that are no weights become Constant nodes. Calls of one name share a function
// when their bodies are equal and, unless they say that they share, their weights are the same.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "onnx/attributes.h"
#include "onnx/equal.h"
#include "onnx/walk.h"
#include "pass/pass.h"

namespace jaxport::pass {
namespace {

using onnx::Attribute;
using onnx::Function;
using onnx::Graph;
using onnx::Initializer;
using onnx::kAbsent;
using onnx::Model;
using onnx::Node;
using onnx::ValueId;

// --- what a body uses from around it

// Values of other graphs in the order of their first use.
class Captures {
 public:
  explicit Captures(const Graph& body) { visit(body); }
  const std::vector<ValueId>& values() const { return values_; }

 private:
  void visit(const Graph& graph) {
    inside_.insert(graph.inputs.begin(), graph.inputs.end());
    for (const Initializer& constant : graph.initializers) inside_.insert(constant.value);
    for (const Node& node : graph.nodes) {
      for (ValueId id : node.in) use(id);
      onnx::for_each_subgraph(node, [this](const Graph& inner) { visit(inner); });
      inside_.insert(node.out.begin(), node.out.end());
    }
  }
  void use(ValueId id) {
    if (id != kAbsent && inside_.insert(id).second) values_.push_back(id);
  }

  std::unordered_set<ValueId> inside_;  // and what is captured already
  std::vector<ValueId> values_;
};

void rename(Graph& body, const std::unordered_map<ValueId, ValueId>& names) {
  onnx::for_each_graph(body, [&](Graph& graph) {
    for (Node& node : graph.nodes) {
      for (ValueId& id : node.in) {
        if (const auto found = names.find(id); found != names.end()) id = found->second;
      }
    }
  });
}

// --- when two bodies are equal

class SameBody {
 public:
  explicit SameBody(const Model& model) : model_(model) {}

  bool operator()(const Graph& a, const Graph& b) {
    return define_all(a.inputs, b.inputs) && same_constants(a, b) &&
           std::ranges::equal(a.nodes, b.nodes,
                              [&](const Node& x, const Node& y) { return same(x, y); }) &&
           same(a.outputs, b.outputs);
  }

 private:
  bool same(const Node& a, const Node& b) {
    return a.op == b.op && a.domain == b.domain && same(a.in, b.in) &&
           std::ranges::equal(a.attrs, b.attrs,
                              [&](const auto& x, const auto& y) { return same(x, y); }) &&
           define_all(a.out, b.out);
  }

  bool same(const Attribute& a, const Attribute& b) {
    const auto* x = std::get_if<std::shared_ptr<Graph>>(&a.value);
    const auto* y = std::get_if<std::shared_ptr<Graph>>(&b.value);
    return x && y ? a.name == b.name && (*this)(**x, **y) : a == b;
  }

  bool same(const std::vector<ValueId>& a, const std::vector<ValueId>& b) const {
    return std::ranges::equal(a, b, [&](ValueId x, ValueId y) {
      const auto found = counterpart_.find(x);
      return x == kAbsent ? y == kAbsent : found != counterpart_.end() && found->second == y;
    });
  }

  bool same_constants(const Graph& a, const Graph& b) {
    const auto same_content = [&](const Initializer& x, const Initializer& y) {
      return x.shape == y.shape && same_bytes(materialise(x.view), materialise(y.view)) &&
             define(x.value, y.value);
    };
    return std::ranges::equal(a.initializers, b.initializers, same_content);
  }

  bool define_all(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
    return std::ranges::equal(a, b, [&](ValueId x, ValueId y) { return define(x, y); });
  }
  bool define(ValueId a, ValueId b) {
    if (a == kAbsent || b == kAbsent) return a == b;
    counterpart_[a] = b;
    return model_.values[a].type == model_.values[b].type;
  }

  const Model& model_;
  std::unordered_map<ValueId, ValueId> counterpart_;  // looked up, never walked
};

// --- the functions

class Functions {
 public:
  explicit Functions(Model& model) : model_(model) {}

  std::size_t run() {
    lift_weights(model_.graph, false);
    if (!has_calls_) return 0;
    share_constants(model_);  // a weight of several bodies is one
    onnx::for_each_graph(model_.graph, [this](const Graph& graph) {
      for (const Initializer& constant : graph.initializers) {
        constants_.emplace(constant.value, constant);
      }
    });
    close_calls(model_.graph);
    return model_.functions.size();
  }

 private:
  struct Definition {
    std::size_t function;          // its place in the model
    std::string base;              // the name that was asked for
    std::vector<ValueId> weights;  // of its first call
    bool shares;
  };

  bool is_weight(const Initializer& constant) const {
    const DType dtype = constant.view.base.dtype;
    return !model_.values[constant.value].name.empty() ||
           !onnx::is_small(dtype, constant.view.size()) ||
           (is_float(dtype) && !constant.shape.empty());
  }

  // Weights inside of bodies move to the main graph.
  void lift_weights(Graph& graph, bool is_inside) {
    for (const Node& node : graph.nodes) {
      const bool is_call = onnx::open_body(node) != nullptr;
      has_calls_ |= is_call;
      onnx::for_each_subgraph(node,
                              [&](Graph& inner) { lift_weights(inner, is_inside || is_call); });
    }
    if (!is_inside) return;
    std::erase_if(graph.initializers, [this](Initializer& constant) {
      if (!is_weight(constant)) return false;
      model_.graph.initializers.push_back(std::move(constant));
      return true;
    });
  }

  // Inner calls first: the body around them then has their final form.
  void close_calls(Graph& graph) {
    for (Node& node : graph.nodes) {
      onnx::for_each_subgraph(node, [this](Graph& inner) { close_calls(inner); });
      if (onnx::open_body(node) != nullptr) close(node);
    }
  }

  void close(Node& node) {
    const bool shares = int_attribute(node, onnx::kShares, 0) != 0;
    Graph body = std::move(*onnx::open_body(node));
    node.attrs.clear();
    const std::vector<ValueId> captured = Captures(body).values();
    std::vector<Node> nodes;
    for (const Initializer& constant : body.initializers) {
      nodes.push_back(constant_node(constant.value, constant));
    }
    body.initializers.clear();
    std::vector<ValueId> weights;
    std::unordered_map<ValueId, ValueId> names;
    for (ValueId id : captured) {
      const auto constant = constants_.find(id);
      const bool is_constant = constant != constants_.end();
      model_.values.push_back({model_.values[id].type, ""});
      const auto own = static_cast<ValueId>(model_.values.size() - 1);
      names.emplace(id, own);
      if (is_constant && !is_weight(constant->second)) {
        nodes.push_back(constant_node(own, constant->second));
        continue;
      }
      if (is_constant) weights.push_back(id);
      node.in.push_back(id);
      body.inputs.push_back(own);
    }
    rename(body, names);
    body.nodes.insert(body.nodes.begin(), std::make_move_iterator(nodes.begin()),
                      std::make_move_iterator(nodes.end()));
    node.op = function_for(node, std::move(body), std::move(weights), shares).name;
  }

  static Node constant_node(ValueId value, const Initializer& constant) {
    Tensor tensor = materialise(constant.view);
    tensor.shape = constant.shape;
    Node node;
    node.op = "Constant";
    node.out = {value};
    node.attrs = {{"value", std::move(tensor)}};
    return node;
  }

  const Function& function_for(const Node& call, Graph body, std::vector<ValueId> weights,
                               bool shares) {
    for (const Definition& earlier : definitions_) {
      const Function& function = model_.functions[earlier.function];
      if (earlier.base != call.op || function.domain != call.domain || earlier.shares != shares ||
          (!shares && earlier.weights != weights)) {
        continue;
      }
      if (SameBody(model_)(function.body, body)) return function;
    }
    definitions_.push_back({model_.functions.size(), call.op, std::move(weights), shares});
    if (model_.opset(call.domain) == 0) model_.opsets.push_back({call.domain, 1});
    return model_.functions.emplace_back(
        Function{call.domain, fresh_name(call.domain, call.op), std::move(body)});
  }

  std::string fresh_name(const std::string& domain, const std::string& base) {
    std::string name = base;
    for (int i = 2; !taken_.emplace(domain, name).second; ++i) name = fmt::format("{}_{}", base, i);
    return name;
  }

  Model& model_;
  bool has_calls_ = false;
  std::unordered_map<ValueId, Initializer> constants_;  // of all graphs; looked up, never walked
  std::vector<Definition> definitions_;
  std::set<std::pair<std::string, std::string>> taken_;  // domain and name
};

}  // namespace

std::size_t make_functions(Model& model) { return Functions(model).run(); }

}  // namespace jaxport::pass
