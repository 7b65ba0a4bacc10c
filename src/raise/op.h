// SPDX-License-Identifier: Apache-2.0
// How an op is declared that raising makes, see ops.h: a struct whose operands, labels and
// attributes have names and types. Its function `fields` says once how each is stored in a node:
//
//   struct SoftmaxOp {
//     static constexpr std::string_view kName = "softmax";
//     Use x;
//     Labels along;
//     void fields(auto& f) { f.operand(x), f.labels("s", along); }
//     Use expand() const;  // the decomposition
//   };
//
// Rules make(SoftmaxOp{x, s}, labels of the result); whoever meets a node asks is<SoftmaxOp>(node)
// and reads it: read<SoftmaxOp>(use) in the context of a use, read<SoftmaxOp>(node) over the labels
// of the node itself.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "axis/graph.h"

namespace jaxport::raise {

class AttrReader {
 public:
  explicit AttrReader(const front::Attrs& attrs) : attrs_(attrs) {}
  template <class T>
  void attr(std::string_view name, T& value) {
    if (const front::Attr* found = front::find(attrs_, name)) value = *found->get_if<T>();
  }
  void mark(std::string_view name, bool& value) { attr(name, value); }

 private:
  const front::Attrs& attrs_;
};

class AttrWriter {
 public:
  template <class T>
  void attr(std::string_view name, const T& value) {
    attrs_.emplace_back(name, front::Attr{value});
  }
  // An attribute that is there only when it is true.
  void mark(std::string_view name, bool value) {
    if (value) attr(name, value);
  }
  front::Attrs attrs() {
    std::ranges::sort(attrs_, {}, [](const auto& attr) { return attr.first; });
    return std::move(attrs_);
  }

 private:
  front::Attrs attrs_;
};

class FieldReader : public AttrReader {
 public:
  explicit FieldReader(const axis::Node& node) : AttrReader(node.attrs), node_(node) {}
  explicit FieldReader(const axis::Use& use)
      : AttrReader(use.node->attrs), node_(*use.node), use_(&use) {}

  void operand(axis::Use& to);
  // The last operands may be absent.
  void optional(axis::Use& to) {
    if (next_ < node_.edges.size()) operand(to);
  }
  // Absent or not, as the attribute says.
  void optional(std::string_view present, axis::Use& to);
  void labels(std::string_view role, axis::Labels& to);
  void label(std::string_view role, axis::Label& to);
  // As many parts as there are operands left, each with one; `field` gets the part and its number.
  template <class Part, class Field>
  void each(std::vector<Part>& parts, const Field& field) {
    while (next_ < node_.edges.size()) {
      parts.emplace_back();
      field(parts.back(), std::to_string(parts.size() - 1));
    }
  }

 private:
  const axis::Node& node_;
  const axis::Use* use_ = nullptr;  // nullptr: over labels of the node
  std::size_t next_ = 0;
};

class FieldWriter : public AttrWriter {
 public:
  void operand(const axis::Use& given) { operands_.push_back(given); }
  void optional(const axis::Use& given) {
    if (given) operand(given);
  }
  void optional(std::string_view present, const axis::Use& given);
  void labels(std::string_view role, const axis::Labels& given) {
    roles_.emplace_back(role, given);
  }
  void label(std::string_view role, axis::Label given) { labels(role, {given}); }
  template <class Part, class Field>
  void each(std::vector<Part>& parts, const Field& field) {
    for (std::size_t i = 0; i < parts.size(); ++i) field(parts[i], std::to_string(i));
  }
  axis::Use node(axis::Kind kind, std::string_view name, const axis::Labels& out,
                 std::optional<DType> dtype);

 private:
  std::vector<axis::Use> operands_;
  axis::Roles roles_;
};

template <class Op>
constexpr axis::Kind kind_of() {
  if constexpr (requires { Op::kKind; }) return Op::kKind;
  return axis::Kind::kMacro;
}

template <class Op>
bool is(const axis::Node& node) {
  return node.is(kind_of<Op>(), Op::kName);
}

template <class Op, class From>  // a Use or a Node
Op read(const From& from) {
  Op op;
  FieldReader reader(from);
  op.fields(reader);
  return op;
}

// The node over the labels `out`, in this dtype or that of its first operand.
template <class Op>
axis::Use make(Op op, const axis::Labels& out, std::optional<DType> dtype = std::nullopt) {
  FieldWriter writer;
  op.fields(writer);
  return writer.node(kind_of<Op>(), Op::kName, out, dtype);
}

// Structs of attributes alone, of equations and raised functions.
template <class T>
T read_attrs(const front::Attrs& attrs) {
  T read;
  AttrReader reader(attrs);
  read.fields(reader);
  return read;
}
template <class T>
front::Attrs to_attrs(T given) {
  AttrWriter writer;
  given.fields(writer);
  return writer.attrs();
}

// What the rest of the compiler asks about an op; table.cpp has a row for each.
struct OpRow {
  std::string_view name;
  axis::Kind kind;
  axis::Expand expand;
  // What a user calls it; nullptr: its name.
  std::string_view (*user_name)(const axis::Node&) = nullptr;
};

// nullptr for nodes that no rule made.
const OpRow* find_op(const axis::Node& node);

}  // namespace jaxport::raise
