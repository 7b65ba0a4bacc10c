// SPDX-License-Identifier: Apache-2.0
// ONNX IR: a model as data. Nodes are checked against the schemas as they are built
// (onnx/builder.h).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "dim/dim.h"
#include "support/dtype.h"
#include "support/tensor.h"

namespace jaxport::onnx {

using ValueId = std::uint32_t;
constexpr ValueId kAbsent = 0xffffffff;  // an optional input or output that is left out

struct TensorType {
  DType dtype = DType::kF32;
  std::optional<Dims> shape;  // nullopt: rank unknown
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

struct ValueInfo {
  std::optional<TensorType> type;  // nullopt: unknown (only in models that were read)
  std::string name;                // "" until name_values()
};

struct Graph;
struct Attribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, Tensor, std::vector<std::int64_t>,
               std::vector<float>, std::vector<std::string>, std::shared_ptr<Graph>>
      value;
};
bool operator==(const Attribute& a, const Attribute& b);

// Where a node comes from: "model.py:42 in Net.__call__" and a scope such as "blocks.3.attn".
struct Origin {
  std::string source, scope;
  std::uint32_t location = 0;  // of the program in front IR; no file has it
  friend bool operator==(const Origin&, const Origin&) = default;
};

struct Node {
  std::string op, domain, name;
  std::vector<ValueId> in, out;
  std::vector<Attribute> attrs;  // sorted by name
  std::uint32_t origin = 0;      // index into Model::origins; 0 = unknown
  std::vector<std::pair<std::string, std::string>> metadata;  // as read from a file
  const Attribute* attr(std::string_view wanted) const;       // nullptr when absent
};

// A constant tensor: `shape` regroups the elements that `view` enumerates.
struct Initializer {
  ValueId value;
  StridedView view;
  Shape shape;
};

struct Graph {
  std::string name;
  std::vector<ValueId> inputs, outputs;
  std::vector<Initializer> initializers;
  std::vector<Node> nodes;  // topological order; may refer to values of enclosing graphs
};

struct OpsetImport {
  std::string domain;
  std::int64_t version;
};

// A function of the model: nodes with its domain and name call it. The body sees nothing around it
// and has no initializers; its constants are Constant nodes.
struct Function {
  std::string domain, name;
  Graph body;
};

struct Model {
  std::int64_t ir_version = 10;
  std::vector<OpsetImport> opsets;
  std::string producer_name, producer_version, domain, doc;
  std::int64_t model_version = 0;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::deque<ValueInfo> values;  // of all graphs, by ValueId; growing keeps references valid
  std::vector<Origin> origins{Origin{}};
  Graph graph;
  std::vector<Function> functions;
  std::shared_ptr<DimScope> dims = std::make_shared<DimScope>();

  std::int64_t opset(std::string_view wanted = "") const;  // 0 when not imported
};

// IR version a model of this opset needs: 10 up to opset 23, then what onnx's release table says.
std::int64_t ir_version_for(std::int64_t opset);

// Gives every value and node without a name a stable, readable one: "blocks.3.attn/MatMul_2".
void name_values(Model& model);

// Throws JXP-BUG when a node does not fit its schema, is not in topological order, a name is
// missing or taken twice, or an op is newer than the declared opset. `what` names the stage for the
// message.
void verify(const Model& model, std::string_view what);
// The same for a model under construction, whose values may have no names yet. Before legalising,
// its nodes have DTypeRule::kAny (onnx/schema.h).
enum class DTypeRule : std::uint8_t;
void verify_unnamed(const Model& model, std::string_view what, DTypeRule dtypes);

// ONNX's own text syntax, which onnx.parser reads. Large initializers print as a shape only.
std::string print(const Model& model);

// Counts of all graphs of a model, with the bodies of functions once each.
struct Stats {
  std::vector<std::pair<std::string, std::size_t>> ops;  // sorted by count, then name
  // "domain::op" of nodes that are neither of ONNX nor calls of functions of the model, by name.
  std::vector<std::pair<std::string, std::size_t>> foreign;
  std::size_t nodes = 0, parameters = 0, initializer_bytes = 0;
};
Stats stats(const Model& model);

}  // namespace jaxport::onnx
