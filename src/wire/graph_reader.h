// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "onnx/ir.h"
#include "wire/decoder.h"
#include "wire/names.h"
#include "wire/tensor_reader.h"
#include "wire/type_reader.h"
#include "wire/wire.h"

namespace jaxport::wire {

// Visits the fields with one number, in order, whatever stands between them.
template <class Visit>
void for_each_field(Decoder message, field::Number number, std::string_view name, Visit visit) {
  std::int64_t index = 0;
  while (message.next()) {
    if (message.field() == number) {
      visit(message.message(name, index++));
    } else {
      message.skip();
    }
  }
}

// Reads GraphProtos into the values of one model.
class GraphReader {
 public:
  GraphReader(onnx::Model& model, TensorReader tensors, const ReadOptions& options)
      : model_(model), types_(*model.dims), tensors_(std::move(tensors)), options_(options) {}

  onnx::Graph read(const Decoder& message);
  // A function that is kept as it is; only its name is looked at.
  void keep_function(const Decoder& message) const;
  onnx::Function read_function(const Decoder& message);
  bool has_external_data() const { return tensors_.has_external_data(); }

 private:
  using NamedType = std::pair<std::string_view, std::optional<onnx::TensorType>>;

  // `kept` takes the fields that onnx::Graph does not have.
  onnx::Graph read_graph(const Decoder& message, const Names* outer, std::size_t depth,
                         std::string& kept);
  // Initializers that onnx::Model cannot hold.
  void keep_initializers(const Decoder& message, onnx::Graph& graph, Names& names,
                         std::string& kept) const;
  void keep_type(const Decoder& info, onnx::ValueId id, bool is_held) const;
  NamedType read_value_info(Decoder message);
  onnx::ValueId read_input(const Decoder& message, Names& names);
  onnx::ValueId read_output(const Decoder& message, Names& names);
  void read_initializers(const Decoder& message, onnx::Graph& graph, Names& names);
  struct NodeDraft {
    onnx::Node node;
    std::vector<std::string_view> outputs;
    std::string fields;  // that onnx::Node does not have
    bool is_foreign = false;
  };
  onnx::Node read_node(Decoder message, Names& names, std::size_t depth);
  void add_attribute(Decoder& message, const Names& names, std::size_t depth, NodeDraft& draft);
  void add_metadata(Decoder& message, onnx::Node& node) const;
  onnx::Attribute read_attribute(Decoder message, const Names& names, std::size_t depth,
                                 std::string& kept);

  onnx::ValueId define(std::string_view name, Names& names, const Decoder& message) const;
  onnx::ValueId use(std::string_view name, Names& names, const Decoder& message) const;

  onnx::Model& model_;
  TypeReader types_;
  TensorReader tensors_;
  const ReadOptions& options_;
};

}  // namespace jaxport::wire
