// SPDX-License-Identifier: Apache-2.0
#include "wire/graph_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "wire/attribute_slot.h"
#include "wire/kept.h"

namespace jaxport::wire {
namespace {

// Weights above 1 MiB stay in the file even if they are not aligned there.
constexpr std::size_t kLargestCopy = std::size_t{1} << 20, kAnySize = SIZE_MAX;
constexpr const char* kInvalidGraph = "run 'jaxport check' for a list of all problems of the graph";

std::string read_graph_name(Decoder message) {
  std::string name;
  while (message.next()) {
    if (message.field() == field::graph::name) {
      name = message.text();
    } else {
      message.skip();
    }
  }
  return name;
}

void sort_attributes(onnx::Node& node, const Decoder& message) {
  std::ranges::stable_sort(node.attrs, {}, &onnx::Attribute::name);
  const auto twice = std::ranges::adjacent_find(node.attrs, {}, &onnx::Attribute::name);
  if (twice != node.attrs.end()) {
    message.fail(fmt::format("attribute '{}' is given twice", twice->name));
  }
}

}  // namespace

onnx::Graph GraphReader::read(const Decoder& message) {
  std::string kept;
  onnx::Graph graph = read_graph(message, nullptr, 0, kept);
  if (options_.kept == nullptr) return graph;
  options_.kept->graph = std::move(kept);
  for_each_field(message, field::graph::input, "input",
                 [this](Decoder input) { options_.kept->inputs.push_back(input.rest()); });
  for_each_field(message, field::graph::output, "output",
                 [this](Decoder output) { options_.kept->outputs.push_back(output.rest()); });
  return graph;
}

// Nodes come first in a file, but use names that inputs and initializers define.
onnx::Graph GraphReader::read_graph(const Decoder& message, const Names* outer, std::size_t depth,
                                    std::string& kept) {
  namespace f = field::graph;
  if (depth >= field::kDeepest) message.fail("graphs are nested too deeply");
  onnx::Graph graph;
  graph.name = read_graph_name(message);
  Names names(model_, outer);
  if (options_.kept != nullptr) {
    kept = unknown_fields_of_graph(message);
  } else {
    for_each_field(message, f::sparse_initializer, "sparse_initializer", [](const Decoder& tensor) {
      tensor.fail("sparse initializers are not supported", "store them as dense tensors");
    });
  }
  for_each_field(message, f::value_info, "value_info", [&](const Decoder& info) {
    auto [name, type] = read_value_info(info);
    if (type) names.declare(name, *std::move(type));
  });
  for_each_field(message, f::input, "input",
                 [&](const Decoder& input) { graph.inputs.push_back(read_input(input, names)); });
  read_initializers(message, graph, names);
  if (options_.kept != nullptr) keep_initializers(message, graph, names, kept);
  for_each_field(message, f::node, "node", [&](const Decoder& node) {
    graph.nodes.push_back(read_node(node, names, depth));
  });
  for_each_field(message, f::output, "output", [&](const Decoder& output) {
    graph.outputs.push_back(read_output(output, names));
  });
  return graph;
}

onnx::Function GraphReader::read_function(const Decoder& message) {
  namespace f = field::function;
  onnx::Function function;
  Names names(model_, nullptr);
  for_each_field(message, f::value_info, "value_info", [&](const Decoder& info) {
    auto [name, type] = read_value_info(info);
    if (type) names.declare(name, *std::move(type));
  });
  std::vector<std::string_view> outputs;
  for (Decoder fields = message; fields.next();) {
    switch (fields.field()) {
      case f::name:
        function.name = fields.text();
        break;
      case f::domain:
        function.domain = fields.text();
        break;
      case f::input:
        function.body.inputs.push_back(define(fields.bytes(), names, fields));
        break;
      case f::output:
        outputs.push_back(fields.bytes());
        break;
      case f::attribute:
      case f::attribute_proto:
        if (options_.function_attributes) {
          fields.skip();
          break;
        }
        fields.fail("attributes of local functions are not supported",
                    "inline them with onnx.inliner.inline_local_functions");
      default:
        fields.skip();
    }
  }
  if (function.name.empty()) message.fail("a function has no name");
  for_each_field(message, f::node, "node", [&](const Decoder& node) {
    function.body.nodes.push_back(read_node(node, names, 0));
  });
  for (std::string_view name : outputs) {
    function.body.outputs.push_back(use(name, names, message));
  }
  return function;
}

void GraphReader::keep_function(const Decoder& message) const {
  std::pair<std::string, std::string> name;
  for (Decoder fields = message; fields.next();) {
    if (fields.field() == field::function::domain) {
      name.first = fields.text();
    } else if (fields.field() == field::function::name) {
      name.second = fields.text();
    } else {
      fields.skip();
    }
  }
  options_.kept->functions.push_back(std::move(name));
}

// They become Constants of a form that nobody looks into, so that each value has a definition; the
// default of an input stays where it is.
void GraphReader::keep_initializers(const Decoder& message, onnx::Graph& graph, Names& names,
                                    std::string& kept) const {
  const auto keep = [&](Decoder item, field::Number number, const KeptTensor& tensor) {
    if (tensor.name.empty()) item.fail("an initializer has no name");
    const auto [id, was_defined] = names.define(tensor.name);
    if (was_defined) {
      kept += as_field(number, item.rest());
      return;
    }
    onnx::Node constant;
    constant.op = "Constant";
    constant.domain = kForeign;
    constant.out = {id};
    constant.metadata = {{std::string(kKept), tensor.attribute}};
    graph.nodes.push_back(std::move(constant));
  };
  namespace f = field::graph;
  for_each_field(message, f::initializer, "initializer", [&](const Decoder& item) {
    if (!is_held_tensor(item)) keep(item, f::initializer, kept_tensor(item));
  });
  for_each_field(message, f::sparse_initializer, "sparse_initializer", [&](const Decoder& item) {
    keep(item, f::sparse_initializer, kept_sparse_tensor(item));
  });
}

// Sequences, optionals and the like.
void GraphReader::keep_type(const Decoder& info, onnx::ValueId id, bool is_held) const {
  if (options_.kept == nullptr || is_held) return;
  for_each_field(info, field::value_info::type, "type",
                 [&](Decoder type) { options_.kept->types[id] = type.rest(); });
}

onnx::ValueId GraphReader::define(std::string_view name, Names& names,
                                  const Decoder& message) const {
  if (name.empty()) message.fail("a value has no name");
  const auto [id, was_defined] = names.define(name);
  if (was_defined && options_.check_names) {
    message.fail(fmt::format("value '{}' is defined twice", name), kInvalidGraph);
  }
  return id;
}

onnx::ValueId GraphReader::use(std::string_view name, Names& names, const Decoder& message) const {
  const auto [id, was_defined] = names.use(name);
  if (!was_defined && options_.check_names) {
    message.fail(fmt::format("value '{}' is used but not defined before", name), kInvalidGraph);
  }
  return id;
}

GraphReader::NamedType GraphReader::read_value_info(Decoder message) {
  NamedType info;
  while (message.next()) {
    switch (message.field()) {
      case field::value_info::name:
        info.first = message.bytes();
        break;
      case field::value_info::type:
        info.second = types_.read(message.message("type"));
        break;
      default:
        message.skip();
    }
  }
  return info;
}

onnx::ValueId GraphReader::read_input(const Decoder& message, Names& names) {
  auto [name, type] = read_value_info(message);
  const onnx::ValueId id = define(name, names, message);
  keep_type(message, id, type.has_value());
  if (type) model_.values[id].type = std::move(type);
  return id;
}

onnx::ValueId GraphReader::read_output(const Decoder& message, Names& names) {
  auto [name, type] = read_value_info(message);
  if (name.empty()) message.fail("an output has no name");
  const onnx::ValueId id = use(name, names, message);
  keep_type(message, id, type.has_value());
  if (type) model_.values[id].type = std::move(type);
  return id;
}

void GraphReader::read_initializers(const Decoder& message, onnx::Graph& graph, Names& names) {
  std::unordered_set<std::string_view> seen;
  for_each_field(message, field::graph::initializer, "initializer", [&](const Decoder& item) {
    if (options_.kept != nullptr && !is_held_tensor(item)) return;
    auto [name, tensor] = tensors_.read(item, kLargestCopy);
    if (name.empty()) item.fail("an initializer has no name");
    if (!seen.insert(name).second && options_.check_names) {
      item.fail(fmt::format("initializer '{}' is defined twice", name), kInvalidGraph);
    }
    // An initializer may repeat the name of an input: it is the input's default then.
    const onnx::ValueId id = names.define(name).id;
    Shape shape = tensor.shape;
    if (std::optional<onnx::TensorType>& type = model_.values[id].type; !type) {
      type = {tensor.dtype, Dims(shape.begin(), shape.end())};
    }
    graph.initializers.push_back({id, whole(std::move(tensor)), std::move(shape)});
  });
}

void GraphReader::add_attribute(Decoder& message, const Names& names, std::size_t depth,
                                NodeDraft& draft) {
  onnx::Node& node = draft.node;
  if (options_.kept != nullptr && !is_held_attribute(message)) {
    draft.fields += message.raw();
    draft.is_foreign = true;
    return;
  }
  const auto index = static_cast<std::int64_t>(node.attrs.size());
  std::string kept;
  node.attrs.push_back(read_attribute(message.message("attribute", index), names, depth, kept));
  if (kept.empty()) return;
  node.metadata.emplace_back(std::string(kKeptGraph) + node.attrs.back().name, kept);
}

void GraphReader::add_metadata(Decoder& message, onnx::Node& node) const {
  node.metadata.emplace_back(read_entry(message.message("metadata_props")));
  if (options_.kept != nullptr && node.metadata.back().first.starts_with(kKept)) {
    message.fail(fmt::format("a key of metadata starts with '{}'", kKept));
  }
}

onnx::Node GraphReader::read_node(Decoder message, Names& names, std::size_t depth) {
  namespace f = field::node;
  NodeDraft draft;
  auto& [node, outputs, fields, is_foreign] = draft;
  const auto value_or_absent = [&](std::string_view name, auto find) {
    return name.empty() ? onnx::kAbsent : (this->*find)(name, names, message);
  };
  while (message.next()) {
    switch (message.field()) {
      case f::input:
        node.in.push_back(value_or_absent(message.bytes(), &GraphReader::use));
        break;
      case f::output:
        outputs.push_back(message.bytes());
        break;
      case f::name:
        node.name = message.text();
        break;
      case f::op_type:
        node.op = message.text();
        break;
      case f::attribute:
        add_attribute(message, names, depth, draft);
        break;
      case f::domain:
        node.domain = message.text();
        break;
      case f::metadata_props:
        add_metadata(message, node);
        break;
      default:
        is_foreign |= message.field() == f::overload;
        fields += message.raw();
    }
  }
  if (node.op.empty()) message.fail("a node has no op_type");
  if (node.domain == "ai.onnx") node.domain.clear();
  if (options_.kept != nullptr && !fields.empty()) {
    node.metadata.emplace_back(kKept, std::move(fields));
    if (is_foreign) node.domain.insert(node.domain.begin(), kForeign);
  }
  sort_attributes(node, message);
  // Last, because no subgraph of the node may use its results.
  for (std::string_view name : outputs) {
    node.out.push_back(value_or_absent(name, &GraphReader::define));
  }
  return std::move(draft.node);
}

onnx::Attribute GraphReader::read_attribute(Decoder message, const Names& names, std::size_t depth,
                                            std::string& kept) {
  namespace f = field::attribute;
  AttributeSlot slot;
  std::string reference;  // to an attribute of the function around the node
  while (message.next()) {
    switch (message.field()) {
      case f::name:
        slot.name = message.text();
        break;
      case f::type:
        slot.type = message.integer();
        break;
      case f::f:
        slot.as<float>(message) = message.real();
        break;
      case f::i:
        slot.as<std::int64_t>(message) = message.integer();
        break;
      case f::s:
        slot.as<std::string>(message) = message.text();
        break;
      case f::t:
        slot.as<Tensor>(message) = tensors_.read(message.message("t"), kAnySize).tensor;
        break;
      case f::g:
        slot.as<std::shared_ptr<onnx::Graph>>(message) = std::make_shared<onnx::Graph>(
            read_graph(message.message("g"), &names, depth + 1, kept));
        break;
      case f::floats:
        message.append_to(slot.as<std::vector<float>>(message));
        break;
      case f::ints:
        message.append_to(slot.as<std::vector<std::int64_t>>(message));
        break;
      case f::strings:
        slot.as<std::vector<std::string>>(message).push_back(message.text());
        break;
      case f::ref_attr_name:
        if (!options_.function_attributes) {
          message.fail("attributes of local functions are not supported");
        }
        reference = message.text();
        break;
      default:
        message.skip();
    }
  }
  if (!reference.empty()) return {std::move(slot.name), "@" + reference};
  return std::move(slot).finish(message);
}

}  // namespace jaxport::wire
