// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "onnx/ir.h"
#include "onnx/schema.h"

namespace jaxport::onnx {

class Builder;

// A value of the model under construction. Cheap to copy; valid as long as its Builder.
class Value {
 public:
  Value() = default;  // an absent optional input
  Value(Builder* builder, ValueId id) : builder_(builder), id_(id) {}
  ValueId id() const { return id_; }
  Builder& builder() const { return *builder_; }  // whose graph arithmetic on it adds to (expr.h)
  explicit operator bool() const { return id_ != kAbsent; }
  DType dtype() const;
  const Dims& shape() const;  // JXP-BUG when unknown: everything that lowering builds has a shape
  std::size_t rank() const { return shape().size(); }
  bool is_scalar() const { return shape().empty(); }
  friend bool operator==(const Value& a, const Value& b) { return a.id_ == b.id_; }

 private:
  Builder* builder_ = nullptr;
  ValueId id_ = kAbsent;
};
using Values = std::vector<Value>;

// An attribute as written at a call: {"axis", -1}, {"perm", {0, 2, 1}}, {"approximate", "tanh"}.
struct Arg {
  Attribute attribute;
  Arg(std::string_view name, std::int64_t v);
  Arg(std::string_view name, int v);
  Arg(std::string_view name, double v);
  Arg(std::string_view name, const char* v);
  Arg(std::string_view name, std::string v);
  Arg(std::string_view name, std::vector<std::int64_t> v);
  Arg(std::string_view name, std::initializer_list<std::int64_t> v);
  Arg(std::string_view name, std::vector<std::string> v);
  Arg(std::string_view name, Tensor v);
  Arg(std::string_view name, std::shared_ptr<Graph> v);
  Arg(std::string_view name, DType v);  // the number of TensorProto.DataType, for Cast's "to"
};
using Args = std::vector<Arg>;

// What a call is given: an operand, several operands, or attributes. A view, for the time of the
// call: op.Gemm(a, b, c, Args{{"transB", 1}}), op.Concat(values, Args{{"axis", 0}}).
struct Given {
  std::span<const Value> values;
  const Args* args = nullptr;
  Given(const Value& v) : values(&v, 1) {}  // NOLINT: written as a plain operand
  Given(const Values& v) : values(v) {}     // NOLINT
  Given(const Args& a) : args(&a) {}        // NOLINT
};

// Appends nodes to a graph. Each call checks the node against the schema of the opset, infers dtype
// and shape of the results, copies the current origin, and returns an existing node's results when
// op, inputs and attributes are the same (random ops and ops with subgraphs excepted).
class Builder {
 public:
  // The main graph; sets opset import and IR version.
  Builder(Model& model, int opset, DTypeRule dtypes = DTypeRule::kSchema);
  Builder(Builder& outer, Graph& graph);  // a subgraph that may use the values of `outer`
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  bool is_inside(const Builder& other) const;  // true of the same graph, too
  int opset() const { return opset_; }
  Model& model() { return model_; }
  const ValueInfo& info(ValueId id) const { return model_.values[id]; }

  // --- values without a node
  Value input(std::string name, TensorType type);
  Value constant(Tensor tensor,
                 std::string name = "");  // equal bytes share one initializer when small
  // A view that is streamed at the end. It belongs to the main graph; the same view is one weight.
  Value weight(StridedView view, jaxport::Shape shape, std::string name);
  Value ints(std::vector<std::int64_t> values);  // i64[n]
  Value scalar(double value, DType dtype);       // rank 0
  // The content of a small constant (at most 64 elements), when the value is one.
  const Tensor* known(ValueId id) const;
  const Tensor* known(const Value& value) const { return known(value.id()); }

  // --- nodes. JXP-BUG when the op is unknown or newer than the opset, or a node does not fit it.
  Value call(std::string_view op, const Values& in, Args args = {});
  Values call_n(std::string_view op, const Values& in, std::size_t outputs, Args args = {});
  // A call that is to become a function; its results have the types of the body's outputs.
  Values call_body(std::string domain, std::string name, const Values& in,
                   std::shared_ptr<Graph> body, bool shares);
  // A node of another domain, which is imported in version 1; the types of its results are given.
  Values call_foreign(std::string domain, std::string op, const Values& in,
                      std::vector<TensorType> types, std::vector<Attribute> attrs);
  // For results whose shape the caller knows and inference does not: a Reshape or Expand to a shape
  // that is computed at run time, the collected results of a Loop.
  Value call_with_shape(std::string_view op, const Values& in, Args args, Dims shape);
  void set_shape(const Value& value, Dims shape);  // JXP-BUG when it contradicts what is inferred
  // One method for each op of ai.onnx with a single result: op.Clip(x, lo, hi).
#define JAXPORT_OP(NAME)                  \
  template <class... Parts>               \
  Value NAME(const Parts&... parts) {     \
    return call_given(#NAME, {parts...}); \
  }
#include "onnx/op_names.inc"
#undef JAXPORT_OP

  void output(const Value& value, std::string name);  // Identity is added when the value is an
                                                      // input, a constant or already an output
  // Nodes built from now on come from here.
  void set_origin(Origin origin);

 private:
  Value call_given(std::string_view op, std::initializer_list<Given> parts);
  const std::vector<ValueId>& append(Node node);  // checks, infers; fills node.out with new values
  Value add_initializer(StridedView view, jaxport::Shape shape, std::string name);
  ValueId add_value(std::optional<TensorType> type, std::string name = "");
  Value wrap(ValueId id) { return {this, id}; }
  Values wrap(const std::vector<ValueId>& ids);

  Model& model_;
  int opset_;
  DTypeRule dtypes_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Shape and dtype of a node's results from its inputs; nullopt where the op is not known to us, a
// type without a shape where the shape depends on data. `model` holds the values of subgraphs.
// JXP-BUG when the inputs' shapes do not fit each other.
struct InferenceInput {
  const TensorType* type = nullptr;  // nullptr: absent or unknown
  const Tensor* known = nullptr;     // the content of a constant (for Reshape, Slice, Expand, …)
};
std::vector<std::optional<TensorType>> infer(const Model& model, const Schema& schema,
                                             const Node& node,
                                             const std::vector<InferenceInput>& in,
                                             DTypeRule dtypes = DTypeRule::kSchema);

}  // namespace jaxport::onnx
