// SPDX-License-Identifier: Apache-2.0
// What is merged because it is equal, and that every single field and attribute keeps two apart. A
// field that is added to a struct does not compile here until it is in one of the lists.
#include <gtest/gtest.h>

#include <memory>
#include <variant>

#include "axis/graph/store.h"
#include "front/ir.h"
#include "front/parameters.h"
#include "onnx/equal.h"
#include "onnx/schema.h"
#include "pass/pass.h"

namespace jaxport {
namespace {

// --- parameters: front::Attr

Tensor floats(std::vector<float> values) {
  MutableTensor made = allocate(DType::kF32, {static_cast<std::int64_t>(values.size())});
  std::ranges::copy(values, made.as<float>());
  return made.tensor;
}

front::Region region_of(const std::string& primitive) {
  auto body = std::make_shared<front::Function>();
  const auto x = body->add_value({DType::kF32, {2}}), y = body->add_value({DType::kF32, {2}});
  body->params = {x};
  body->eqns.push_back({primitive, {x}, {y}, {}});
  body->results = {y};
  return body;
}

// Different values, at least two of each kind; no two of them are equal.
std::vector<front::Attr> different_attrs() {
  using front::Attr, front::List, front::Record, front::Enum, front::Opaque;
  static const auto scope = std::make_shared<DimScope>();
  return {front::None{},
          true,
          false,
          1,
          2,
          1.0,
          2.0,
          1.5,
          "a",
          "b",
          DType::kF32,
          DType::kF16,
          scope->parse("B"),
          scope->parse("B + 1"),
          Enum{"a"},
          Enum{"b"},
          List{},
          List{1},
          List{1, 2},
          List{2, 1},
          List{List{1}, 2},
          List{1.0, 2},
          Record("R", {{"f", 1}}),
          Record("S", {{"f", 1}}),
          Record("R", {{"g", 1}}),
          Record("R", {{"f", 2}}),
          Record("R", {{"f", 1}, {"g", 1}}),
          region_of("sin"),
          region_of("cos"),
          floats({1, 2}),
          floats({1, 3}),
          floats({1}),
          Opaque{"a"},
          Opaque{"b"}};
}

TEST(Equality, of_parameters) {
  const std::vector<front::Attr> attrs = different_attrs(), again = different_attrs();
  std::vector<int> kinds(std::variant_size_v<decltype(front::Attr::value)>);
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    ++kinds[attrs[i].value.index()];
    for (std::size_t j = 0; j < attrs.size(); ++j) {
      EXPECT_EQ(attrs[i] == again[j], i == j) << i << " and " << j;
    }
    EXPECT_EQ(front::hash(attrs[i]), front::hash(again[i])) << i;
  }
  for (std::size_t kind = 1; kind < kinds.size(); ++kind) EXPECT_GE(kinds[kind], 2) << kind;
}

TEST(Equality, of_nested_functions) {
  const front::Function plain = *region_of("sin");
  const auto differs = [&](auto change) {
    front::Function other = plain;
    change(other);
    return !front::equivalent(plain, other);
  };
  EXPECT_FALSE(differs([](front::Function&) {}));
  EXPECT_FALSE(differs([](front::Function& f) { f.name = "other"; }));
  EXPECT_FALSE(differs([](front::Function& f) { f.values[0].name = "other"; }));
  EXPECT_FALSE(differs([](front::Function& f) { f.eqns[0].location = 3; }));
  EXPECT_TRUE(differs([](front::Function& f) { f.values[0].type.dtype = DType::kF16; }));
  EXPECT_TRUE(differs([](front::Function& f) { f.values[0].type.shape = {3}; }));
  EXPECT_TRUE(differs([](front::Function& f) { f.eqns[0].primitive = "cos"; }));
  EXPECT_TRUE(differs([](front::Function& f) { f.eqns[0].attrs = {{"a", 1}}; }));
  EXPECT_TRUE(differs([](front::Function& f) { f.eqns[0].in = {1}; }));
  EXPECT_TRUE(differs([](front::Function& f) { f.results = {0}; }));
  EXPECT_TRUE(differs([](front::Function& f) { f.results = {1, 1}; }));
  EXPECT_TRUE(differs([](front::Function& f) { f.eqns.push_back(f.eqns[0]); }));
  EXPECT_TRUE(differs([](front::Function& f) { f.params = {}; }));
  EXPECT_TRUE(differs([](front::Function& f) { f.constants = {{0, floats({1}), ""}}; }));
  auto& [name, values, params, constants, eqns, results, result_names, names] = plain;
  auto& [primitive, in, out, attrs, location] = plain.eqns[0];
  (void)name, (void)values, (void)params, (void)constants, (void)eqns, (void)results;
  (void)result_names, (void)names, (void)primitive, (void)in, (void)out, (void)attrs,
      (void)location;
}

// --- nodes of the axis graph

class AxisEquality : public ::testing::Test {
 protected:
  AxisEquality() {
    const front::Type type{DType::kF32, {2, 3}};
    operand = graph.input(0, type, "x").node;
    other = graph.input(1, type, "y").node;
    auto info = std::make_shared<axis::PrimInfo>();
    info->eqn.primitive = "sort";
    info->in = info->out = {type};
    node.graph = &graph;
    node.id = 7;
    node.kind = axis::Kind::kPrim;
    node.name = "sort";
    node.dtype = DType::kF32;
    node.edges = {{operand, {{0}, {1}}}};
    node.out = {{0}, {1}};
    node.sizes = {2, 3};
    node.attrs = {{"a", 1}};
    node.roles = {{"r", {0}}};
    node.prim = info;
  }

