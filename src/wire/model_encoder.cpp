// SPDX-License-Identifier: Apache-2.0
#include "wire/model_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "jaxport/error.h"
#include "onnx/walk.h"
#include "wire/field.h"
#include "wire/wire.h"

namespace jaxport::wire {
namespace {

// Writes fields in the order of their numbers, as protobuf's own writer does.
class ModelWriter {
 public:
  ModelWriter(const onnx::Model& model, const WriteOptions& options, ExternalData* external)
      : model_(model), with_origins_(options.origins), kept_(options.kept), external_(external) {}

  Encoder write() {
    namespace f = field::model;
    out_.add_int(f::ir_version, model_.ir_version);
    const std::string& producer = model_.producer_name;
    out_.add_text(f::producer_name, producer.empty() ? "jaxport" : producer);
    add_nonempty(f::producer_version, model_.producer_version);
    add_nonempty(f::domain, model_.domain);
    if (model_.model_version != 0) out_.add_int(f::model_version, model_.model_version);
    add_nonempty(f::doc_string, model_.doc);
    out_.add_message(f::graph, [&] {
      add_graph(model_.graph);
      if (kept_ != nullptr) out_.add_fields(kept_->graph);
    });
    for (const onnx::OpsetImport& opset : model_.opsets) add_opset(f::opset_import, opset);
    for (const auto& [key, value] : model_.metadata) add_entry(f::metadata_props, key, value);
    for (const onnx::Function& function : model_.functions) {
      out_.add_message(f::functions, [&] { add_function(function); });
    }
    if (kept_ != nullptr) out_.add_fields(kept_->model);
    return std::move(out_);
  }

 private:
  void add_opset(field::Number number, const onnx::OpsetImport& opset) {
    out_.add_message(number, [&] {
      out_.add_text(field::opset::domain, opset.domain);
      out_.add_int(field::opset::version, opset.version);
    });
  }

  // A function imports what the model imports: it may call other functions.
  void add_function(const onnx::Function& function) {
    namespace f = field::function;
    const onnx::Graph& body = function.body;
    out_.add_text(f::name, function.name);
    for (onnx::ValueId id : body.inputs) out_.add_text(f::input, name_of_value(id));
    for (onnx::ValueId id : body.outputs) out_.add_text(f::output, name_of_value(id));
    for (const onnx::Node& node : body.nodes) {
      out_.add_message(f::node, [&] { add_node(node); });
    }
    for (const onnx::OpsetImport& opset : model_.opsets) add_opset(f::opset_import, opset);
    out_.add_text(f::domain, function.domain);
    for (onnx::ValueId id : body.inputs) add_value_info(f::value_info, id);
    for (const onnx::Node& node : body.nodes) {
      for (onnx::ValueId id : node.out) {
        if (id != onnx::kAbsent && model_.values[id].type) add_value_info(f::value_info, id);
      }
    }
  }

  void add_nonempty(field::Number number, const std::string& text) {
    if (!text.empty()) out_.add_text(number, text);
  }

  void add_entry(field::Number number, std::string_view key, std::string_view value) {
    out_.add_message(number, [&] {
      out_.add_text(field::entry::key, key);
      out_.add_text(field::entry::value, value);
    });
  }

  const std::string& name_of_value(onnx::ValueId id) const {
    static const std::string kNone;
    if (id == onnx::kAbsent) return kNone;
    const std::string& name = model_.values[id].name;
    if (name.empty()) throw Error("BUG", fmt::format("value {} has no name when written", id));
    return name;
  }

  void add_graph(const onnx::Graph& graph) {
    namespace f = field::graph;
    for (const onnx::Node& node : graph.nodes) {
      out_.add_message(f::node, [&] { add_node(node); });
    }
    out_.add_text(f::name, graph.name);
    for (const onnx::Initializer& initializer : graph.initializers) {
      out_.add_message(f::initializer, [&] { add_initializer(initializer); });
    }
    const bool is_main = kept_ != nullptr && &graph == &model_.graph;
    add_border(f::input, graph.inputs, is_main ? &kept_->inputs : nullptr);
    add_border(f::output, graph.outputs, is_main ? &kept_->outputs : nullptr);
    const std::unordered_set<onnx::ValueId> outputs(graph.outputs.begin(), graph.outputs.end());
    for (const onnx::Node& node : graph.nodes) {
      for (onnx::ValueId id : node.out) {
        const bool known = id != onnx::kAbsent && model_.values[id].type.has_value();
        if (known && !outputs.contains(id)) add_value_info(f::value_info, id);
      }
    }
  }

