// SPDX-License-Identifier: Apache-2.0
#include "onnx/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "jaxport/error.h"
#include "onnx/check.h"
#include "onnx/equal.h"
#include "onnx/walk.h"
#include "support/hash.h"
#include "support/hash_index.h"
#include "support/watch.h"

namespace jaxport::onnx {
namespace {

std::uint64_t hash_view(const StridedView& view) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.base.data.get());
  std::uint64_t hash = mix(address, static_cast<std::uint64_t>(view.offset));
  for (std::int64_t stride : view.strides) hash = mix(hash, static_cast<std::uint64_t>(stride));
  return hash;
}

bool same_view(const StridedView& a, const StridedView& b) {
  return a.base.data == b.base.data && a.base.dtype == b.base.dtype && a.offset == b.offset &&
         a.sizes == b.sizes && a.strides == b.strides;
}

}  // namespace

DType Value::dtype() const {
  const auto& type = builder_->info(id_).type;
  if (!type) throw Error("BUG", fmt::format("the dtype of value {} is not known", id_));
  return type->dtype;
}

const Dims& Value::shape() const {
  const auto& type = builder_->info(id_).type;
  if (!type || !type->shape) throw Error("BUG", fmt::format("value {} has no known shape", id_));
  return *type->shape;
}

Arg::Arg(std::string_view name, std::int64_t v) : attribute{std::string(name), v} {}
Arg::Arg(std::string_view name, int v) : Arg(name, std::int64_t{v}) {}
Arg::Arg(std::string_view name, double v) : attribute{std::string(name), static_cast<float>(v)} {}
Arg::Arg(std::string_view name, const char* v) : Arg(name, std::string(v)) {}
Arg::Arg(std::string_view name, std::string v) : attribute{std::string(name), std::move(v)} {}
Arg::Arg(std::string_view name, std::vector<std::int64_t> v)
    : attribute{std::string(name), std::move(v)} {}
Arg::Arg(std::string_view name, std::initializer_list<std::int64_t> v)
    : Arg(name, std::vector<std::int64_t>(v)) {}
Arg::Arg(std::string_view name, std::vector<std::string> v)
    : attribute{std::string(name), std::move(v)} {}
Arg::Arg(std::string_view name, Tensor v) : attribute{std::string(name), std::move(v)} {}
Arg::Arg(std::string_view name, std::shared_ptr<Graph> v)
    : attribute{std::string(name), std::move(v)} {}
Arg::Arg(std::string_view name, DType v) : Arg(name, std::int64_t{onnx_number(v)}) {}

struct Builder::Impl {
  Builder* outer = nullptr;
  Graph* graph = nullptr;
  std::uint32_t origin = 0;
  HashIndex<std::size_t> nodes;      // indices into graph->nodes
  HashIndex<std::size_t> weights;    // indices into graph->initializers
  HashIndex<ValueId> constants;      // small ones; all of them are in `known`
  HashIndex<std::uint32_t> origins;  // indices into model.origins
  std::unordered_map<ValueId, Tensor> known;
  // Results of this graph's nodes that can still take the name of an output.
  std::vector<bool> nameable;

  void add(Node node) {
    watch().poll();
    watch().require_nodes(graph->nodes.size() + 1, "the graph");
    graph->nodes.push_back(std::move(node));
  }

  void set_nameable(ValueId id, bool flag) {
    if (id >= nameable.size()) nameable.resize(id + 1);
    nameable[id] = flag;
  }

  // A graph that is built on may have constants already.
  void work_on(Graph& started) {
    graph = &started;
    for (const Initializer& constant : started.initializers) {
      if (!is_small(constant.view.base.dtype, constant.view.size())) continue;
      Tensor content = materialise(constant.view);
      content.shape = constant.shape;
      constants.add(content_hash(content), constant.value);
      known.emplace(constant.value, std::move(content));
    }
  }
};

Builder::Builder(Model& model, int opset, DTypeRule dtypes)
    : model_(model), opset_(opset), dtypes_(dtypes), impl_(std::make_unique<Impl>()) {
  impl_->work_on(model.graph);
  const auto import = std::ranges::find(model.opsets, "", &OpsetImport::domain);
  if (import != model.opsets.end())
    import->version = opset;
  else
    model.opsets.insert(model.opsets.begin(), {"", opset});
  model.ir_version = ir_version_for(opset);
}