  // The hash is the same for both, so that the fields alone decide.
  bool differs(const std::function<void(axis::StoredNode&)>& change) const {
    axis::StoredNode changed = node;
    change(changed);
    return !axis::same_content(node, changed) && !axis::same_content(changed, node);
  }
  bool prim_differs(const std::function<void(axis::PrimInfo&)>& change) const {
    return differs([&](axis::StoredNode& changed) {
      auto info = std::make_shared<axis::PrimInfo>(*node.prim);
      change(*info);
      changed.prim = info;
    });
  }

  std::shared_ptr<DimScope> dims = std::make_shared<DimScope>();
  axis::Graph graph{dims};
  const axis::Node *operand, *other;
  axis::StoredNode node;
};

TEST_F(AxisEquality, of_the_fields_of_a_node) {
  EXPECT_FALSE(differs([](axis::StoredNode&) {}));
  EXPECT_FALSE(differs([](axis::StoredNode& n) { n.id = 8; }));
  EXPECT_FALSE(differs([](axis::StoredNode& n) { n.location = 3; }));
  EXPECT_FALSE(differs([](axis::StoredNode& n) { n.path = "w"; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.kind = axis::Kind::kMacro; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.name = "cumsum"; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.dtype = DType::kF16; }));
  EXPECT_TRUE(differs([&](axis::StoredNode& n) { n.edges[0].node = other; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.edges[0].axes = {{1}, {0}}; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.edges.push_back(n.edges[0]); }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.out = {{1}, {0}}; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.sizes = {2, 4}; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.attrs = {{"a", 2}}; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.attrs = {{"b", 1}}; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.roles = {{"r", {1}}}; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.roles = {{"s", {0}}}; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.result = 1; }));
  const axis::Node& plain = node;
  auto& [graph_, id, kind, name, dtype, edges, out, sizes, attrs, roles, data, prim, result,
         location, path] = plain;
  (void)graph_, (void)id, (void)kind, (void)name, (void)dtype, (void)edges, (void)out, (void)sizes;
  (void)attrs, (void)roles, (void)data, (void)prim, (void)result, (void)location, (void)path;
}

