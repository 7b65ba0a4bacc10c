// SPDX-License-Identifier: Apache-2.0
#include "target/precision.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/builder.h"
#include "onnx/check.h"
#include "onnx/walk.h"
#include "target/borders.h"
#include "target/defined.h"
#include "target/precision_ops.h"
#include "target/precision_plan.h"

namespace jaxport::target {
namespace {

using onnx::Graph;
using onnx::Initializer;
using onnx::kAbsent;
using onnx::Model;
using onnx::Node;
using onnx::ValueId;

// A value has up to two forms, f32 and half. That which its node computes comes first; the other is
// a Cast in the graph that owns the value, made where the first node wants it.
class Rewriter {
 public:
  Rewriter(Model& model, const Precision& precision, const PrecisionPlan& plan)
      : model_(model),
        precision_(precision),
        plan_(plan),
        is_f32_(model.values.size()),
        is_output_(model.values.size()),
        full_(model.values.size(), kAbsent),
        half_(model.values.size(), kAbsent) {
    for (ValueId id = 0; id < is_f32_.size(); ++id) is_f32_[id] = plan.is_f32(id);
    for (ValueId id : model.graph.outputs) is_output_[id] = true;
  }

  PrecisionCounts run() {
    for (ValueId id : model_.graph.inputs) {
      if (is_f32(id)) set_form(id, precision_.io);
    }
    rewrite(model_.graph, nullptr, std::vector<bool>(model_.graph.outputs.size(), precision_.io));
    return counts_;
  }

 private:
  // A graph that is being rewritten, inside those that enclose it.
  struct Scope {
    Graph& graph;
    Scope* outer;
    Defined defined = {};
  };

  bool is_f32(ValueId id) const { return id < is_f32_.size() && is_f32_[id]; }
  DType dtype(bool half) const { return half ? precision_.dtype : DType::kF32; }
  ValueId& form_of(ValueId id, bool half) { return half ? half_[id] : full_[id]; }

  // --- graphs and nodes

  void rewrite(Graph& graph, Scope* outer, const std::vector<bool>& outputs_are_half) {
    Scope scope{graph, outer};
    for (ValueId id : graph.inputs) scope.defined.add(id);
    for (Initializer& constant : graph.initializers) {
      scope.defined.add(constant.value);
      if (is_f32(constant.value)) store(constant);
    }
    for (Node& node : std::exchange(graph.nodes, {})) {
      for (ValueId id : node.out) scope.defined.add(id);
      origin_ = node.origin;
      if (has_bodies(node)) {
        place_bodies(scope, std::move(node));
      } else {
        place(scope, std::move(node));
      }
    }
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      ValueId& id = graph.outputs[i];
      if (is_f32(id)) id = form(scope, id, outputs_are_half[i]);
    }
  }

  static bool has_bodies(const Node& node) {
    bool found = false;
    onnx::for_each_subgraph(node, [&](const Graph&) { found = true; });
    return found;
  }

  void place(Scope& scope, Node node) {
    const bool half = plan_.is_half(node);
    // A node of another domain has no schema, and is never in halves.
    const onnx::Schema* schema = half ? &onnx::require_schema(node.op, opset()) : nullptr;
    const auto is_half = [&](std::span<const onnx::Formal> onnx::Schema::*formals, std::size_t i) {
      return half && is_variable(*schema, onnx::formal_at(schema->*formals, i).type);
    };
    count(node, half);
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      if (is_f32(node.in[i]))
        node.in[i] = form(scope, node.in[i], is_half(&onnx::Schema::inputs, i));
    }
    if (half) set_attributes(node);
    std::vector<Node> casts;
    for (std::size_t i = 0; i < node.out.size(); ++i) {
      if (is_f32(node.out[i])) define(node.out[i], is_half(&onnx::Schema::outputs, i), casts);
    }
    append(scope, std::move(node), std::move(casts));
  }

  // What enters and leaves a body has the dtype that the plan has for both sides of the border.
  void place_bodies(Scope& scope, Node node) {
    const std::vector<Border> all = borders(node);
    std::vector<ValueId> operands = node.in;
    for (const Border& border : all) {
      for (std::size_t i = 0; i < border.body->inputs.size(); ++i) {
        const ValueId inside = border.body->inputs[i];
        if (!is_f32(inside)) continue;
        set_form(inside, plan_.is_half(inside));
        operands.at(i) = form(scope, border.given(i), plan_.is_half(inside));
      }
    }
    std::size_t next = 0;
    onnx::for_each_subgraph(
        node, [&](Graph& body) { rewrite(body, &scope, halves_that_leave(all.at(next++))); });
    node.in = std::move(operands);
    std::vector<Node> casts;
    for (ValueId& id : node.out) {
      if (is_f32(id)) define(id, plan_.is_half(id), casts);
    }
    append(scope, std::move(node), std::move(casts));
  }

