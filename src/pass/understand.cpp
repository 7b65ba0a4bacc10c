// SPDX-License-Identifier: Apache-2.0
#include "pass/understand.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "jaxport/error.h"
#include "onnx/builder.h"
#include "onnx/check.h"
#include "onnx/walk.h"
#include "pass/contents.h"
#include "pass/local.h"

namespace jaxport::pass {
namespace {

using onnx::Graph;
using onnx::kAbsent;
using onnx::Node;
using onnx::TensorType;
using onnx::ValueId;

// --- schemas

// The newest opset of which the table has all schemas, for models of others.
constexpr std::int64_t kNewestRead = 28;

// Ops whose schema of opset 16 reads nodes of older opsets, too: since then they were given
// dtypes and attributes, but no other inputs.
struct SameForm {
  std::string_view op;
  std::int64_t since;
};
constexpr SameForm kSameForms[] = {
    {"Abs", 6},      {"Add", 7},     {"And", 7},        {"BatchNormalization", 9},
    {"Cast", 9},     {"Ceil", 6},    {"Clip", 12},      {"Concat", 4},
    {"Constant", 1}, {"Conv", 1},    {"Cos", 7},        {"Div", 7},
    {"Dropout", 12}, {"Equal", 7},   {"Erf", 9},        {"Exp", 6},
    {"Expand", 8},   {"Flatten", 9}, {"Floor", 6},      {"Gather", 1},
    {"Gemm", 11},    {"Greater", 7}, {"Identity", 1},   {"Less", 7},
    {"Log", 6},      {"MatMul", 1},  {"Max", 8},        {"Min", 8},
    {"Mul", 7},      {"Neg", 6},     {"Not", 1},        {"Or", 7},
    {"Pow", 7},      {"Range", 11},  {"Reciprocal", 6}, {"Relu", 6},
    {"Reshape", 5},  {"Shape", 1},   {"Sigmoid", 6},    {"Sin", 7},
    {"Size", 1},     {"Slice", 10},  {"Sqrt", 6},       {"Sub", 7},
    {"Sum", 8},      {"Tanh", 6},    {"Transpose", 1},  {"Where", 9},
};
static_assert(std::ranges::is_sorted(kSameForms, {}, &SameForm::op));

// nullptr when nodes of this op at this opset are not understood.
const onnx::Schema* readable_schema(std::string_view op, std::int64_t opset) {
  if (opset < 1 || opset > kNewestRead) return nullptr;
  const onnx::Schema* schema = onnx::find_schema(op, static_cast<int>(opset));
  if (schema == nullptr && opset < onnx::kOldestOpset) {
    const auto* same = std::ranges::lower_bound(kSameForms, op, {}, &SameForm::op);
    const bool is_same = same != std::end(kSameForms) && same->op == op && same->since <= opset;
    if (is_same) schema = onnx::find_schema(op, onnx::kOldestOpset);
  }
  return schema != nullptr && !schema->deprecated ? schema : nullptr;
}

// Whether the node has the operands and results that passes may take for granted.
bool has_its_values(const onnx::Schema& schema, const Node& node) {
  const std::size_t operands = node.in.size(), results = node.out.size();
  if (operands < schema.min_inputs || operands > schema.max_inputs) return false;
  if (results < schema.min_outputs || results > schema.max_outputs) return false;
  for (std::size_t i = 0; i < operands; ++i) {
    const bool is_optional = onnx::formal_at(schema.inputs, i).arity == onnx::Arity::kOptional;
    if (node.in[i] == kAbsent && !is_optional) return false;
  }
  return results > 0 && node.out[0] != kAbsent;
}

// --- names

// Names of the user, which nothing else may have: those of the main graph's inputs and outputs.
class UniqueNames {
 public:
  explicit UniqueNames(onnx::Model& model) : model_(model) {
    for (ValueId id : model.graph.inputs) keep(id);
    for (ValueId id : model.graph.outputs) keep(id);
    onnx::for_each_graph(model.graph, [this](Graph& graph) {
      for (const onnx::Initializer& constant : graph.initializers) keep(constant.value);
      for (ValueId id : graph.inputs) keep(id);
      for (const Node& node : graph.nodes) {
        for (ValueId id : node.out) keep(id);
      }
    });
  }

 private:
  void keep(ValueId id) {
    if (id == kAbsent || !unsorted_done_.insert(id).second) return;
    std::string& name = model_.values[id].name;
    if (!unsorted_taken_.insert(name).second) name.clear();
  }

  onnx::Model& model_;
  std::unordered_set<std::string> unsorted_taken_;
  std::unordered_set<ValueId> unsorted_done_;
};

// --- types

class Types {
 public:
  explicit Types(onnx::Model& model) : model_(model), opset_(model.opset()), contents_(model) {}

  void infer(Graph& graph) {
    for (const onnx::Initializer& constant : graph.initializers) remember(constant);
    for (Node& node : graph.nodes) {
      onnx::for_each_subgraph(node, [this](Graph& inner) { infer(inner); });
      if (!node.domain.empty()) continue;
      try {
        set_types(node, results_of(node));
      } catch (const Error&) {  // a node that contradicts itself stays as it is
        node.domain = kForeign;
        continue;
      }
      contents_.visit(node);
      remember_result(node);
    }
  }

 private:
  static constexpr std::int64_t kMostKnown = 64;

  void remember(const onnx::Initializer& constant) {
    contents_.add(constant);
    if (constant.view.size() > kMostKnown || is_input(constant.value)) return;
    Tensor tensor = materialise(constant.view);
    tensor.shape = constant.shape;
    unsorted_known_.insert_or_assign(constant.value, std::move(tensor));
  }