TEST_F(AxisEquality, of_the_fields_of_a_positional_node) {
  EXPECT_FALSE(prim_differs([](axis::PrimInfo&) {}));
  EXPECT_FALSE(prim_differs([](axis::PrimInfo& p) { p.eqn.location = 3; }));
  EXPECT_TRUE(prim_differs([](axis::PrimInfo& p) { p.eqn.primitive = "cumsum"; }));
  EXPECT_TRUE(prim_differs([](axis::PrimInfo& p) { p.eqn.attrs = {{"a", 1}}; }));
  EXPECT_TRUE(prim_differs([](axis::PrimInfo& p) { p.in[0].dtype = DType::kF16; }));
  EXPECT_TRUE(prim_differs([](axis::PrimInfo& p) { p.in[0].shape = {2, 3, 1}; }));
  EXPECT_TRUE(prim_differs([](axis::PrimInfo& p) { p.out[0].dtype = DType::kF16; }));
  EXPECT_TRUE(prim_differs([](axis::PrimInfo& p) { p.out[0].shape = {1, 2, 3}; }));
  EXPECT_TRUE(differs([](axis::StoredNode& n) { n.prim = nullptr; }));
  auto& [eqn, in, out, regions] = *node.prim;  // regions follow from eqn and the operands
  (void)eqn, (void)in, (void)out, (void)regions;
}

TEST_F(AxisEquality, of_constants) {
  node.kind = axis::Kind::kConstant;
  node.data = floats({1, 2});
  const auto with = [&](const Tensor& data) {
    return differs([&](axis::StoredNode& n) { n.data = data; });
  };
  EXPECT_FALSE(with(floats({1, 2})));
  EXPECT_TRUE(with(floats({1, 3})));
  EXPECT_TRUE(with(floats({1})));
  Tensor other_shape = floats({1, 2}), other_dtype = floats({1, 2});
  other_shape.shape = {2, 1};
  other_dtype.dtype = DType::kI32;
  EXPECT_TRUE(with(other_shape));
  EXPECT_TRUE(with(other_dtype));
}

// In the graph itself, with real hashes: each parameter of each primitive that JAX has.
TEST_F(AxisEquality, of_every_parameter_of_every_primitive) {
  std::size_t tried = 0;
  for (const front::Signature& signature : front::signatures()) {
    const auto nodes_of = [&](const front::Attrs& attrs) {
      auto info = std::make_shared<axis::PrimInfo>();
      info->eqn.primitive = signature.name;
      info->eqn.attrs = attrs;
      info->in = info->out = {{DType::kF32, {2, 3}}};
      return graph.prim(info, {graph.self(operand)}).at(0).node;
    };
    front::Attrs plain;
    std::string_view rest = signature.parameters;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      plain.emplace_back(rest.substr(0, end), 1);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    const bool is_unique = signature.name == "rng_uniform";
    EXPECT_EQ(nodes_of(plain) == nodes_of(plain), !is_unique) << signature.name;
    for (auto& [name, value] : front::Attrs(plain)) {
      front::Attrs changed = plain;
      front::set(changed, name, 2);
      EXPECT_NE(nodes_of(plain), nodes_of(changed)) << signature.name << " " << name;
      ++tried;
    }
  }
  EXPECT_GT(tried, 200u);
}

// --- nodes of ONNX

onnx::Node relu() {
  onnx::Node node;
  node.op = "Relu";
  node.in = {0};
  node.out = {1};
  node.attrs = {{"a", std::int64_t{1}}};
  return node;
}

