// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "jaxport/error.h"
#include "onnx/check.h"
#include "onnx/expr.h"
#include "onnx/walk.h"
#include "support/watch.h"
#include "target/cast_order.h"
#include "target/compose.h"
#include "target/defined.h"
#include "target/empty_constant.h"
#include "target/empty_product.h"
#include "target/fast_form.h"
#include "target/kernels.h"
#include "target/magnitude.h"
#include "target/nan_order.h"
#include "target/neutral.h"
#include "target/scale.h"
#include "target/scan_loop.h"
#include "target/top_k_ties.h"
#include "target/version_fault.h"
#include "target/web_border.h"
#include "target/widening.h"

namespace jaxport::target {
namespace {

using onnx::Builder;
using onnx::Graph;
using onnx::kAbsent;
using onnx::Model;
using onnx::Node;
using onnx::Value;
using onnx::ValueId;

// What a composition is built of is legalised in the next round.
constexpr int kMostRounds = 4;

bool all_run(const Model& model, const Target& target, const Magnitudes& magnitudes) {
  bool ok = true;
  onnx::for_each_graph(model.graph, [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (!ok || !node.domain.empty()) continue;
      const std::optional<Widenings> widenings = widenings_for(model, node, target, magnitudes);
      ok = widenings && widenings->empty();
    }
  });
  return ok;
}

// 2^63 as an i64, 2^31 as an i32.
std::int64_t bias(DType dtype) {
  return dtype == DType::kI32 ? std::numeric_limits<std::int32_t>::min()
                              : std::numeric_limits<std::int64_t>::min();
}

// A small constant in a wide form. Integers keep their low bits.
Tensor converted(const Tensor& tensor, const WideForm& form) {
  MutableTensor out = allocate(form.dtype, tensor.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (form.dtype == DType::kF32) {
      out.as<float>()[i] = static_cast<float>(tensor.at(i));
    } else if (form.dtype == DType::kF64) {
      out.as<double>()[i] = tensor.at(i);
    } else {
      std::int64_t value = tensor.int_at(i);
      if (form.code == Code::kBiased) value ^= bias(form.dtype);
      const auto width = static_cast<std::size_t>(byte_width(form.dtype));
      std::memcpy(out.bytes + static_cast<std::size_t>(i) * width, &value, width);
    }
  }
  return out.tensor;
}

class Legaliser {
 public:
  // `target` loses old versions when it may and none of them can compute a node.
  Legaliser(Model& model, Target& target, bool may_lose_versions, const Magnitudes& magnitudes)
      : model_(model),
        target_(target),
        may_lose_versions_(may_lose_versions),
        magnitudes_(magnitudes) {}

  void run() {
    Builder op(model_, static_cast<int>(model_.opset()), onnx::DTypeRule::kAny);
    rewrite(model_.graph, op, nullptr);
  }

 private:
  // A graph that is being rewritten, inside those that enclose it.
  struct Scope {
    Graph& graph;
    Builder& op;
    Scope* outer;
    Defined defined;
  };

  void rewrite(Graph& graph, Builder& op, Scope* outer) {
    Scope scope{graph, op, outer, {}};
    for (ValueId id : graph.inputs) scope.defined.add(id);
    for (const onnx::Initializer& constant : graph.initializers) scope.defined.add(constant.value);
    for (Node& node : std::exchange(graph.nodes, {})) {
      onnx::for_each_subgraph(node, [&](Graph& inner) {
        Builder inner_op(op, inner);
        rewrite(inner, inner_op, &scope);
      });
      place(scope, std::move(node));
    }
  }

  void place(Scope& scope, Node node) {
    const std::optional<Widenings> widenings =
        node.domain.empty() ? widenings_for(model_, node, target_, magnitudes_) : Widenings{};
    if (!widenings) {
      scope.op.set_origin(model_.origins[node.origin]);
      const std::optional<Value> composed = compose(scope.op, node);
      if (!composed) return place_for_newer_versions(scope, std::move(node));
      node = identity(composed->id(), node.out.at(0), node.origin);
    }
    if (widenings && !widenings->empty()) return place_widened(scope, std::move(node), *widenings);
    append(scope, std::move(node));
  }

