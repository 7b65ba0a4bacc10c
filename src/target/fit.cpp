// SPDX-License-Identifier: Apache-2.0
#include "target/fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "jaxport/error.h"
#include "onnx/check.h"
#include "onnx/walk.h"
#include "target/kernels.h"
#include "target/version_fault.h"
#include "target/web_border.h"

namespace jaxport::target {
namespace {

using onnx::Graph;
using onnx::kAbsent;
using onnx::Model;
using onnx::Node;
using onnx::ValueId;

struct Bound {
  std::string_view variable;
  DType dtype;
};
using BoundTypes = std::vector<Bound>;

bool fits(const Kernel& kernel, const BoundTypes& types, Runtime runtime) {
  return std::ranges::all_of(types, [&](const Bound& bound) {
    if (takes(kernel.types, bound.variable, bound.dtype)) return true;
    // What has no kernel in f16 ONNX Runtime computes in f32, between two Casts.
    return runtime != Runtime::kOpenVino && bound.dtype == DType::kF16 &&
           takes(kernel.types, bound.variable, DType::kF32);
  });
}

// Whether the parts of an op that ONNX defines by others have kernels in these dtypes, too.
bool loads_by_parts(const onnx::Schema& schema, const BoundTypes& types) {
  if (schema.op == "CastLike") return true;
  return has_body(schema.op) && std::ranges::all_of(types, [](const Bound& bound) {
           return bound.dtype == DType::kF16 || bound.dtype == DType::kF32 ||
                  bound.dtype == DType::kF64 || bound.dtype == DType::kI64 ||
                  bound.dtype == DType::kBool;
         });
}

bool loads(Runtime runtime, const Release& release, const onnx::Schema& schema,
           const BoundTypes& types) {
  if (schema.op == "Constant") return true;
  if (runtime != Runtime::kOpenVino && loads_by_parts(schema, types)) return true;
  const Target only{runtime, release.version, release.version};
  return std::ranges::any_of(kernels_of(only, schema),
                             [&](const Kernel& kernel) { return fits(kernel, types, runtime); });
}

std::string place_of(const Node& node, std::size_t index) {
  return node.name.empty() ? fmt::format("node {}", index) : fmt::format("node '{}'", node.name);
}

class Fitter {
 public:
  Fitter(const Model& model, Runtime runtime)
      : model_(model), runtime_(runtime), opset_(model.opset()) {
    fit_.runtime = runtime;
    for (const Release& release : known_releases()) fit_.versions.push_back({release.version, {}});
    for (const onnx::Function& function : model.functions) {
      functions_.emplace(std::pair(function.domain, function.name), &function);
    }
    makers_.resize(model_.values.size());
    onnx::for_each_graph_of(model_, [this](const Graph& graph) {
      for (const Node& node : graph.nodes) {
        for (ValueId id : node.out) {
          if (id != kAbsent) makers_[id] = &node;
        }
      }
    });
  }

  Fit run() {
    check_header();
    walk(model_.graph, "");
    for (const auto& [domain, ops] : foreign_) {
      std::size_t count = 0;
      for (const auto& [op, uses] : ops) count += uses;
      fit_.notes.push_back(fmt::format("{} node{} of domain '{}' {} not checked: {}", count,
                                       count == 1 ? "" : "s", domain, count == 1 ? "was" : "were",
                                       fmt::join(std::views::keys(ops), ", ")));
    }
    put_refusals_first();
    return std::move(fit_);
  }

 private:
  std::span<const Release> known_releases() const { return releases(runtime_); }

  // What does not load gives no wrong numbers.
  void put_refusals_first() {
    const auto is_refusal = [](const Misfit& misfit) {
      return misfit.fault == nullptr || !misfit.fault->loads;
    };
    for (VersionFit& version : fit_.versions) {
      std::ranges::stable_partition(version.misfits, is_refusal);
    }
  }

  void check_header() {
    if (runtime_ == Runtime::kOnnxRuntimeWeb) check_border();
    for (std::size_t i = 0; i < known_releases().size(); ++i) {
      const Release& release = known_releases()[i];
      auto& misfits = fit_.versions[i].misfits;
      if (opset_ > release.opset) {
        misfits.push_back({Reason::kTooNew, fmt::format("opset {} is too new", opset_), ""});
      } else if (model_.ir_version > release.ir) {
        misfits.push_back(
            {Reason::kTooNew, fmt::format("IR version {} is too new", model_.ir_version), ""});
      }
    }
    if (opset_ != 0 && !has_schemas()) {
      fit_.notes.push_back(
          fmt::format("opset {} is outside of {} to {}: operators were not checked", opset_,
                      onnx::kOldestOpset, onnx::kNewestOpset));
    }
  }