TEST(OnnxEquality, of_the_fields_of_a_node) {
  const onnx::Node plain = relu();
  const auto differs = [&](const std::function<void(onnx::Node&)>& change) {
    onnx::Node other = plain;
    change(other);
    return !onnx::same_call(plain, other);
  };
  EXPECT_FALSE(differs([](onnx::Node& n) { n.name = "other"; }));
  EXPECT_FALSE(differs([](onnx::Node& n) { n.origin = 3; }));
  EXPECT_FALSE(differs([](onnx::Node& n) { n.metadata = {{"k", "v"}}; }));
  EXPECT_FALSE(differs([](onnx::Node& n) { n.out = {2}; }));
  EXPECT_TRUE(differs([](onnx::Node& n) { n.out = {1, 2}; }));
  EXPECT_TRUE(differs([](onnx::Node& n) { n.op = "Abs"; }));
  EXPECT_TRUE(differs([](onnx::Node& n) { n.domain = "other"; }));
  EXPECT_TRUE(differs([](onnx::Node& n) { n.in = {1}; }));
  EXPECT_TRUE(differs([](onnx::Node& n) { n.in = {0, 0}; }));
  EXPECT_TRUE(differs([](onnx::Node& n) { n.attrs[0].name = "b"; }));
  EXPECT_TRUE(differs([](onnx::Node& n) { n.attrs.clear(); }));
  auto& [op, domain, name, in, out, attrs, origin, metadata] = plain;
  (void)op, (void)domain, (void)name, (void)in, (void)out, (void)attrs, (void)origin,
      (void)metadata;
}

using Content = decltype(onnx::Attribute::value);

// Different contents of one kind; none for kinds that no node may be merged with.
std::vector<Content> contents_of(onnx::AttrKind kind) {
  using onnx::AttrKind;
  using Ints = std::vector<std::int64_t>;
  using Floats = std::vector<float>;
  using Texts = std::vector<std::string>;
  switch (kind) {
    case AttrKind::kInt:
      return {std::int64_t{1}, std::int64_t{2}};
    case AttrKind::kFloat:
      return {0.0f, -0.0f, 1.0f};
    case AttrKind::kString:
      return {std::string("a"), std::string("b")};
    case AttrKind::kTensor:
      return {floats({1}), floats({2}), floats({1, 1})};
    case AttrKind::kInts:
      return {Ints{}, Ints{1}, Ints{2}, Ints{1, 1}};
    case AttrKind::kFloats:
      return {Floats{}, Floats{1}, Floats{2}};
    case AttrKind::kStrings:
      return {Texts{}, Texts{"a"}, Texts{"b"}};
    default:
      return {};
  }
}

// How many of two nodes are left after the pass.
std::size_t left_of(const onnx::Node& first, const onnx::Node& second) {
  onnx::Model model;
  model.opsets = {{"", onnx::kNewestOpset}};
  model.values.resize(3, {onnx::TensorType{DType::kF32, Dims{2}}, ""});
  model.graph.inputs = {0};
  model.graph.nodes = {first, second};
  model.graph.nodes[0].out = {1};
  model.graph.nodes[1].out = {2};
  pass::merge_equal_nodes(model);
  return model.graph.nodes.size();
}

TEST(OnnxEquality, of_every_attribute_of_every_op) {
  constexpr std::string_view kOps[] = {
#define JAXPORT_OP(NAME) #NAME,
#include "onnx/op_names.inc"
#undef JAXPORT_OP
  };
  std::size_t tried = 0;
  for (std::string_view op : kOps) {
    const onnx::Schema* schema = onnx::find_schema(op, onnx::kNewestOpset);
    if (schema == nullptr) continue;
    onnx::Node plain = relu();
    plain.op = op;
    plain.attrs.clear();
    EXPECT_EQ(left_of(plain, plain), onnx::is_repeatable(plain) ? 1u : 2u) << op;
    for (const onnx::AttrSpec& spec : schema->attrs) {
      const std::vector<Content> contents = contents_of(spec.kind);
      for (std::size_t i = 0; i < contents.size(); ++i) {
        onnx::Node first = plain, second = plain;
        first.attrs = {{std::string(spec.name), contents[i]}};
        EXPECT_EQ(left_of(plain, first), 2u) << op << " " << spec.name;
        second.attrs = {{std::string(spec.name), contents[(i + 1) % contents.size()]}};
        EXPECT_EQ(left_of(first, second), 2u) << op << " " << spec.name << " " << i;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 500u);
}

}  // namespace
}  // namespace jaxport