  bool is_input(ValueId id) const { return contents_.of(id) == nullptr && inputs_.contains(id); }

  void remember_result(const Node& node) {
    if (node.out.size() != 1 || node.out[0] == kAbsent) return;
    if (auto tensor = contents_.tensor(node.out[0])) {
      unsorted_known_.insert_or_assign(node.out[0], std::move(*tensor));
    }
  }

  std::vector<std::optional<TensorType>> results_of(const Node& node) const {
    std::vector<onnx::InferenceInput> in;
    for (ValueId id : node.in) {
      const auto known = id == kAbsent ? unsorted_known_.end() : unsorted_known_.find(id);
      in.push_back({type(id), known == unsorted_known_.end() ? nullptr : &known->second});
    }
    const onnx::Schema* schema = readable_schema(node.op, opset_);
    if (schema == nullptr) throw Error("BUG", "an op without a schema");
    auto results = onnx::infer(model_, *schema, node, in);
    if (results.size() == 1 && results[0] && !results[0]->shape) {
      results[0]->shape = shape_from_contents(node);
    }
    return results;
  }

  // Shapes that are computed from sizes.
  std::optional<Dims> shape_from_contents(const Node& node) const {
    if (node.op == "ConstantOfShape") {
      const Dims* sizes = contents_.of(node.in[0]);
      return sizes == nullptr ? std::nullopt : std::optional(*sizes);
    }
    if (node.op != "Reshape" && node.op != "Expand") return std::nullopt;
    const Dims* target = contents_.of(node.in[1]);
    const TensorType* source = type(node.in[0]);
    if (target == nullptr || source == nullptr || !source->shape) return std::nullopt;
    return node.op == "Reshape" ? reshaped(node, *source->shape, *target)
                                : expanded(*source->shape, *target);
  }

  static std::optional<Dims> reshaped(const Node& node, const Dims& source, const Dims& target) {
    Dims shape = target;
    Dim others = 1;
    std::optional<std::size_t> rest;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i].is_zero() && int_attribute(node, "allowzero", 0) == 0) {
        if (i >= source.size()) return std::nullopt;
        shape[i] = source[i];
      }
      if (shape[i] == Dim(-1)) {
        if (std::exchange(rest, i)) return std::nullopt;
      } else {
        others = others * shape[i];
      }
    }
    if (!rest) return shape;
    const auto size = exact_div(product(source), others);
    if (!size) return std::nullopt;
    shape[*rest] = *size;
    return shape;
  }

  static std::optional<Dims> expanded(const Dims& source, const Dims& target) {
    const bool is_longer = source.size() > target.size();
    Dims shape = is_longer ? source : target;
    const Dims& other = is_longer ? target : source;
    for (std::size_t i = 0; i < other.size(); ++i) {
      Dim& size = shape[shape.size() - other.size() + i];
      if (size == other[i] || other[i].is_one()) continue;
      if (!size.is_one()) return std::nullopt;
      size = other[i];
    }
    return shape;
  }

  const TensorType* type(ValueId id) const {
    if (id == kAbsent) return nullptr;
    const auto& known = model_.values[id].type;
    return known ? &*known : nullptr;
  }

  void set_types(const Node& node, std::vector<std::optional<TensorType>> types) {
    for (std::size_t i = 0; i < node.out.size(); ++i) {
      if (node.out[i] == kAbsent || !types[i]) continue;
      model_.values[node.out[i]].type = std::move(types[i]);
    }
  }

  onnx::Model& model_;
  std::int64_t opset_;
  Contents contents_;
  std::unordered_set<ValueId> inputs_ = all_inputs();
  std::unordered_map<ValueId, Tensor> unsorted_known_;

  std::unordered_set<ValueId> all_inputs() const {
    std::unordered_set<ValueId> inputs;
    onnx::for_each_graph(model_.graph, [&](const Graph& graph) {
      inputs.insert(graph.inputs.begin(), graph.inputs.end());
    });
    return inputs;
  }
};

// --- what is not ours

bool is_called(const Node& node, std::span<const std::pair<std::string, std::string>> functions) {
  return std::ranges::any_of(functions, [&](const auto& function) {
    const bool is_onnx = function.first.empty() || function.first == "ai.onnx";
    return is_onnx && function.second == node.op;
  });
}

// A symbolic size inside of a graph is not the one of this name outside.
void forget_symbols(onnx::Model& model, const Graph& body, std::size_t& fresh) {
  for (ValueId id : body.inputs) {
    auto& type = model.values[id].type;
    if (!type || !type->shape) continue;
    for (Dim& size : *type->shape) {
      if (!size.is_static()) size = model.dims->symbol("?inner" + std::to_string(fresh++));
    }
  }
}

}  // namespace

void mark_foreign(onnx::Model& model,
                  std::span<const std::pair<std::string, std::string>> functions) {
  UniqueNames names(model);
  model.dims->let_symbols_be_zero();
  const auto opset = model.opset();
  std::size_t fresh = 0;
  onnx::for_each_graph(model.graph, [&](Graph& graph) {
    if (&graph != &model.graph) forget_symbols(model, graph, fresh);
    for (Node& node : graph.nodes) {
      const onnx::Schema* schema = node.domain.empty() ? readable_schema(node.op, opset) : nullptr;
      const bool is_known =
          schema != nullptr && has_its_values(*schema, node) && !is_called(node, functions);
      if (!is_known) {
        if (!node.domain.starts_with(kForeign)) node.domain.insert(node.domain.begin(), kForeign);
        continue;
      }
      for (ValueId id : node.out) {
        if (id != kAbsent) model.values[id].type.reset();
      }
    }
  });
}

void infer_types(onnx::Model& model) { Types(model).infer(model.graph); }

}  // namespace jaxport::pass