  void check_border() {
    for (const auto* ids : {&model_.graph.inputs, &model_.graph.outputs}) {
      for (ValueId id : *ids) {
        if (!is_unknown_to_javascript(model_, id)) continue;
        const std::string what = fmt::format("JavaScript has no {}, the dtype of '{}'",
                                             name_of(*dtype_of(id)), model_.values[id].name);
        for (VersionFit& version : fit_.versions)
          version.misfits.push_back({Reason::kBorder, what, ""});
      }
    }
  }

  // WebGPU has no such values; nodes that read their sizes alone do not matter.
  void check_webgpu(const Node& node, const std::string& where) {
    constexpr DType kKnown[] = {DType::kBool, DType::kI8,  DType::kU8,  DType::kI32, DType::kU32,
                                DType::kI64,  DType::kU64, DType::kF16, DType::kF32};
    if (runtime_ != Runtime::kOnnxRuntimeWeb || node.op == "Shape" || node.op == "Size") return;
    for (const auto* ids : {&node.in, &node.out}) {
      for (ValueId id : *ids) {
        const std::optional<DType> dtype = dtype_of(id);
        if (!dtype || std::ranges::find(kKnown, *dtype) != std::end(kKnown)) continue;
        if (!said_of_webgpu_.insert(*dtype).second) continue;
        fit_.notes.push_back(
            fmt::format("WebGPU: {} at {}: the model does not load", name_of(*dtype), where));
      }
    }
  }

  bool has_schemas() const { return opset_ >= onnx::kOldestOpset && opset_ <= onnx::kNewestOpset; }

  void walk(const Graph& graph, const std::string& where) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      const std::string here = where + place_of(node, i);
      onnx::for_each_subgraph(node,
                              [&](const Graph& inner) { walk(inner, fmt::format("{}: ", here)); });
      const auto function = functions_.find(std::pair(node.domain, node.op));
      if (function != functions_.end()) {
        call(node, *function->second, here);
      } else if (!node.domain.empty()) {
        ++foreign_[node.domain][node.op];
      } else if (has_schemas()) {
        check(node, here);
      }
    }
  }

  // The body with the types of the operands. Calls with the same dtypes are looked at once.
  void call(const Node& node, const onnx::Function& function, const std::string& where) {
    const std::vector<ValueId>& formals = function.body.inputs;
    for (std::size_t i = 0; i < std::min(node.in.size(), formals.size()); ++i) {
      if (node.in[i] != kAbsent) model_.values[formals[i]].type = model_.values[node.in[i]].type;
    }
    std::vector<std::optional<DType>> key;
    for (ValueId id : formals) key.push_back(dtype_of(id));
    auto [known, is_new] = results_.try_emplace(std::pair(&function, key));
    if (is_new) {
      walk(function.body, fmt::format("{}: ", where));
      for (ValueId id : function.body.outputs) known->second.push_back(dtype_of(id));
    }
    for (std::size_t i = 0; i < std::min(node.out.size(), known->second.size()); ++i) {
      if (node.out[i] != kAbsent && known->second[i])
        model_.values[node.out[i]].type = {*known->second[i], std::nullopt};
    }
  }

  std::optional<DType> dtype_of(ValueId id) const {
    if (id == kAbsent) return std::nullopt;
    const auto& type = model_.values[id].type;
    return type ? std::optional(type->dtype) : std::nullopt;
  }

  void check(const Node& node, const std::string& where) {
    const onnx::Schema* schema = onnx::find_schema(node.op, static_cast<int>(opset_));
    if (schema == nullptr || schema->deprecated) return refuse(node, where);
    infer_types(node, *schema);
    BoundTypes types;
    bind(schema->inputs, node.in, types);
    bind(schema->outputs, node.out, types);
    for (std::size_t i = 0; i < known_releases().size(); ++i) {
      const Release& release = known_releases()[i];
      if (opset_ > release.opset || loads(runtime_, release, *schema, types)) continue;
      fit_.versions[i].misfits.push_back(
          {Reason::kKernel,
           fmt::format("no kernel for {}({})", node.op, fmt::join(operand_names(node), ", ")),
           where});
    }
    check_faults(node, where);
    check_webgpu(node, where);
  }

  void check_faults(const Node& node, const std::string& where) {
    if (runtime_ == Runtime::kOpenVino) return;
    for (const VersionFault& fault : version_faults()) {
      if (opset_ < fault.first_opset || opset_ > fault.last_opset) continue;
      if (!fault.is_met({node, model_, makers_})) continue;
      for (std::size_t i = 0; i < known_releases().size(); ++i) {
        const Release& release = known_releases()[i];
        if (release.version < fault.first || release.version > fault.last) continue;
        if (opset_ > release.opset) continue;
        fit_.versions[i].misfits.push_back(
            {Reason::kFault, std::string(fault.what), where, &fault});
      }
    }
  }