  // Inputs or outputs, as they were declared where that is kept.
  void add_border(field::Number number, const std::vector<onnx::ValueId>& ids,
                  const std::vector<std::string>* declared) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (declared != nullptr && i < declared->size()) {
        out_.add_text(number, (*declared)[i]);
      } else {
        add_value_info(number, ids[i]);
      }
    }
  }

  void add_node(const onnx::Node& node) {
    namespace f = field::node;
    for (onnx::ValueId id : node.in) out_.add_text(f::input, name_of_value(id));
    for (onnx::ValueId id : node.out) out_.add_text(f::output, name_of_value(id));
    add_nonempty(f::name, node.name);
    out_.add_text(f::op_type, node.op);
    for (const onnx::Attribute& attribute : node.attrs) {
      out_.add_message(f::attribute,
                       [&] { add_attribute(attribute, kept_graph(node, attribute)); });
    }
    const std::string_view domain = node.domain;
    add_nonempty(f::domain, std::string(domain.substr(domain.starts_with(kForeign) ? 1 : 0)));
    for (const auto& [key, value] : node.metadata) {
      if (key == kKept) {
        out_.add_fields(value);
      } else if (!key.starts_with(kKept)) {
        add_entry(f::metadata_props, key, value);
      }
    }
    if (with_origins_ && node.origin != 0) add_origin(model_.origins[node.origin]);
  }

  void add_origin(const onnx::Origin& origin) {
    constexpr field::Number kProps = field::node::metadata_props;
    if (!origin.source.empty()) add_entry(kProps, "jaxport.source", origin.source);
    if (!origin.scope.empty()) add_entry(kProps, "jaxport.scope", origin.scope);
  }

  // Further fields of the graph that is this attribute.
  static std::string_view kept_graph(const onnx::Node& node, const onnx::Attribute& attribute) {
    for (const auto& [key, value] : node.metadata) {
      if (key.starts_with(kKeptGraph) && key.substr(kKeptGraph.size()) == attribute.name) {
        return value;
      }
    }
    return {};
  }

  void add_attribute(const onnx::Attribute& attribute, std::string_view kept) {
    out_.add_text(field::attribute::name, attribute.name);
    if (const auto* graph = std::get_if<std::shared_ptr<onnx::Graph>>(&attribute.value)) {
      out_.add_message(field::attribute::g, [&] {
        add_graph(**graph);
        out_.add_fields(kept);
      });
      out_.add_int(field::attribute::type, static_cast<std::int64_t>(Type::kGraph));
      return;
    }
    const auto type = std::visit([&](const auto& v) { return add_value(v); }, attribute.value);
    out_.add_int(field::attribute::type, static_cast<std::int64_t>(type));
  }

  using Type = field::AttributeType;
  Type add_value(std::int64_t value) {
    out_.add_int(field::attribute::i, value);
    return Type::kInt;
  }
  Type add_value(float value) {
    out_.add_float(field::attribute::f, value);
    return Type::kFloat;
  }
  Type add_value(const std::string& value) {
    out_.add_text(field::attribute::s, value);
    return Type::kString;
  }
  Type add_value(const Tensor& value) {
    out_.add_message(field::attribute::t, [&] {
      add_tensor_head(value.shape, value.dtype);
      out_.add_tensor_bytes(field::tensor::raw_data, whole(value));
    });
    return Type::kTensor;
  }
  Type add_value(const std::vector<std::int64_t>& values) {
    for (std::int64_t value : values) out_.add_int(field::attribute::ints, value);
    return Type::kInts;
  }
  Type add_value(const std::vector<float>& values) {
    for (float value : values) out_.add_float(field::attribute::floats, value);
    return Type::kFloats;
  }
  Type add_value(const std::vector<std::string>& values) {
    for (const std::string& value : values) out_.add_text(field::attribute::strings, value);
    return Type::kStrings;
  }
  Type add_value(const std::shared_ptr<onnx::Graph>&) { return Type::kGraph; }  // written above