Builder::Builder(Builder& outer, Graph& graph)
    : model_(outer.model_),
      opset_(outer.opset_),
      dtypes_(outer.dtypes_),
      impl_(std::make_unique<Impl>()) {
  impl_->outer = &outer;
  impl_->work_on(graph);
  impl_->origin = outer.impl_->origin;
}

Builder::~Builder() = default;

bool Builder::is_inside(const Builder& other) const {
  return this == &other || (impl_->outer && impl_->outer->is_inside(other));
}

Values Builder::wrap(const std::vector<ValueId>& ids) {
  Values values;
  for (ValueId id : ids) values.push_back(wrap(id));
  return values;
}

ValueId Builder::add_value(std::optional<TensorType> type, std::string name) {
  model_.values.push_back({std::move(type), std::move(name)});
  return static_cast<ValueId>(model_.values.size() - 1);
}

Value Builder::input(std::string name, TensorType type) {
  const ValueId id = add_value(std::move(type), std::move(name));
  impl_->graph->inputs.push_back(id);
  return wrap(id);
}

Value Builder::add_initializer(StridedView view, jaxport::Shape shape, std::string name) {
  const ValueId id = add_value(TensorType{view.base.dtype, to_dims(shape)}, std::move(name));
  impl_->graph->initializers.push_back({id, std::move(view), std::move(shape)});
  return wrap(id);
}

Value Builder::weight(StridedView view, jaxport::Shape shape, std::string name) {
  // Weights live in the main graph, each once: a body that wants the same bytes captures them.
  if (impl_->outer) return impl_->outer->weight(std::move(view), std::move(shape), std::move(name));
  const std::uint64_t hash = hash_view(view);
  const std::vector<Initializer>& all = impl_->graph->initializers;
  const std::size_t* same = impl_->weights.find(hash, [&](std::size_t earlier) {
    return same_view(all[earlier].view, view) && all[earlier].shape == shape &&
           names_agree(model_.values[all[earlier].value].name, name);
  });
  if (same != nullptr) {
    std::string& given = model_.values[all[*same].value].name;
    if (given.empty()) given = std::move(name);
    return wrap(all[*same].value);
  }
  impl_->weights.add(hash, all.size());
  return add_initializer(std::move(view), std::move(shape), std::move(name));
}

Value Builder::constant(Tensor tensor, std::string name) {
  if (!is_small(tensor.dtype, tensor.size())) {
    jaxport::Shape shape = tensor.shape;
    return weight(whole(std::move(tensor)), std::move(shape), std::move(name));
  }
  const std::uint64_t hash = content_hash(tensor);
  const ValueId* same = impl_->constants.find(hash, [&](ValueId id) {
    return names_agree(model_.values[id].name, name) && same_bytes(impl_->known.at(id), tensor);
  });
  if (same != nullptr) {
    if (!name.empty()) model_.values[*same].name = std::move(name);
    return wrap(*same);
  }
  const Value value = add_initializer(whole(tensor), tensor.shape, std::move(name));
  impl_->constants.add(hash, value.id());
  impl_->known.emplace(value.id(), std::move(tensor));
  return value;
}

Value Builder::ints(std::vector<std::int64_t> values) { return constant(int64s(values)); }

Value Builder::scalar(double value, DType dtype) { return constant(jaxport::scalar(dtype, value)); }

const Tensor* Builder::known(ValueId id) const {
  for (const Builder* scope = this; scope != nullptr; scope = scope->impl_->outer) {
    const auto found = scope->impl_->known.find(id);
    if (found == scope->impl_->known.end()) continue;
    return found->second.size() <= kSmallElements ? &found->second : nullptr;
  }
  return nullptr;
}

const std::vector<ValueId>& Builder::append(Node node) {
  const Schema& schema = require_schema(node.op, opset_);
  std::vector<InferenceInput> in;
  for (ValueId id : node.in) {
    const TensorType* type = nullptr;
    if (id != kAbsent && model_.values[id].type) type = &*model_.values[id].type;
    in.push_back({type, known(id)});
  }
  node.origin = impl_->origin;
  std::vector<std::optional<TensorType>> types = infer(model_, schema, node, in, dtypes_);
  for (std::size_t i = 0; i < node.out.size(); ++i) {
    node.out[i] = add_value(std::move(types[i]));
    impl_->set_nameable(node.out[i], true);
  }
  impl_->add(std::move(node));
  return impl_->graph->nodes.back().out;
}