  void refuse(const Node& node, const std::string& where) {
    for (VersionFit& version : fit_.versions) {
      version.misfits.push_back({Reason::kUnknownOp,
                                 fmt::format("there is no op '{}' in opset {}", node.op, opset_),
                                 where});
    }
  }

  void bind(std::span<const onnx::Formal> formals, const std::vector<ValueId>& ids,
            BoundTypes& types) const {
    for (std::size_t i = 0; i < ids.size() && !formals.empty(); ++i) {
      if (ids[i] == kAbsent || !dtype_of(ids[i])) continue;
      types.push_back({onnx::formal_at(formals, i).type, *dtype_of(ids[i])});
    }
  }

  std::vector<std::string_view> operand_names(const Node& node) const {
    std::vector<std::string_view> names;
    for (ValueId id : node.in) {
      const std::optional<DType> dtype = id == kAbsent ? std::nullopt : dtype_of(id);
      names.push_back(id == kAbsent ? "" : dtype ? name_of(*dtype) : "?");
    }
    return names;
  }

  // What inference cannot tell stays as the file declares it, and so do shapes. They may contradict
  // each other, because a function is called with others: nothing is inferred from them.
  void infer_types(const Node& node, const onnx::Schema& schema) {
    std::vector<onnx::TensorType> dtypes;
    dtypes.reserve(node.in.size());
    std::vector<onnx::InferenceInput> in;
    for (ValueId id : node.in) {
      const std::optional<DType> dtype = id == kAbsent ? std::nullopt : dtype_of(id);
      if (dtype) dtypes.push_back({*dtype, std::nullopt});
      in.push_back({dtype ? &dtypes.back() : nullptr, nullptr});
    }
    try {
      const auto types = onnx::infer(model_, schema, node, in);
      for (std::size_t i = 0; i < node.out.size(); ++i) {
        if (node.out[i] == kAbsent || !types[i]) continue;
        auto& type = model_.values[node.out[i]].type;
        if (!type || type->dtype != types[i]->dtype) type = types[i];
      }
    } catch (const Error&) {  // jaxport check says what is wrong with the node
      return;
    }
  }

  Model model_;  // whose types become known
  Runtime runtime_;
  std::int64_t opset_;
  std::map<std::pair<std::string, std::string>, const onnx::Function*> functions_;
  std::map<std::pair<const onnx::Function*, std::vector<std::optional<DType>>>,
           std::vector<std::optional<DType>>>
      results_;
  std::map<std::string, std::map<std::string, std::size_t>> foreign_;  // by domain and op
  std::vector<const Node*> makers_;                                    // by value
  std::set<DType> said_of_webgpu_;
  Fit fit_;
};

}  // namespace

std::string to_string(const Misfit& misfit) {
  const std::string_view kind = misfit.fault && misfit.fault->loads ? "loads, but wrong: " : "";
  return fmt::format("{}{}{}{}", kind, misfit.what, misfit.where.empty() ? "" : " at ",
                     misfit.where);
}

int Fit::needed() const {
  int first = 0;
  for (const VersionFit& version : std::views::reverse(versions)) {
    if (!version.misfits.empty()) break;
    first = version.version;
  }
  return first;
}

Fit fit(const onnx::Model& model, Runtime runtime) { return Fitter(model, runtime).run(); }

const Misfit* hindrance(const Fit& fit) {
  for (const VersionFit& version : std::views::reverse(fit.versions)) {
    if (!version.misfits.empty()) return &version.misfits.front();
  }
  return nullptr;
}

std::string advice(const Fit& fit) {
  const Misfit* found = hindrance(fit);
  if (found == nullptr) return "";
  const Misfit& misfit = *found;
  const auto wrong =
      std::ranges::find_if(std::views::reverse(fit.versions),
                           [](const auto& version) { return !version.misfits.empty(); });
  const std::string target =
      fmt::format("--target {}=={}", name_of(fit.runtime), version_text(wrong->version));
  switch (misfit.reason) {
    case Reason::kTooNew:
      return fmt::format(
          "older versions need an older opset: jaxport picks it with --opset auto --target "
          "{}==VERSION",
          name_of(fit.runtime));
    case Reason::kBorder:
      return fmt::format("jaxport gives such inputs and outputs as f32 with --target {}",
                         name_of(fit.runtime));
    case Reason::kUnknownOp:
      return "jaxport check lists what is wrong with the model";
    case Reason::kKernel:
      return fmt::format(
          "give the operands {} dtype, with Cast; jaxport does so, where there is one, with {}",
          fit.runtime == Runtime::kOpenVino ? "another" : "a wider", target);
    case Reason::kFault:
      return fmt::format("{}; what jaxport makes with {} avoids it", misfit.fault->instead, target);
  }
  return "";
}

}  // namespace jaxport::target
