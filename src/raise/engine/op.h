// SPDX-License-Identifier: Apache-2.0
// How an op that raising makes is declared, see ops.h: a struct whose operands, labels and
// attributes have names and types. Its function `fields` says once how each is stored in a node:
//
//   struct SoftmaxOp {
//     static constexpr std::string_view kName = "softmax";
//     Use x;
//     Labels along;
//     void fields(Fields& f) { f.operand(x), f.labels("s", along); }
//     Use expand() const;  // the decomposition
//   };
//
// Rules make(SoftmaxOp{x, s}, labels of the result); whoever meets a node asks is<SoftmaxOp>(node)
// and reads it: read<SoftmaxOp>(use) in the context of a use, read<SoftmaxOp>(node) over the labels
// of the node itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::raise {

// Reads the fields of an op, or collects them for a new node.
class Fields {
 public:
  Fields() = default;  // collects
  explicit Fields(const front::Attrs& attrs) : source_(&attrs) {}
  explicit Fields(const axis::Node& node) : source_(&node.attrs), node_(&node) {}
  explicit Fields(const axis::Use& use) : source_(&use.node->attrs), node_(use.node), use_(&use) {}

  void operand(axis::Use& operand);
  // The last operands may be absent.
  void optional(axis::Use& operand);
  // Absent or not, as the attribute says.
  void optional(std::string_view present, axis::Use& operand);
  void labels(std::string_view role, axis::Labels& labels);
  void label(std::string_view role, axis::Label& label);
  template <class T>
  void attr(std::string_view name, T& value) {
    if (!source_) {
      attrs_.emplace_back(name, front::Attr{value});
    } else if (const front::Attr* found = front::find(*source_, name)) {
      value = *found->get_if<T>();
    }
  }
  // An attribute that is there only when it is true.
  void mark(std::string_view name, bool& value) {
    if (source_ || value) attr(name, value);
  }
  // Parts with one operand each, which come last; `field` gets the part and its number.
  template <class Part, class Field>
  void each(std::vector<Part>& parts, const Field& field) {
    if (node_) parts.resize(node_->edges.size() - next_);
    for (std::size_t i = 0; i < parts.size(); ++i) field(parts[i], std::to_string(i));
  }

  // --- what was collected
  axis::Use node(axis::Kind kind, std::string_view name, const axis::Labels& out,
                 std::optional<DType> dtype);
  front::Attrs attrs();

 private:
  const front::Attrs* source_ = nullptr;  // nullptr: collects
  const axis::Node* node_ = nullptr;
  const axis::Use* use_ = nullptr;  // nullptr: labels are those of the node
  std::size_t next_ = 0;            // the operand to read
  std::vector<axis::Use> operands_;
  axis::Roles roles_;
  front::Attrs attrs_;
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
  Fields fields(from);
  op.fields(fields);
  return op;
}

// The node over the labels `out`, in this dtype or that of its first operand.
template <class Op>
axis::Use make(Op op, const axis::Labels& out, std::optional<DType> dtype = std::nullopt) {
  Fields fields;
  op.fields(fields);
  return fields.node(kind_of<Op>(), Op::kName, out, dtype);
}

// Structs of attributes alone, of equations and raised functions.
template <class T>
T read_attrs(const front::Attrs& attrs) {
  T read;
  Fields fields(attrs);
  read.fields(fields);
  return read;
}
template <class T>
front::Attrs to_attrs(T given) {
  Fields fields;
  given.fields(fields);
  return fields.attrs();
}

// What the rest of the compiler asks about an op that raising makes. table.cpp lists the rows;
// lower/macro/macro.h has what lowering asks.
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
