// SPDX-License-Identifier: Apache-2.0
// The axis graph: mathematics without layout.
//
// A node has an index space of its own: labels 0, 1, … with a size each. Every edge is an einops
// pattern: for each axis of the operand the product of labels it runs over. Transposes, unit dims,
// broadcasts, repeats, split and merge reshapes are therefore edge data, never nodes. Equal values
// are one node whatever their layout: nodes are hash-consed with labels numbered by first
// appearance, and labels that always stand side by side are one label of the node.
//
// So an axis of a Use may be a product of context labels although the node has one label for it.
// A Use may also lack labels that its context has: the value does not vary along them (a
// broadcast).
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "front/ir.h"
#include "front/text.h"
#include "support/preferences.h"

namespace jaxport::axis {

using Label = std::int32_t;
// Most products and patterns fit in place: copying one allocates nothing.
using Labels = absl::InlinedVector<Label, 4>;
using Pattern = absl::InlinedVector<Labels, 4>;  // for each axis a product of labels, row-major

Labels flatten(const Pattern& pattern);
bool contains(const Labels& labels, Label label);

enum class Kind : std::uint8_t {
  kInput,      // attrs index
  kConstant,   // data
  kIota,       // 0, 1, … along its only axis
  kPointwise,  // name = a lax primitive, or a raised scalar function ("gelu_tanh")
  kReduce,     // name = reduce_sum, …; reduces the labels of its edge that are not in `out`
  kContract,   // sum over the labels that are not in `out`; both edges have all of those. The
               // order of the operands means nothing: a constant is the second
  kPick,       // one place of a label; this and the next three: see parts.h
  kStack,      // operand i is place i along a new label
  kSlice,      // a range of a label as another label, or as size 1
  kConcat,     // labels of the operands joined into one
  kRelayout,   // makes each result axis one label: the only node whose `out` has products
  kPrim,       // positional primitive: axis i of an operand or result is its i-th non-unit dim in
               // the jaxpr, see PrimInfo; each axis of each edge has a label of its own
  kMacro,      // an op that names labels by their roles: softmax, norm, attention, …
};

// Such a node does the same whatever the order of its labels, but for those with a role.
bool treats_labels_alike(Kind kind);

struct Node;
struct Edge {
  const Node* node;
  Pattern axes;  // labels of the consumer, for each axis of `node`
};
using Edges = absl::InlinedVector<Edge, 2>;

struct Program;

// The positional side of a kPrim node: parameters and types with unit dims, as in the jaxpr.
struct PrimInfo {
  front::Eqn eqn;  // primitive and attrs; in/out unused
  std::vector<front::Type> in, out;
  // The bodies of control flow, see axis/translate/region.h. They belong to the graph (Graph::own)
  // and follow from `eqn` and the operands, so they are no part of the identity: raising and
  // lowering change them in place.
  std::vector<Program*> regions;
};

using Roles = std::vector<std::pair<std::string, Labels>>;  // sorted by name

class Graph;

struct Node {
  Graph* graph;      // the graph that owns it; not part of the identity
  std::uint32_t id;  // creation order; operands have smaller ids
  Kind kind;
  std::string_view name;  // interned in the graph
  DType dtype;
  Edges edges;
  Pattern out;  // the labels of each result axis: one label, but for kRelayout
  Dims sizes;   // by label
  front::Attrs attrs;
  Roles roles;
  Tensor data;                                      // kConstant
  std::shared_ptr<const PrimInfo> prim;             // kPrim
  std::uint32_t result = 0;                         // kPrim: which result
  front::LocationId location = front::kNoLocation;  // not part of the identity
  std::string path;  // kConstant, kInput: a readable name; not part of the identity