  void place_widened(Scope& scope, Node node, const Widenings& widenings) {
    const onnx::Schema& schema = onnx::require_schema(node.op, scope.op.opset());
    scope.op.set_origin(model_.origins[node.origin]);
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      const Widening* widening = widening_of(widenings, schema.inputs, i);
      if (widening != nullptr && node.in[i] != kAbsent) {
        node.in[i] = widened(scope, node.in[i], widening->to);
      }
    }
    const std::vector<ValueId> narrow = node.out;
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      const Widening* widening = widening_of(widenings, schema.outputs, i);
      if (widening != nullptr && narrow[i] != kAbsent) {
        node.out[i] = wide_result(narrow[i], *widening);
      }
    }
    const std::vector<ValueId> wide = node.out;
    const std::uint32_t origin = node.origin;
    append(scope, std::move(node));
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      if (wide[i] == narrow[i]) continue;
      const bool is_biased = widening_of(widenings, schema.outputs, i)->to.code == Code::kBiased;
      append(scope, cast(is_biased ? shifted(scope, wide[i]) : wide[i], narrow[i], origin));
    }
  }

  ValueId wide_result(ValueId narrow, const Widening& widening) {
    onnx::TensorType type = *model_.values[narrow].type;
    type.dtype = widening.to.dtype;
    model_.values.push_back({std::move(type), ""});
    const auto wide = static_cast<ValueId>(model_.values.size() - 1);
    if (widening.is_exact) wide_.emplace(std::pair(narrow, widening.to.dtype), wide);
    return wide;
  }

  // A value in a wide form, computed once in the graph that owns the value.
  ValueId widened(Scope& scope, ValueId id, const WideForm& form) {
    const auto known = wide_.find({id, form.dtype});
    if (known != wide_.end() && form.code == Code::kCast) return known->second;
    Scope& owner = owner_of(id, scope);
    const Value value(&owner.op, id);
    if (const Tensor* constant = owner.op.known(value)) {
      return owner.op.constant(converted(*constant, form)).id();
    }
    const Value wide = onnx::cast(value, form.dtype);
    owner.defined.add(wide.id());
    return form.code == Code::kBiased ? shifted(owner, wide.id()) : wide.id();
  }

  // Adding the bias turns the order of unsigned numbers into that of signed ones, and back.
  static ValueId shifted(Scope& scope, ValueId id) {
    const Value value(&scope.op, id);
    const Value result = value + bias(value.dtype());
    scope.defined.add(result.id());
    return result.id();
  }

  Node cast(ValueId from, ValueId to, std::uint32_t origin) const {
    Node node = identity(from, to, origin);
    node.op = "Cast";
    node.attrs = {onnx::Arg("to", model_.values[to].type->dtype).attribute};
    return node;
  }

  static Node identity(ValueId from, ValueId to, std::uint32_t origin) {
    Node node;
    node.op = "Identity";
    node.in = {from};
    node.out = {to};
    node.origin = origin;
    return node;
  }

  static void append(Scope& scope, Node node) {
    for (ValueId id : node.out) scope.defined.add(id);
    scope.graph.nodes.push_back(std::move(node));
  }

  void place_for_newer_versions(Scope& scope, Node node) {
    const std::optional<int> version = newer_version_for(node);
    if (!version || !may_lose_versions_) fail(node, version);
    target_.oldest = *version;
    place(scope, std::move(node));
  }

  [[noreturn]] void fail(const Node& node, std::optional<int> version) const {
    std::vector<onnx::InferenceInput> in;
    for (ValueId id : node.in) {
      const bool known = id != kAbsent && model_.values[id].type;
      in.push_back({known ? &*model_.values[id].type : nullptr, nullptr});
    }
    throw Error("E013", fmt::format("{}{} cannot compute {}", title_of(target_.runtime),
                                    version ? " " + version_text(target_.oldest) : "",
                                    onnx::describe(node, in)))
        .at(model_.origins[node.origin].source)
        .help("convert the operands to another dtype before this operation" +
              (version ? fmt::format(", or use target '{}>={}'", name_of(target_.runtime),
                                     version_text(*version))
                       : ""));
  }

  // The version from which on the target would run a node that it does not run.
  std::optional<int> newer_version_for(const Node& node) const {
    for (const Release& release : releases(target_.runtime)) {
      const Target newer{target_.runtime, release.version, kOpen};
      if (release.version > target_.oldest && widenings_for(model_, node, newer, magnitudes_))
        return release.version;
    }
    return std::nullopt;
  }

  Model& model_;
  Target& target_;
  const bool may_lose_versions_;
  const Magnitudes& magnitudes_;
  std::map<std::pair<ValueId, DType>, ValueId> wide_;  // exact results in wide dtypes
};

bool avoid_faults_of_versions(Model& model, const Target& target) {
  bool changed = false;
  for (const VersionFault& fault : version_faults()) {
    const bool is_met = target.oldest <= fault.last && fault.first <= target.newest &&
                        fault.first_opset <= model.opset() && model.opset() <= fault.last_opset;
    if (is_met && fault.avoid) changed |= fault.avoid(model);
  }
  return changed;
}

}  // namespace

bool runs(const Target& target, std::string_view op, int opset, DType dtype) {
  const onnx::Schema* schema = onnx::find_schema(op, opset);
  if (schema == nullptr || schema->inputs.empty()) return false;
  const auto allows = [&](const onnx::Formal& formal) {
    return takes(schema->types, formal.type, dtype);
  };
  if (!allows(schema->inputs[0])) return false;
  const auto& kernels = kernels_of(for_opset(target, opset), *schema);
  return std::ranges::any_of(kernels, [&](const Kernel& kernel) {
    return std::ranges::all_of(schema->inputs, [&](const onnx::Formal& formal) {
      return !allows(formal) || takes(kernel.types, formal.type, dtype);
    });
  });
}

Target legalise(Model& model, const Target& target) {
  const std::int64_t opset = model.opset();
  if (opset < onnx::kOldestOpset || opset > onnx::kNewestOpset) return target;
  if (target.runtime == Runtime::kOnnxRuntimeWeb) narrow_border(model);
  const bool may_lose_versions = target.oldest == 0;
  Target versions = for_opset(target, static_cast<int>(opset));
  for (int round = 0; round < kMostRounds; ++round) {
    watch().enter("target");
    const Magnitudes magnitudes(model);
    if (all_run(model, versions, magnitudes)) return versions;
    Legaliser(model, versions, may_lose_versions, magnitudes).run();
  }
  throw Error("BUG", "the model does not become legal");
}

bool avoid_faults(Model& model, const Target& target) {
  bool changed = write_fast_forms(model, target);
  // The order of Cast and Transpose is the same to every other runtime.
  changed |= cast_before_transposing(model);
  if (target.runtime == Runtime::kOnnx) return changed;
  if (target.runtime == Runtime::kOpenVino) {
    changed |= fill_empty_constants(model);
    changed |= compare_by_less(model);
    changed |= order_ties(model);
    return write_scans_as_loops(model) || changed;
  }
  changed |= keep_scales(model);
  changed |= keep_nearly_neutral(model);
  changed |= avoid_faults_of_versions(model, for_opset(target, static_cast<int>(model.opset())));
  return guard_empty_products(model) || changed;
}

}  // namespace jaxport::target
