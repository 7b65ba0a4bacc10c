// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "jaxport/error.h"
#include "onnx/check.h"
#include "onnx/equal.h"
#include "onnx/ir.h"
#include "onnx/walk.h"
#include "support/hash_index.h"

namespace jaxport::onnx {
namespace {

class Verifier {
 public:
  Verifier(const Model& model, std::string_view what, bool is_named, DTypeRule dtypes)
      : model_(model),
        what_(what),
        is_named_(is_named),
        dtypes_(dtypes),
        owner_(model.values.size(), nullptr) {}

  void run() {
    check_graph(model_.graph);
    for (const Function& function : model_.functions) {
      if (!function.body.initializers.empty()) {
        fail(fmt::format("function '{}' has initializers", function.name));
      }
      check_graph(function.body);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error("BUG", fmt::format("{}: {}", what_, why));
  }

  void check_graph(const Graph& graph) {
    const std::size_t outside = names_.size();
    std::vector<ValueId> defined;
    for (ValueId id : graph.inputs) define(id, graph, defined);
    for (const Initializer& constant : graph.initializers) {
      // Before IR version 4 every initializer was an input too; the input is then its default.
      if (constant.value >= owner_.size() || owner_[constant.value] != &graph) {
        define(constant.value, graph, defined);
      }
      check_initializer(constant);
    }
    TextSet node_names;
    for (const Node& node : graph.nodes) {
      if (!node.name.empty() && !node_names.insert(node.name)) {
        fail(fmt::format("two nodes are called '{}'", node.name));
      }
      check_node_in_place(node);
      for (ValueId id : node.out) {
        if (id != kAbsent) define(id, graph, defined);
      }
    }
    for (ValueId id : graph.outputs) check_output(id, graph);
    // What a subgraph defines is not seen outside; two subgraphs may use one name.
    for (ValueId id : defined) undefine(id);
    names_.shrink(outside);
  }

  void define(ValueId id, const Graph& graph, std::vector<ValueId>& defined) {
    if (id >= owner_.size()) fail(fmt::format("value {} does not exist", id));
    const std::string& name = model_.values[id].name;
    if (is_named_ && name.empty()) fail(fmt::format("value {} has no name", id));
    if (owner_[id] != nullptr) fail(fmt::format("value {} '{}' is defined twice", id, name));
    if (is_named_ && !names_.insert(name)) fail(fmt::format("two values are called '{}'", name));
    owner_[id] = &graph;
    defined.push_back(id);
  }

  void undefine(ValueId id) {
    owner_[id] = nullptr;
    known_.erase(id);
  }

  void check_initializer(const Initializer& constant) {
    const ValueInfo& info = model_.values[constant.value];
    const std::int64_t elements = element_count(constant.shape);
    if (elements != constant.view.size()) {
      fail(fmt::format("initializer '{}' has {} elements for a shape of {}", info.name,
                       constant.view.size(), elements));
    }
    const DType dtype = constant.view.base.dtype;
    const TensorType actual{dtype, Dims(constant.shape.begin(), constant.shape.end())};
    if (info.type && contradict(*info.type, actual)) {
      fail(fmt::format("initializer '{}' is {}, declared as {}", info.name, to_string(actual),
                       to_string(*info.type)));
    }
    if (elements <= kSmallElements && (is_integer(dtype) || is_float(dtype))) {
      Tensor tensor = materialise(constant.view);
      tensor.shape = constant.shape;
      known_.insert_or_assign(constant.value, std::move(tensor));
    }
  }

  void check_output(ValueId id, const Graph& graph) const {
    if (id >= owner_.size() || owner_[id] == nullptr) fail("an output is not defined");
    if (owner_[id] != &graph) {
      fail(fmt::format("output '{}' of a subgraph belongs to another graph",
                       model_.values[id].name));
    }
  }

  void check_node_in_place(const Node& node) {
    std::vector<InferenceInput> in;
    for (ValueId id : node.in) in.push_back(id == kAbsent ? InferenceInput{} : input(node, id));
    for_each_subgraph(node, [this](const Graph& inner) { check_graph(inner); });
    if (open_body(node) != nullptr) return;  // make_functions imports its domain
    const std::int64_t opset = model_.opset(node.domain);
    if (opset == 0) fail(fmt::format("domain '{}' is not imported", node.domain));
    check_call(node);
    // Outside of the range there are no schemas to compare with.
    if (!node.domain.empty() || opset < kOldestOpset || opset > kNewestOpset) return;
    try {
      check_types(node, require_schema(node.op, static_cast<int>(opset)), in);
    } catch (Error& error) {
      error.note(fmt::format("{}: node '{}'", what_, node.name));
      throw;
    }
  }

  // A call of a function has its inputs and outputs, in number and type.
  void check_call(const Node& node) const {
    const auto called = std::ranges::find_if(model_.functions, [&](const Function& function) {
      return function.name == node.op && function.domain == node.domain;
    });
    if (called == model_.functions.end()) return;
    const auto fits = [this](ValueId actual, ValueId formal) {
      if (actual == kAbsent) return true;
      const auto &a = model_.values[actual].type, &b = model_.values[formal].type;
      return !a || !b || !contradict(*a, *b);
    };
    const bool is_same = std::ranges::equal(node.in, called->body.inputs, fits) &&
                         std::ranges::equal(node.out, called->body.outputs, fits);
    if (!is_same) fail(fmt::format("node '{}' does not fit the function it calls", node.name));
  }

  InferenceInput input(const Node& node, ValueId id) const {
    if (id >= owner_.size() || owner_[id] == nullptr) {
      fail(fmt::format("node '{}' ({}) uses a value that is not defined before it", node.name,
                       node.op));
    }
    const auto& type = model_.values[id].type;
    const auto known = known_.find(id);
    return {type ? &*type : nullptr, known == known_.end() ? nullptr : &known->second};
  }

  void check_types(const Node& node, const Schema& schema,
                   const std::vector<InferenceInput>& in) const {
    const auto inferred = infer(model_, schema, node, in, dtypes_);
    for (std::size_t i = 0; i < node.out.size(); ++i) {
      if (node.out[i] == kAbsent || !inferred[i]) continue;
      const ValueInfo& info = model_.values[node.out[i]];
      if (info.type && contradict(*info.type, *inferred[i])) {
        throw Error("BUG", fmt::format("result '{}' is declared as {}, but is {}", info.name,
                                       to_string(*info.type), to_string(*inferred[i])));
      }
    }
  }

  const Model& model_;
  std::string_view what_;
  bool is_named_;
  DTypeRule dtypes_;
  std::vector<const Graph*> owner_;  // by value; nullptr: not defined (yet)
  TextSet names_;
  std::unordered_map<ValueId, Tensor> known_;
};

}  // namespace

void verify(const Model& model, std::string_view what) {
  Verifier(model, what, true, DTypeRule::kSchema).run();
}

void verify_unnamed(const Model& model, std::string_view what, DTypeRule dtypes) {
  Verifier(model, what, false, dtypes).run();
}

}  // namespace jaxport::onnx