  std::vector<bool> halves_that_leave(const Border& border) const {
    std::vector<bool> result;
    for (std::size_t i = 0; i < border.body->outputs.size(); ++i) {
      ValueId id = border.result_of(i);
      if (id == kAbsent) id = border.carried(i);
      result.push_back(plan_.is_half(id == kAbsent ? border.body->outputs[i] : id));
    }
    return result;
  }

  static bool is_variable(const onnx::Schema& schema, std::string_view type) {
    return std::ranges::find(schema.types, type, &onnx::TypeConstraint::variable) !=
           schema.types.end();
  }

  int opset() const { return static_cast<int>(model_.opset()); }

  void set_attributes(Node& node) const {
    if (node.op == "Cast") node.attrs = {onnx::Arg("to", precision_.dtype).attribute};
    if (node.op == "Attention") {  // the weights are computed in f32
      std::erase_if(node.attrs, [](const auto& attr) { return attr.name == "softmax_precision"; });
      node.attrs.push_back(onnx::Arg("softmax_precision", DType::kF32).attribute);
      std::ranges::sort(node.attrs, {}, &onnx::Attribute::name);
    }
  }

  void count(const Node& node, bool half) {
    const auto f32 = [this](ValueId id) { return is_f32(id); };
    if (std::ranges::any_of(node.in, f32) || std::ranges::any_of(node.out, f32)) {
      ++(half ? counts_.half : counts_.full);
    }
  }

  static void append(Scope& scope, Node node, std::vector<Node> casts) {
    scope.graph.nodes.push_back(std::move(node));
    for (Node& cast : casts) scope.graph.nodes.push_back(std::move(cast));
  }

  // --- values

  void set_form(ValueId id, bool half) {
    model_.values[id].type->dtype = dtype(half);
    form_of(id, half) = id;
  }

  // A result in the dtype that its node computes. An output of the model keeps its name and has
  // the dtype that outputs have.
  void define(ValueId& result, bool half, std::vector<Node>& casts) {
    const ValueId id = result;
    if (!is_output_[id] || half == precision_.io) return set_form(id, half);
    result = new_value(id, half);
    form_of(id, half) = result;
    set_form(id, !half);
    casts.push_back(cast(result, id));
  }

  ValueId new_value(ValueId like, bool half) {
    onnx::TensorType type = *model_.values[like].type;
    type.dtype = dtype(half);
    model_.values.push_back({std::move(type), ""});
    return static_cast<ValueId>(model_.values.size() - 1);
  }

  Node cast(ValueId from, ValueId to) const {
    Node node;
    node.op = "Cast";
    node.in = {from};
    node.out = {to};
    node.attrs = {onnx::Arg("to", model_.values[to].type->dtype).attribute};
    node.origin = origin_;
    return node;
  }

  ValueId form(Scope& scope, ValueId id, bool half) {
    if (const ValueId known = form_of(id, half); known != kAbsent) return known;
    Scope& owner = owner_of(id, scope);
    const ValueId wanted = new_value(id, half);
    form_of(id, half) = wanted;
    const auto constant = unsorted_constants_.find(id);
    if (half && constant != unsorted_constants_.end()) {
      Initializer rounded = constant->second;
      rounded.value = wanted;
      rounded.view = rounded_view(rounded.view);
      owner.graph.initializers.push_back(std::move(rounded));
    } else {
      owner.graph.nodes.push_back(cast(form_of(id, !half), wanted));
    }
    return wanted;
  }

  StridedView rounded_view(const StridedView& view) const {
    const auto round = precision_.dtype == DType::kF16 ? float_to_f16 : float_to_bf16;
    MutableTensor result = allocate(precision_.dtype, view.sizes);
    auto* to = result.as<std::uint16_t>();
    for_each_chunk(view, [&](std::span<const std::byte> chunk) {
      for (std::size_t at = 0; at < chunk.size(); at += sizeof(float)) {
        float value;
        std::memcpy(&value, chunk.data() + at, sizeof(float));
        *to++ = round(value);
      }
    });
    return whole(result.tensor);
  }

  void store(Initializer& constant) {
    const ValueId id = constant.value;
    const bool half = is_output_[id] ? precision_.io : plan_.is_stored_half(constant);
    (half ? counts_.stored : counts_.kept) += static_cast<std::size_t>(constant.view.size());
    if (half) {
      constant.view = rounded_view(constant.view);
    } else {
      unsorted_constants_.emplace(id, constant);
    }
    set_form(id, half);
  }

  Model& model_;
  const Precision precision_;
  const PrecisionPlan& plan_;
  PrecisionCounts counts_;
  std::uint32_t origin_ = 0;
  // By value, of those that the model had.
  std::vector<bool> is_f32_, is_output_;
  std::vector<ValueId> full_, half_;
  std::unordered_map<ValueId, Initializer> unsorted_constants_;  // in f32
};

}  // namespace

PrecisionCounts reduce_precision(Model& model, const Target& target, const Precision& precision) {
  if (precision.dtype == DType::kF32) return {};
  const PrecisionPlan plan(model, for_opset(target, static_cast<int>(model.opset())), precision);
  return Rewriter(model, precision, plan).run();
}

}  // namespace jaxport::target
