// SPDX-License-Identifier: Apache-2.0
// ONNX's text syntax, as onnx.parser reads it. Types of results and what is left out are comments.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "onnx/ir.h"
#include "onnx/walk.h"

namespace jaxport::onnx {
namespace {

constexpr std::int64_t kLongestInline = 32;  // elements

// The syntax's names for element types; empty: it has none.
std::string_view type_name(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kI4:
      return "int4";
    case DType::kI8:
      return "int8";
    case DType::kI16:
      return "int16";
    case DType::kI32:
      return "int32";
    case DType::kI64:
      return "int64";
    case DType::kU4:
      return "uint4";
    case DType::kU8:
      return "uint8";
    case DType::kU16:
      return "uint16";
    case DType::kU32:
      return "uint32";
    case DType::kU64:
      return "uint64";
    case DType::kF8E4M3FN:
      return "float8e4m3fn";
    case DType::kF8E4M3FNUZ:
      return "float8e4m3fnuz";
    case DType::kF8E5M2:
      return "float8e5m2";
    case DType::kF8E5M2FNUZ:
      return "float8e5m2fnuz";
    case DType::kF8E8M0FNU:
      return "float8e8m0";
    case DType::kF4E2M1FN:
      return "float4e2m1";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF16:
      return "float16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kC64:
      return "complex64";
    case DType::kC128:
      return "complex128";
    case DType::kString:
      return "string";
    case DType::kKey:
      break;
  }
  return "";
}

bool is_identifier(std::string_view text) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::ranges::all_of(text, is_word);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
  return out;
}

std::string identifier(std::string_view text) {
  return is_identifier(text) ? std::string(text) : quoted(text);
}