  const Labels& role(std::string_view role_name) const;  // empty when absent
  const front::Attr* attr(std::string_view attr_name) const {
    return front::find(attrs, attr_name);
  }
  // An attribute that all nodes of this kind have. JXP-BUG when it is missing or of another type.
  template <class T>
  const T& get(std::string_view attr_name) const {
    const front::Attr* found = attr(attr_name);
    const T* value = found ? found->get_if<T>() : nullptr;
    if (value == nullptr) no_attr(attr_name);
    return *value;
  }
  bool is(Kind k, std::string_view n) const { return kind == k && name == n; }
  Dim axis_size(std::size_t axis) const;  // product over out[axis]
  bool in_out(Label label) const;         // some axis of the result runs over `label`

 private:
  [[noreturn]] void no_attr(std::string_view attr_name) const;
};

// A reference to a node: which labels of the referring context, mostly the graph, each of its axes
// runs over. An Edge refers from inside of one node, which numbers its labels from 0; the types
// differ so that one is not taken for the other. Graph::child makes a Use of an Edge.
struct Use {
  const Node* node = nullptr;
  Pattern labels;
  explicit operator bool() const { return node != nullptr; }
  Labels flat() const { return flatten(labels); }
  friend bool operator==(const Use&, const Use&) = default;
};

// A jaxpr variable: a use plus the right-hand side of its einops pattern. A label in `dims` that
// the use lacks is a broadcast; an empty entry of `dims` is a unit dim.
struct View {
  Use use;
  Pattern dims;
};

// Substitution of labels that the matcher invented; see Graph::same.
using Binding = std::unordered_map<Label, Label>;
Label resolve(Label label, const Binding& binding);

class Graph {
 public:
  explicit Graph(std::shared_ptr<DimScope> dims);
  ~Graph();
  Graph(const Graph&) = delete;  // nodes know the address of their graph

  DimScope& dims() const;

  // --- context labels
  Label label(Dim size);
  Dim size(Label label) const;
  Dim size_of(const Labels& labels) const;  // product

  // --- smart constructors: the canonical form is kept on every creation. Operands share context
  // labels.
  Use input(std::int64_t index, const front::Type& type,
            std::string path);  // axes of the non-unit dims
  // Axes of the non-unit dims, fresh labels. Integers and bools that are all equal come without
  // axes (a broadcast); integers in arithmetic progression come as an iota.
  Use constant(Tensor data, std::string path = "");
  View constant_view(Tensor data, std::string path = "");  // the same with all dims of `data`
  Use scalar(double value, DType dtype);
  Use iota(Label along, DType dtype);
  Use pointwise(std::string_view name, std::vector<Use> operands, DType dtype,
                front::Attrs attrs = {});
  // `over` may name labels that operands lack: the sum over a broadcast is a product, and so on.
  Use reduce(std::string_view name, Use operand, const Labels& over, DType dtype);
  Use contract(Use lhs, Use rhs, const Labels& over, DType dtype);
  Use pick(Use operand, Label along, std::int64_t index);
  Use stack(std::vector<Use> operands, Label along);
  // nullopt for `to`: the result has size 1 there.
  Use slice(Use operand, Label from, std::optional<Label> to, Dim start, Dim limit,
            std::int64_t stride);
  // pieces[j]: the label of operand j that is joined; nullopt: operand j has size 1 there.
  Use concat(std::vector<Use> operands, const std::vector<std::optional<Label>>& pieces, Label to);
  // Result axis i is the product axes[i], as one fresh label. No node when the operand has just
  // these axes.
  Use relayout(Use operand, const Pattern& axes);
  // Operands have one axis for each non-unit dim of info->in, in order; so have the results, with
  // fresh labels.
  std::vector<Use> prim(const std::shared_ptr<const PrimInfo>& info, std::vector<Use> operands);
  Use macro(std::string_view name, std::vector<Use> operands, const Labels& out, DType dtype,
            Roles roles, front::Attrs attrs = {});
  // Keeps a region for the nodes of this graph, for as long as the graph lives.
  Program* own(std::unique_ptr<Program> region);

  // The same node with other operands, through the smart constructor of its kind. `at` gives the
  // context labels of every label of `node` (indexed by label). The result of a kRelayout or kPrim
  // has fresh labels, one for each axis in order.
  Use remake(const Node& node, std::vector<Use> operands, const Labels& at);