Values Builder::call_n(std::string_view op, const Values& in, std::size_t outputs, Args args) {
  Node node;
  node.op = op;
  for (const Value& value : in) node.in.push_back(value.id());
  while (!node.in.empty() && node.in.back() == kAbsent) node.in.pop_back();
  for (Arg& arg : args) node.attrs.push_back(std::move(arg.attribute));
  std::ranges::sort(node.attrs, {}, &Attribute::name);
  node.out.assign(outputs, kAbsent);

  if (!is_repeatable(node)) return wrap(append(std::move(node)));
  const std::vector<Node>& nodes = impl_->graph->nodes;
  const std::uint64_t hash = hash_call(node);
  const std::size_t* same =
      impl_->nodes.find(hash, [&](std::size_t earlier) { return same_call(nodes[earlier], node); });
  if (same != nullptr) return wrap(nodes[*same].out);
  Values results = wrap(append(std::move(node)));
  impl_->nodes.add(hash, nodes.size() - 1);
  return results;
}

Values Builder::call_body(std::string domain, std::string name, const Values& in,
                          std::shared_ptr<Graph> body, bool shares) {
  Node node;
  node.op = std::move(name);
  node.domain = std::move(domain);
  for (const Value& value : in) node.in.push_back(value.id());
  for (ValueId id : body->outputs) {
    node.out.push_back(add_value(model_.values[id].type));
    impl_->set_nameable(node.out.back(), true);
  }
  node.attrs = {{std::string(kBody), std::move(body)},
                {std::string(kShares), std::int64_t{shares}}};
  node.origin = impl_->origin;
  impl_->add(std::move(node));
  return wrap(impl_->graph->nodes.back().out);
}

Values Builder::call_foreign(std::string domain, std::string op, const Values& in,
                             std::vector<TensorType> types, std::vector<Attribute> attrs) {
  if (model_.opset(domain) == 0) model_.opsets.push_back({domain, 1});
  Node node;
  node.op = std::move(op);
  node.domain = std::move(domain);
  for (const Value& value : in) node.in.push_back(value.id());
  for (TensorType& type : types) {
    node.out.push_back(add_value(std::move(type)));
    impl_->set_nameable(node.out.back(), true);
  }
  node.attrs = std::move(attrs);
  node.origin = impl_->origin;
  impl_->graph->nodes.push_back(std::move(node));
  return wrap(impl_->graph->nodes.back().out);
}

Value Builder::call(std::string_view op, const Values& in, Args args) {
  return call_n(op, in, 1, std::move(args))[0];
}

Value Builder::call_given(std::string_view op, std::initializer_list<Given> parts) {
  Values in;
  Args args;
  for (const Given& part : parts) {
    in.insert(in.end(), part.values.begin(), part.values.end());
    if (part.args) args.insert(args.end(), part.args->begin(), part.args->end());
  }
  return call(op, in, std::move(args));
}

Value Builder::call_with_shape(std::string_view op, const Values& in, Args args, Dims shape) {
  const Value value = call(op, in, std::move(args));
  set_shape(value, std::move(shape));
  return value;
}

void Builder::set_shape(const Value& value, Dims shape) {
  std::optional<TensorType>& type = model_.values[value.id()].type;
  if (!type) throw Error("BUG", fmt::format("the dtype of value {} is not known", value.id()));
  const TensorType stated{type->dtype, std::move(shape)};
  if (contradict(*type, stated)) {
    throw Error("BUG", fmt::format("a result of type {} cannot be {}", to_string(*type),
                                   to_string(stated)));
  }
  *type = stated;
}

void Builder::output(const Value& value, std::string name) {
  ValueId id = value.id();
  if (id >= impl_->nameable.size() || !impl_->nameable[id]) {
    Node identity;
    identity.op = "Identity";
    identity.in = {id};
    identity.out = {kAbsent};
    id = append(std::move(identity))[0];
  }
  impl_->set_nameable(id, false);
  model_.values[id].name = std::move(name);
  impl_->graph->outputs.push_back(id);
}

void Builder::set_origin(Origin origin) {
  if (origin == model_.origins[impl_->origin]) return;
  const std::uint64_t hash = hash_text(origin.scope, hash_text(origin.source, origin.location));
  const std::uint32_t* same = impl_->origins.find(
      hash, [&](std::uint32_t earlier) { return model_.origins[earlier] == origin; });
  if (same != nullptr) {
    impl_->origin = *same;
    return;
  }
  impl_->origin = static_cast<std::uint32_t>(model_.origins.size());
  impl_->origins.add(hash, impl_->origin);
  model_.origins.push_back(std::move(origin));
}

}  // namespace jaxport::onnx