  void add_tensor_head(const Shape& shape, DType dtype) {
    for (std::int64_t size : shape) out_.add_int(field::tensor::dims, size);
    out_.add_int(field::tensor::data_type, onnx_type(dtype));
  }

  void add_initializer(const onnx::Initializer& initializer) {
    namespace f = field::tensor;
    const std::string& name = name_of_value(initializer.value);
    if (element_count(initializer.shape) != initializer.view.size()) {
      throw Error("BUG", fmt::format("initializer '{}' has another size than its data", name));
    }
    add_tensor_head(initializer.shape, initializer.view.base.dtype);
    out_.add_text(f::name, name);
    if (external_ == nullptr || !external_->takes(initializer)) {
      out_.add_tensor_bytes(f::raw_data, initializer.view);
      return;
    }
    const ExternalData::Place place = external_->add(initializer);
    add_entry(f::external_data, "location", external_->location());
    add_entry(f::external_data, "offset", std::to_string(place.offset));
    add_entry(f::external_data, "length", std::to_string(place.bytes));
    out_.add_int(f::data_location, field::kExternal);
  }

  void add_value_info(field::Number number, onnx::ValueId id) {
    namespace f = field::value_info;
    out_.add_message(number, [&] {
      out_.add_text(f::name, name_of_value(id));
      const std::optional<onnx::TensorType>& type = model_.values[id].type;
      if (kept_ != nullptr && kept_->types.contains(id)) {
        out_.add_text(f::type, kept_->types.at(id));
        return;
      }
      if (!type) return;
      out_.add_message(f::type, [&] {
        out_.add_message(field::type::tensor_type, [&] { add_tensor_type(*type); });
      });
    });
  }

  void add_tensor_type(const onnx::TensorType& type) {
    namespace f = field::tensor_type;
    out_.add_int(f::elem_type, onnx_type(type.dtype));
    if (!type.shape) return;
    out_.add_message(f::shape, [&] {
      for (const Dim& dim : *type.shape) {
        out_.add_message(field::shape::dim, [&] { add_dim(dim); });
      }
    });
  }

  void add_dim(const Dim& dim) {
    if (dim.is_static()) {
      out_.add_int(field::dimension::dim_value, dim.value());
    } else if (std::string text = dim.str(); !text.starts_with(kUnknownDim)) {
      out_.add_text(field::dimension::dim_param, text);
    }
  }

  static int onnx_type(DType dtype) {
    const int number = onnx_number(dtype);
    if (number == 0) throw Error("BUG", fmt::format("{} is no type of ONNX", name_of(dtype)));
    return number;
  }

  const onnx::Model& model_;
  bool with_origins_;
  const Kept* kept_;
  ExternalData* external_;
  Encoder out_;
};

}  // namespace

namespace {

std::size_t levels_of(const onnx::Graph& graph) {
  std::size_t inside = 0;
  for (const onnx::Node& node : graph.nodes) {
    onnx::for_each_subgraph(
        node, [&](const onnx::Graph& body) { inside = std::max(inside, levels_of(body)); });
  }
  return 1 + inside;
}

void require_readable_depth(const onnx::Model& model) {
  std::size_t levels = levels_of(model.graph);
  for (const onnx::Function& function : model.functions) {
    levels = std::max(levels, levels_of(function.body));
  }
  if (levels <= field::kDeepest) return;
  throw Error("E050",
              fmt::format("the model has {} graphs inside each other, more than the {} that "
                          "readers of protobuf follow",
                          levels, field::kDeepest))
      .help(
          "nest conditions and loops less deeply; a function that is marked with "
          "jaxport.onnx_function begins anew");
}

}  // namespace

Encoder encode(const onnx::Model& model, const WriteOptions& options, ExternalData* external) {
  require_readable_depth(model);
  return ModelWriter(model, options, external).write();
}

}  // namespace jaxport::wire