  // --- looking down
  // The node over labels of its own, one for each axis; the same ones each time.
  Use self(const Node* node);
  // Operand i of `use` in the context of `use`. Labels that the node reduces become fresh labels,
  // the same ones each time for the same use. Empty when `use` cuts the axes of a kRelayout
  // elsewhere than its operand does.
  Use child(const Use& use, std::size_t i);
  std::vector<Use> children(const Use& use);
  // The context labels of each label of use.node, those that child() invents included.
  Pattern context(const Use& use);
  // The context labels of a role of use.node.
  Labels role(const Use& use, std::string_view role_name);
  // Same node and same labels, binding labels invented by child() where needed.
  bool same(const Use& a, const Use& b, Binding& binding) const;
  static Use substitute(const Use& use, const Binding& binding);

  // --- facts
  std::optional<double> scalar_value(const Use& use) const;  // of a constant without axes
  bool is_constant(const Use& use) const { return use.node->kind == Kind::kConstant; }

  // New nodes get this location until it is set again.
  void set_location(front::LocationId location);
  // Whether some pick takes the value apart. Rotary embeddings keep such a value in one piece.
  bool is_picked(const Node* node) const;
  std::size_t node_count() const;

 private:
  // An operand that lost an axis (it became a broadcast) gets it back.
  Use remake_prim(const Node& node, std::vector<Use> operands, const Labels& at);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Input {
  front::Type type;
  std::string name;
};

using Locations = std::vector<front::Location>;  // by LocationId

// Scans over constant weights, such as the layers of a transformer.
struct Unrolling {
  std::optional<std::int64_t> most_layers;  // up to so many are unrolled; by default the target's
  bool as_functions = false;                // each is then a call of one function
};

// A program in axis form. Regions of control flow are programs of their own with positional
// borders.
struct Program {
  std::shared_ptr<DimScope> dims;
  std::shared_ptr<Graph> graph;
  std::vector<Input> inputs;
  std::vector<View> outputs;
  std::vector<front::Type> output_types;
  std::vector<std::string> output_names;
  std::shared_ptr<const Locations> locations;                 // shared with the regions
  const Preferences* preferences = &kOnnxRuntimePreferences;  // of the target; shared, too
  Unrolling unrolling;

  const front::Location& location(front::LocationId id) const { return (*locations)[id]; }
};

// front -> axis, one pass. Inlines calls, drops identities, folds views into edges.
Program build(const front::Module& module, const front::Function& function,
              const Preferences& preferences = kOnnxRuntimePreferences,
              const Unrolling& unrolling = {});

// Nodes that the outputs need, operands first; deterministic.
std::vector<const Node*> topological(const Program& program);

// The regions of these nodes, each once, in the order of the nodes; not the regions inside them.
std::vector<Program*> regions(const Program& program);

std::string print(const Program& program);               // one node a line, for text tests
front::MarkedText print_marked(const Program& program);  // the same, with the nodes' locations
void verify(const Program& program);                     // JXP-BUG when an invariant is broken

// Values of the outputs for concrete inputs; expands macros with `expand`.
using Expand = Use (*)(Graph&, const Use&);
std::vector<Tensor> evaluate(const Program& program, std::span<const Tensor> inputs, Expand expand);

// How many edges and outputs of the program refer to each node, as the program stood before it was
// rebuilt. The replacement of a node has the count of the node.
class UseCounts {
 public:
  UseCounts(const Program& program, const std::vector<const Node*>& order);
  std::uint32_t operator[](const Node* node) const;
  void inherit(const Node* heir, const Node* node);

 private:
  std::vector<std::uint32_t> counts_;  // by id; nodes beyond have no uses
};

// Rebuilds the program bottom-up. `rewrite` gets each node over its already rewritten operands and
// returns its replacement (over the same labels) or an empty Use; it is asked again about what it
// returned, a few times. Returns true when anything changed.
using Rewrite = std::function<Use(Graph&, const Use&, const UseCounts&)>;
bool rebuild(Program& program, const Rewrite& rewrite);

}  // namespace jaxport::axis