// A float attribute needs a point or an exponent, or it would read as an integer.
std::string float_text(float value) {
  std::string text = fmt::to_string(value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string type_text(const TensorType& type) {
  if (!type.shape) return fmt::format("{}[]", type_name(type.dtype));
  if (type.shape->empty()) return std::string(type_name(type.dtype));
  std::vector<std::string> sizes;
  for (const Dim& dim : *type.shape) {
    sizes.push_back(dim.is_static() ? fmt::to_string(dim.value()) : identifier(dim.str()));
  }
  return fmt::format("{}[{}]", type_name(type.dtype), fmt::join(sizes, ","));
}

// The syntax spells floats that C++ has no type for by their bits. 4-bit elements, which it packs,
// and strings are not printed.
bool is_printable(DType dtype) { return bit_width(dtype) >= 8 && dtype != DType::kString; }

std::string literal_text(const Tensor& tensor, std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  switch (tensor.dtype) {
    case DType::kF32:
      return fmt::to_string(tensor.as<float>()[at]);
    case DType::kF64:
      return fmt::to_string(tensor.as<double>()[at]);
    case DType::kC64:
      return fmt::format("{}, {}", tensor.as<float>()[2 * at], tensor.as<float>()[2 * at + 1]);
    case DType::kC128:
      return fmt::format("{}, {}", tensor.as<double>()[2 * at], tensor.as<double>()[2 * at + 1]);
    case DType::kU64:
      return fmt::to_string(tensor.as<std::uint64_t>()[at]);
    default:
      break;
  }
  if (!is_float(tensor.dtype)) return fmt::to_string(tensor.int_at(index));
  return byte_width(tensor.dtype) == 2 ? fmt::to_string(tensor.as<std::uint16_t>()[at])
                                       : fmt::to_string(tensor.as<std::uint8_t>()[at]);
}

std::string elements_text(const Tensor& tensor) {
  std::vector<std::string> elements;
  for (std::int64_t i = 0; i < tensor.size(); ++i) elements.push_back(literal_text(tensor, i));
  return fmt::format("{{{}}}", fmt::join(elements, ", "));
}

class Printer {
 public:
  explicit Printer(const Model& model) : model_(model) {}

  std::string run() {
    header();
    graph(model_.graph, 0);
    line("");
    for (const Function& function : model_.functions) this->function(function);
    return std::move(out_);
  }

 private:
  template <class... T>
  void add(fmt::format_string<T...> format, T&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<T>(args)...);
  }
  void line(std::string_view text) { add("{}\n", text); }

  void header() {
    std::vector<std::string> fields{fmt::format("ir_version: {}", model_.ir_version)};
    std::vector<std::string> imports, metadata;
    for (const OpsetImport& opset : model_.opsets) {
      imports.push_back(fmt::format("{} : {}", quoted(opset.domain), opset.version));
    }
    fields.push_back(fmt::format("opset_import: [{}]", fmt::join(imports, ", ")));
    const auto text_field = [&](std::string_view name, const std::string& text) {
      if (!text.empty()) fields.push_back(fmt::format("{}: {}", name, quoted(text)));
    };
    text_field("producer_name", model_.producer_name);
    text_field("producer_version", model_.producer_version);
    text_field("domain", model_.domain);
    if (model_.model_version != 0) {
      fields.push_back(fmt::format("model_version: {}", model_.model_version));
    }
    text_field("doc_string", model_.doc);
    for (const auto& [key, value] : model_.metadata) {
      metadata.push_back(fmt::format("{}: {}", quoted(key), quoted(value)));
    }
    if (!metadata.empty()) {
      fields.push_back(fmt::format("metadata_props: [{}]", fmt::join(metadata, ", ")));
    }
    add("<\n  {}\n>\n", fmt::join(fields, ",\n  "));
  }

  // The graph without a line break at its end; nested ones stand inside an attribute list.
  void graph(const Graph& graph, int depth) {
    add("{} ({}) => ({})\n", graph_name(graph, depth), typed(graph.inputs), typed(graph.outputs));
    if (!graph.initializers.empty()) initializers(graph, depth);
    const std::string indent(2 * static_cast<std::size_t>(depth), ' ');
    add("{}{{\n", indent);
    for (const Node& node : graph.nodes) this->node(node, depth + 1);
    add("{}}}", indent);
  }

  // Inputs and outputs have no types in the syntax: a comment states them.
  void function(const Function& function) {
    std::vector<std::string> imports;
    for (const OpsetImport& opset : model_.opsets) {
      imports.push_back(fmt::format("{} : {}", quoted(opset.domain), opset.version));
    }
    add("<\n  domain: {},\n  opset_import: [{}]\n>\n", quoted(function.domain),
        fmt::join(imports, ", "));
    add("{} ({}) => ({})  # ({}) => ({})\n{{\n", identifier(function.name),
        names(function.body.inputs), names(function.body.outputs), types(function.body.inputs),
        types(function.body.outputs));
    for (const Node& node : function.body.nodes) this->node(node, 1);
    line("}");
  }

  // The syntax allows quotes for the main graph only.
  static std::string graph_name(const Graph& graph, int depth) {
    if (depth == 0) return identifier(graph.name.empty() ? "graph" : graph.name);
    std::string name = "g_" + graph.name;
    std::ranges::replace_if(
        name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return name;
  }

  std::string typed(const std::vector<ValueId>& ids) const {
    std::vector<std::string> parts;
    for (ValueId id : ids) {
      const ValueInfo& info = model_.values[id];
      // Without a type the name must be quoted, as it could be read as one.
      parts.push_back(info.type ? fmt::format("{} {}", type_text(*info.type), name(id))
                                : quoted(info.name));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  void initializers(const Graph& graph, int depth) {
    const std::string indent(2 * static_cast<std::size_t>(depth), ' ');
    add("{}<\n", indent);
    for (const Initializer& constant : graph.initializers) {
      const bool is_last = &constant == &graph.initializers.back();
      const DType dtype = constant.view.base.dtype;
      add("{}  {} {}", indent, type_text({dtype, to_dims(constant.shape)}), name(constant.value));
      if (is_printable(dtype) && constant.view.size() <= kLongestInline) {
        add(" = {}{}\n", elements_text(materialise(constant.view)), is_last ? "" : ",");
      } else {
        const std::int64_t bits = constant.view.size() * bit_width(dtype);
        add("{}  # left out: {} bytes\n", is_last ? "" : ",", (bits + 7) / 8);
      }
    }
    add("{}>\n", indent);
  }

  void node(const Node& node, int depth) {
    out_.append(2 * static_cast<std::size_t>(depth), ' ');
    // A value is named after its node where the user chose no name.
    const bool is_plain =
        !node.out.empty() && node.out[0] != kAbsent && model_.values[node.out[0]].name == node.name;
    if (!is_plain && !node.name.empty()) add("[{}] ", identifier(node.name));
    add("{} = ", names(node.out));
    if (!node.domain.empty()) add("{}.", node.domain);
    add("{} ", node.op);
    bool has_graph = false;
    for_each_subgraph(node, [&](const Graph&) { has_graph = true; });
    // Subgraphs are long: they stand after the operands.
    if (!has_graph && !node.attrs.empty()) attributes(node, depth);
    add("{}({})", !has_graph && !node.attrs.empty() ? " " : "", names(node.in));
    if (has_graph) {
      out_.push_back(' ');
      attributes(node, depth);
    }
    line("  # " + types(node.out));
  }

  std::string types(const std::vector<ValueId>& ids) const {
    std::vector<std::string> parts;
    for (ValueId id : ids) {
      const bool is_known = id != kAbsent && model_.values[id].type.has_value();
      parts.push_back(is_known ? type_text(*model_.values[id].type) : "?");
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  void attributes(const Node& node, int depth) {
    out_.push_back('<');
    for (const Attribute& attr : node.attrs) {
      if (&attr != &node.attrs.front()) add(", ");
      add("{}", attr.name);
      std::visit([&](const auto& value) { attribute_value(value, depth); }, attr.value);
    }
    out_.push_back('>');
  }

  void attribute_value(std::int64_t value, int) { add(" = {}", value); }
  void attribute_value(float value, int) { add(" = {}", float_text(value)); }
  void attribute_value(const std::string& value, int) { add(" = {}", quoted(value)); }
  void attribute_value(const Tensor& value, int) {
    add(" = {} {}", type_text({value.dtype, to_dims(value.shape)}), elements_text(value));
  }
  // An empty list has no type of its own, so lists state it.
  void attribute_value(const std::vector<std::int64_t>& values, int) {
    add(": ints = [{}]", fmt::join(values, ", "));
  }
  void attribute_value(const std::vector<float>& values, int) {
    add(": floats = [{}]", fmt::join(values, ", "));
  }
  void attribute_value(const std::vector<std::string>& values, int) {
    std::vector<std::string> parts;
    parts.reserve(values.size());
    for (const std::string& value : values) parts.push_back(quoted(value));
    add(": strings = [{}]", fmt::join(parts, ", "));
  }
  void attribute_value(const std::shared_ptr<Graph>& value, int depth) {
    add(" = ");
    graph(*value, depth);
  }

  std::string name(ValueId id) const {
    return id == kAbsent ? "\"\"" : identifier(model_.values[id].name);
  }
  std::string names(const std::vector<ValueId>& ids) const {
    std::vector<std::string> parts;
    parts.reserve(ids.size());
    for (ValueId id : ids) parts.push_back(name(id));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  const Model& model_;
  std::string out_;
};

}  // namespace

std::string print(const Model& model) { return Printer(model).run(); }

}  // namespace jaxport::onnx
