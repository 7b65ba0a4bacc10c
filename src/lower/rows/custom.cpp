// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/custom.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "front/text.h"
#include "lower/rows/user.h"
#include "onnx/walk.h"

namespace jaxport::lower {
namespace {

using Content = decltype(onnx::Attribute::value);

// A parameter that ONNX has an attribute for by itself: a number, a text or an array. A size that
// is not known is its text.
std::optional<Content> plain(const front::Attr& attr) {
  if (const auto* truth = attr.get_if<bool>()) return std::int64_t{*truth};
  if (const auto* integer = attr.get_if<std::int64_t>()) return *integer;
  if (const auto* number = attr.get_if<double>()) return static_cast<float>(*number);
  if (const auto* text = attr.get_if<std::string>()) return *text;
  if (const auto* dtype = attr.get_if<DType>()) return std::string(name_of(*dtype));
  if (const auto* choice = attr.get_if<front::Enum>()) return choice->name;
  if (const auto* tensor = attr.get_if<Tensor>()) return *tensor;
  if (const auto* dim = attr.get_if<Dim>()) {
    return dim->is_static() ? Content(dim->value()) : Content(dim->str());
  }
  return std::nullopt;
}

template <class T>
std::optional<std::vector<T>> all_of(const front::List& items) {
  std::vector<T> found;
  for (const front::Attr& item : items) {
    const std::optional<Content> content = plain(item);
    const T* value = content ? std::get_if<T>(&*content) : nullptr;
    if (value == nullptr) return std::nullopt;
    found.push_back(*value);
  }
  return found;
}

// Lists of one kind are lists; everything that is nested, and functions, are .jir text.
Content content_of(const front::Attr& attr) {
  if (std::optional<Content> content = plain(attr)) return *std::move(content);
  if (const auto* items = attr.get_if<front::List>()) {
    if (auto integers = all_of<std::int64_t>(*items)) return *std::move(integers);
    if (auto numbers = all_of<float>(*items)) return *std::move(numbers);
    if (auto texts = all_of<std::string>(*items)) return *std::move(texts);
  }
  return front::print(attr);
}

}  // namespace

Values custom_node(Ctx& c) {
  std::vector<onnx::Attribute> attrs;
  for (const auto& [name, attr] : c.eqn().attrs) {
    if (attr.is_none() || name == front::kProblem) continue;
    attrs.push_back({name, content_of(attr)});
  }
  std::vector<onnx::TensorType> types;
  for (std::size_t i = 0; i < c.result_count(); ++i) {
    types.push_back({c.out_type(i).dtype, c.out_type(i).shape});
  }
  return c.op.call_foreign(std::string(kCustomDomain), c.eqn().primitive, c.operands(),
                           std::move(types), std::move(attrs));
}

void name_custom_nodes(onnx::Model& model) {
  onnx::for_each_graph_of(model, [](onnx::Graph& graph) {
    for (onnx::Node& node : graph.nodes) {
      if (node.domain == kCustomDomain) node.op = std::string(without_user_name(node.op));
    }
  });
}

}  // namespace jaxport::lower
