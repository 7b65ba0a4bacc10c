// SPDX-License-Identifier: Apache-2.0
// Shape inference: one rule for each op, in families. A rule reads inputs and attributes and sets
// the shapes it can tell; dtypes come from the schema unless a rule sets them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/builder.h"

namespace jaxport::onnx {

// One node as a rule sees it.
class Inference {
 public:
  Inference(const Model& model, const Schema& schema, const Node& node,
            const std::vector<InferenceInput>& in, DTypeRule dtypes);

  int since() const { return schema_.since; }  // the opset of the schema in force

  // --- inputs
  std::size_t input_count() const { return in_.size(); }
  bool has(std::size_t i) const { return i < in_.size() && node_.in[i] != kAbsent; }
  const Dims* shape(std::size_t i) const;  // nullptr: absent, or the rank is unknown
  std::optional<DType> dtype(std::size_t i) const;
  const Tensor* known(std::size_t i) const;           // the content of a constant input
  std::optional<Ints> ints(std::size_t i) const;      // the same, of integers
  std::optional<double> number(std::size_t i) const;  // the same, of one element
  const TensorType* type_of(ValueId id) const;  // any value of the model, such as a subgraph's

  // --- attributes
  std::int64_t attr(std::string_view name, std::int64_t otherwise) const;
  std::string_view attr(std::string_view name, std::string_view otherwise) const;
  std::optional<Ints> attr_ints(std::string_view name) const;
  const Tensor* attr_tensor(std::string_view name) const;
  const Graph* attr_graph(std::string_view name) const;
  // The attribute `name` as an axis of a tensor of `rank` dimensions.
  std::size_t axis(std::string_view name, std::int64_t otherwise, std::size_t rank) const;
  // `axis` counted from the front; JXP-BUG when it is out of range.
  std::size_t from_front(std::int64_t axis, std::size_t rank) const;

  // --- results
  std::size_t output_count() const { return node_.out.size(); }
  void set(std::size_t i, Dims shape);
  void set_dtype(std::size_t i, DType dtype);
  void set_type(std::size_t i, const TensorType& type);
  std::vector<std::optional<TensorType>> take() &&;

  [[noreturn]] void fail(std::string_view why) const;  // JXP-BUG with the op and its input types

 private:
  const Model& model_;
  const Schema& schema_;
  const Node& node_;
  const std::vector<InferenceInput>& in_;
  std::vector<std::optional<DType>> dtypes_;
  std::vector<std::optional<Dims>> shapes_;
};

struct InferenceRule {
  std::string_view op;
  void (*run)(Inference&);
};

// The families; each is sorted by op.
std::span<const InferenceRule> elementwise_rules();
std::span<const InferenceRule> view_rules();
std::span<const InferenceRule> generator_rules();
std::span<const InferenceRule> index_rules();
std::span<const InferenceRule> reduce_rules();
std::span<const InferenceRule> linear_rules();
std::span<const InferenceRule> window_rules();
std::span<const InferenceRule> control_rules();

// Result 0 (and 1, 2, … where an op has more of the kind) has the shape of input 0.
void same_as_input(Inference& n);
// The size of two dims that must agree, as far as it can be told; BUG when they cannot agree.
Dim agreed(const Inference& n, const Dim& a, const Dim& b);
// numpy broadcasting; a size that cannot be told apart from 1 counts as equal to the other one.
Dims broadcast(const Inference& n, const Dims& a, const Dims& b);

}  // namespace jaxport::onnx
