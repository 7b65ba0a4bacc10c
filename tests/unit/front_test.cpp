// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "front/ir.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "support/watch.h"

namespace jaxport::front {
namespace {

constexpr std::string_view kSample = R"(constraint "T % 8 == 0"

func @softmax(%x: f32[B,4,2*T + 1], %"a b": i32[]) -> (%out, %"loss 1") {
  %c: f32[] = constant 0.5
  %w: f32[2] = constant dense<[1.0, 2.0]> {path = "dense.kernel"}
  %max: f32[B,4] = route_max %x {axes = (2), mode = #clip} loc("model.py":42 "Net.__call__" scope "blocks/0" library "flax/linear.py:7 in __call__")
  %v: f32[2], %i: i32[2] = top_k %w {axis = none, k = 2}
  print_effect %v
  %r: f32[2] = repeat %v %v {body = @step { (%a: f32[2], %b: f32[2])
    %s: f32[2] = add %a %b
    return %s
  }, flags = (true, false), shape = (B, 2*T + 1, 3)}
  return %r %c
}

func @other() {
  return
}
)";

std::string code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return "no error";
}

std::string rejection(std::string_view text) {
  try {
    parse(text, "t.jir");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), error.message().starts_with("nested") ? kLimitCode : "E010")
        << error.what();
    return error.source() + " " + error.message();
  }
  return "no error";
}

// A module whose only equation carries `attr`.
Module module_with(Attr attr, Module module = {}) {
  Function function;
  function.name = "f";
  const ValueId x = function.add_value({DType::kF32, {}}, "x");
  const ValueId y = function.add_value({DType::kF32, {}}, "y");
  function.params = {x};
  function.eqns.push_back(
      {.primitive = "p", .in = {x}, .out = {y}, .attrs = {{"a", std::move(attr)}}});
  function.results = {y};
  module.functions.push_back(std::move(function));
  return module;
}

const Attr& only_attr(const Module& module) { return module.functions[0].eqns[0].attrs[0].second; }

void expect_round_trip(const Attr& attr, std::string_view spelling, Module module = {}) {
  module = module_with(attr, std::move(module));
  const std::string text = print(module);
  EXPECT_NE(text.find("{a = " + std::string(spelling) + "}"), std::string::npos) << text;
  const Module back = parse(text, "t.jir");
  EXPECT_EQ(print(back), text);
  // Dims of two scopes never compare equal; their text does.
  if (attr.get_if<Dim>() == nullptr) {
    EXPECT_EQ(only_attr(back), attr) << text;
    EXPECT_EQ(hash(only_attr(back)), hash(attr));
  }
}

Tensor tensor_of(DType dtype, Shape shape, const std::vector<unsigned char>& bytes) {
  MutableTensor out = allocate(dtype, std::move(shape));
  std::ranges::copy(bytes, out.as<unsigned char>());
  return out.tensor;
}

Region doubling(const std::string& value_name = "v") {
  auto region = std::make_shared<Function>();
  const ValueId v = region->add_value({DType::kF32, {3}}, value_name);
  const ValueId w = region->add_value({DType::kF32, {3}}, "w");
  region->params = {v};
  region->eqns.push_back({.primitive = "add", .in = {v, v}, .out = {w}, .attrs = {}});
  region->results = {w};
  return region;
}

// --- text

TEST(Text, the_sample_prints_as_it_was_read) {
  const Module module = parse(kSample, "t.jir");
  verify(module);
  EXPECT_EQ(print(module), kSample);
  EXPECT_EQ(module.functions[0].result_names[1], "loss 1");
  EXPECT_EQ(module.functions[0].constants[1].path, "dense.kernel");
  const Location& location = module.locations[module.functions[0].eqns[0].location];
  EXPECT_EQ(to_string(location), "model.py:42 in Net.__call__");
  EXPECT_EQ(location.scope, "blocks/0");
  EXPECT_EQ(module.dims->constraints().size(), 1u);
}

TEST(Text, every_attribute_kind_survives) {
  expect_round_trip({None{}}, "none");
  expect_round_trip({true}, "true");
  expect_round_trip({std::int64_t{-7}}, "-7");
  expect_round_trip({std::numeric_limits<std::int64_t>::min()}, "-9223372036854775808");
  expect_round_trip({std::string("a \"b\"\n\t\\ \x01 ü // [[")},
                    R"~("a \"b\"\n\t\\ \x01 ü // [[")~");
  expect_round_trip({DType::kBF16}, "bf16");
  expect_round_trip({Enum{"clip"}}, "#clip");
  expect_round_trip({Enum{"two words"}}, "#\"two words\"");
  expect_round_trip({Opaque{"NamedSharding(\"x\")"}}, "opaque<\"NamedSharding(\\\"x\\\")\">");
  expect_round_trip({List{}}, "()");
  expect_round_trip({List{{List{{std::int64_t{1}}, {std::int64_t{2}}}}, {List{}}, {None{}}}},
                    "((1, 2), (), none)");
  expect_round_trip({Record{"DotDims", {{"z", {std::int64_t{1}}}, {"a", {List{{DType::kF32}}}}}}},
                    "DotDims{z = 1, a = (f32)}");
  expect_round_trip({Record{"a name", {}}}, "\"a name\"{}");
  expect_round_trip({Record{"f32", {}}}, "f32{}");
}

TEST(Text, floats_are_exact_and_never_integers) {
  expect_round_trip({1.0}, "1.0");
  expect_round_trip({-0.0}, "-0.0");
  expect_round_trip({0.1}, "0.1");
  expect_round_trip({1e300}, "1e+300");
  expect_round_trip({5e-324}, "5e-324");
  expect_round_trip({std::numeric_limits<double>::infinity()}, "inf");
  expect_round_trip({-std::numeric_limits<double>::infinity()}, "-inf");
  expect_round_trip({std::numeric_limits<double>::quiet_NaN()}, "nan");
}

TEST(Text, dims_are_expressions) {
  Module module;
  const auto check = [&module](const char* text, const char* spelling) {
    const Dim dim = module.dims->parse(text);
    Module fresh;
    fresh.dims = module.dims;
    expect_round_trip({dim}, spelling, std::move(fresh));
  };
  check("2*T+1", "2*T + 1");
  check("max(B, T)", "max(B, T)");
  check("2 - B", "- B + 2");
  check("f32", "1*f32");  // a symbol that reads as a dtype
  check("none", "1*none");
  expect_round_trip({List{{Dim(3)}, {std::int64_t{4}}}}, "(3, 4)");
}

TEST(Text, tensors_keep_their_bytes) {
  expect_round_trip({scalar(DType::kF32, 0.1)}, "f32[] 0.1");
  expect_round_trip({scalar(DType::kBF16, 1.5)}, "bf16[] 1.5");
  expect_round_trip({scalar(DType::kF64, 1.0)}, "f64[] 1.0");
  expect_round_trip({scalar(DType::kF16, -INFINITY)}, "f16[] -inf");
  expect_round_trip({scalar(DType::kBool, 1)}, "bool[] true");
  expect_round_trip({int_scalar(DType::kU64, -1)}, "u64[] 18446744073709551615");
  expect_round_trip({int_scalar(DType::kI4, -8)}, "i4[] -8");
  expect_round_trip({scalar(DType::kC64, 1)}, "c64[] dense<\"0x0000803f00000000\">");
  expect_round_trip({tensor_of(DType::kF32, {}, {1, 0, 0xc0, 0x7f})},  // a NaN with a payload
                    "f32[] dense<\"0x0100c07f\">");
  expect_round_trip({tensor_of(DType::kU8, {2, 1}, {0xab, 0x01})}, "u8[2,1] dense<[171, 1]>");
  expect_round_trip({tensor_of(DType::kBool, {2}, {1, 0})}, "bool[2] dense<[true, false]>");
  expect_round_trip({tensor_of(DType::kF16, {2}, {0, 0x3e, 0, 0xfc})}, "f16[2] dense<[1.5, -inf]>");
  expect_round_trip({tensor_of(DType::kF32, {1}, {1, 0, 0xc0, 0x7f})},
                    "f32[1] dense<\"0x0100c07f\">");
  std::vector<unsigned char> many(17, 1);
  expect_round_trip({tensor_of(DType::kI8, {17}, many)},
                    "i8[17] dense<\"0x0101010101010101010101010101010101\">");
  expect_round_trip({tensor_of(DType::kF32, {0, 3}, {})}, "f32[0,3] dense<\"0x\">");
}

TEST(Text, scalars_of_every_small_float_code_survive) {
  for (const DType dtype :
       {DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E8M0FNU}) {
    for (int code = 0; code < 256; ++code) {
      const Attr attr{tensor_of(dtype, {}, {static_cast<unsigned char>(code)})};
      EXPECT_EQ(only_attr(parse(print(module_with(attr)), "t.jir")), attr) << code;
    }
  }
}

TEST(Text, regions_nest) {
  auto outer = std::make_shared<Function>(*doubling());
  outer->name = "body";
  outer->result_names = {"y"};
  outer->eqns[0].attrs = {{"inner", {doubling()}}};
  const Module module = module_with({Region(outer)});
  const std::string text = print(module);
  EXPECT_EQ(text,
            "func @f(%x: f32[]) {\n"
            "  %y: f32[] = p %x {a = @body { (%v: f32[3]) -> (%y)\n"
            "    %w: f32[3] = add %v %v {inner = { (%v: f32[3])\n"
            "      %w: f32[3] = add %v %v\n"
            "      return %w\n"
            "    }}\n"
            "    return %w\n"
            "  }}\n"
            "  return %y\n"
            "}\n");
  const Module back = parse(text, "t.jir");
  EXPECT_EQ(print(back), text);
  EXPECT_EQ(only_attr(back), only_attr(module));
}

TEST(Text, comments_commas_and_space_do_not_matter) {
  const Module module = parse(R"(// a comment
    func @f(%x: f32[T//2, 4], // here too
            %y: f32[]) {  // and here
      %z:f32[]=add %y, %y{b=1,a=(2)}// no space
      return %z, %z })",
                              "t.jir");
  EXPECT_EQ(print(module),
            "func @f(%x: f32[floordiv(T, 2),4], %y: f32[]) {\n"
            "  %z: f32[] = add %y %y {a = (2), b = 1}\n"
            "  return %z %z\n"
            "}\n");
}

TEST(Text, options_hide_locations_and_constants) {
  const Module module = parse(kSample, "t.jir");
  const std::string text = print(module, {.locations = false, .constants = false});
  EXPECT_EQ(text.find("loc("), std::string::npos);
  EXPECT_NE(text.find("dense<#"), std::string::npos);
  EXPECT_NE(text.find("constant 0.5"), std::string::npos);
}

TEST(Text, one_equation_reads_like_a_jaxpr) {
  const Module module = parse(kSample, "t.jir");
  const Function& function = module.functions[0];
  EXPECT_EQ(print(function, function.eqns[0]),
            "%max:f32[B,4] = route_max[axes=(2), mode=#clip] %x:f32[B,4,2*T + 1]");
  EXPECT_EQ(print(function, function.eqns[3]),
            "%r:f32[2] = repeat[body=@step, flags=(true, false), shape=(B, 2*T + 1, 3)] %v:f32[2] "
            "%v:f32[2]");
  Eqn broken{.primitive = "p", .in = {99}, .out = {}, .attrs = {{"a", {std::string(500, 'x')}}}};
  EXPECT_LT(print(function, broken).size(), 120u);
}

// --- hostile text

TEST(Hostile, errors_name_line_and_column) {
  EXPECT_EQ(rejection("func @f() {\n  %x: f32[] = constant oops\n}"),
            "t.jir:2:24 cannot read .jir text: expected a value of type f32[]");
  for (std::string_view list :
       {"[1.0]", "[1.0, 2.0, 3.0]", "[1.0 2.0]", "[1.0, oops]", "[1.0, 2.0"}) {
    const std::string text =
        "func @f() {\n  %x: f32[2] = constant dense<" + std::string(list) + ">\n}";
    EXPECT_TRUE(rejection(text).starts_with("t.jir:2:")) << list;
  }
  EXPECT_EQ(rejection("func @f() {\n  return %x\n}"),
            "t.jir:2:10 cannot read .jir text: %x is not defined");
  EXPECT_EQ(rejection("funk"), "t.jir:1:1 cannot read .jir text: expected 'func' or 'constraint'");
}

TEST(Hostile, malformed_text_is_rejected) {
  const auto statement = [](std::string_view inside) {
    return "func @f(%x: f32[]) {\n" + std::string(inside) + "\nreturn %x\n}\n";
  };
  EXPECT_EQ(rejection(statement("%y: f32[] = exp %x")), "no error");
  for (const char* bad :
       {"%x: f32[] = exp %x",
        "%y: f32[] = exp %y",
        "%y: f32[], %y: f32[] = exp %x",
        "%y = exp %x",
        "%y: f31[] = exp %x",
        "%y: f32 = exp %x",
        "%y: f32[-1] = exp %x",
        "%y: f32[T+] = exp %x",
        "%y: f32[,] = exp %x",
        "%y: f32[99999999999999999999] = exp %x",
        "%y: f32[] = exp %x,",
        "%y: f32[] exp %x",
        "%y: f32[] = ",
        "%y: f32[] = exp %x {a}",
        "%y: f32[] = exp %x {a = }",
        "%y: f32[] = exp %x {a = 1, a = 2}",
        "%y: f32[] = exp %x {a = (1}",
        "%y: f32[] = exp %x {a = \"b}",
        "%y: f32[] = exp %x {a = \"\\q\"}",
        "%y: f32[] = exp %x {a = \"\\x4\"}",
        "%y: f32[] = exp %x {a = 1 2}",
        "%y: f32[] = exp %x {a = 1e999}",
        "%y: f32[] = exp %x {a = infinity(}",
        "%y: f32[] = exp %x {a = opaque}",
        "%y: f32[] = exp %x {a = f32[2] 1.0}",
        "%y: f32[] = exp %x {a = { (%z: f32[]) return %x }}",
        "%y: f32[] = exp %x loc(\"a\")",
        "%y: f32[] = exp %x loc(\"a\":-1)",
        "%y: f32[] = exp %x loc(\"a\":99999999999)",
        "%y: f32[2] = constant dense<\"0x00\">",
        "%y: f32[] = constant dense<\"0x0000803g\">",
        "%y: f32[] = constant dense<\"00000000\">",
        "%y: f32[T] = constant dense<\"0x00000000\">",
        "%y: f32[4611686018427387904,4] = constant dense<\"0x\">",
        "%y: i8[] = constant 300",
        "%y: i32[] = constant 1.5",
        "%y: u8[] = constant -1",
        "%y: f32[2] = constant 1.0",
        "%y: f32[] = constant 0.5 {file = \"a\"}",
        "%y: f32[] = constant dense<#1234>",
        "\x01\x02",
        "%y: f32[(a+b)*(c+d)*(e+f)*(g+h)*(i+j)*(k+l)*(m+n)*(o+p)*(q+r)*(s+t)*(u+v)] = exp %x"}) {
    EXPECT_NE(rejection(statement(bad)), "no error") << bad;
  }
  for (const char* bad : {"func @f(%x: f32[]) -> (%a, %b) { return %x }", "constraint \"T\"",
                          "func @f(%x: f32[], %x: f32[]) { return }", "func f() { return }",
                          "func @f() { return } }", "constraint T >= 1"}) {
    EXPECT_NE(rejection(bad), "no error") << bad;
  }
}

TEST(Hostile, deep_nesting_is_rejected) {
  const auto nested = [](const std::string& open, int depth) {
    std::string text = "func @f(%x: f32[]) { p {a = ";
    for (int i = 0; i < depth; ++i) text += open;
    return text;
  };
  for (const char* open : {"(", "R{a = ", "{ () p {a = "}) {
    EXPECT_NE(rejection(nested(open, 100000)).find("nested more than"), std::string::npos) << open;
  }
  EXPECT_NE(rejection("func @f(%x: f32[" + std::string(100000, '(')), "no error");
  EXPECT_EQ(rejection(nested("(", 190) + std::string(190, ')') + "} return }"), "no error");
}

TEST(Hostile, every_prefix_parses_or_is_rejected) {
  for (std::size_t length = 0; length < kSample.size(); ++length) {
    rejection(kSample.substr(0, length));
  }
}

TEST(Hostile, random_damage_never_crashes) {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string text(kSample);
    for (std::size_t damage = 1 + random() % 4; damage > 0; --damage) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
      }
    }
    const std::string code = code_of([&text] { verify(parse(text, "t.jir")); });
    const std::set<std::string> expected{"no error", "E010", "E030", "E031", "E032"};
    EXPECT_TRUE(expected.contains(code)) << code;
  }
}

TEST(Hostile, large_programs_take_linear_time) {
  Module module;
  Function function;
  function.name = "chain";
  ValueId last = function.add_value({DType::kF32, {module.dims->symbol("B"), 4}}, "x");
  function.params = {last};
  for (int i = 0; i < 100000; ++i) {
    const ValueId next = function.add_value(function.type(last), "x");
    const LocationId location = module.add_location(
        {.file = "m.py", .function = "f", .scope = "", .library = "", .line = i % 97});
    function.eqns.push_back(
        {.primitive = "tanh", .in = {last}, .out = {next}, .attrs = {}, .location = location});
    last = next;
  }
  function.results = {last};
  module.functions.push_back(std::move(function));
  EXPECT_EQ(module.locations.size(), 98u);
  verify(module);
  const std::string text = print(module);
  EXPECT_EQ(print(parse(text, "t.jir")), text);
}

// --- data

TEST(Values, names_are_unique_and_never_empty) {
  Function function;
  const auto name = [&function](std::string wanted) {
    return function.values[function.add_value({}, std::move(wanted))].name;
  };
  EXPECT_EQ(name("x"), "x");
  EXPECT_EQ(name("x"), "x_1");
  EXPECT_EQ(name("x_2"), "x_2");
  EXPECT_EQ(name("x"), "x_3");
  EXPECT_EQ(name(""), "0");
  EXPECT_EQ(name("1"), "1");
  EXPECT_EQ(name(""), "2");
  EXPECT_EQ(name("x_1"), "x_1_1");
  EXPECT_EQ(name("x_01"), "x_01");
  EXPECT_EQ(name("x_0"), "x_0");
  EXPECT_EQ(name("2"), "2_1");
  EXPECT_EQ(name("3"), "3");
  EXPECT_EQ(name(""), "4");
  function.values.push_back({.type = {}, .name = "direct"});
  EXPECT_EQ(name("direct"), "direct_1");
}

TEST(Locations, equal_ones_share_an_id) {
  Module module;
  const Location a{.file = "m.py", .function = "f", .scope = "s", .library = "", .line = 3};
  Location b = a;
  b.scope = "t";
  EXPECT_EQ(module.add_location(a), module.add_location(a));
  EXPECT_NE(module.add_location(a), module.add_location(b));
  EXPECT_EQ(module.add_location({}), kNoLocation);
  EXPECT_EQ(to_string(Location{}), "");
}

TEST(Attrs, equality_is_by_content) {
  EXPECT_EQ(Attr{std::int64_t{3}}, Attr{Dim(3)});
  EXPECT_EQ(hash(Attr{std::int64_t{3}}), hash(Attr{Dim(3)}));
  EXPECT_FALSE(Attr{std::int64_t{1}} == Attr{true});
  EXPECT_FALSE(Attr{std::int64_t{1}} == Attr{1.0});
  EXPECT_FALSE(Attr{0.0} == Attr{-0.0});
  EXPECT_FALSE(Attr{std::string("a")} == Attr{Enum{"a"}});
  EXPECT_EQ(Attr{doubling()}, Attr{doubling("another_name")});
  EXPECT_EQ(hash(Attr{doubling()}), hash(Attr{doubling("another_name")}));
  EXPECT_EQ(Attr{scalar(DType::kF32, 1)}, Attr{scalar(DType::kF32, 1)});
}

TEST(Attrs, regions_with_other_programs_differ) {
  const auto changed = [](const std::function<void(Function&)>& change) {
    auto region = std::make_shared<Function>(*doubling());
    change(*region);
    return Attr{Region(region)};
  };
  const Attr original{doubling()};
  EXPECT_EQ(changed([](Function&) {}), original);
  EXPECT_FALSE(changed([](Function& f) { f.eqns[0].primitive = "mul"; }) == original);
  EXPECT_FALSE(changed([](Function& f) { f.results = f.params; }) == original);
  EXPECT_FALSE(changed([](Function& f) { f.values[0].type.dtype = DType::kF64; }) == original);
  EXPECT_FALSE(changed([](Function& f) { f.eqns[0].attrs = {{"k", {None{}}}}; }) == original);
  EXPECT_FALSE(changed([](Function& f) { f.eqns.clear(); }) == original);
}

TEST(Attrs, are_found_by_name) {
  const Attrs attrs{{"a", {true}}, {"c", {false}}};
  EXPECT_EQ(find(attrs, "a"), &attrs[0].second);
  EXPECT_EQ(find(attrs, "c"), &attrs[1].second);
  EXPECT_EQ(find(attrs, "b"), nullptr);
  EXPECT_EQ(find(attrs, "d"), nullptr);
}

// --- the verifier

std::string broken(const std::function<void(Function&)>& damage) {
  Module module = parse(R"(func @f(%x: f32[4], %n: i32[]) {
    %c: f32[4] = constant dense<"0x00000000000000000000000000000000">
    %y: f32[4] = add %x %c
    %z: f32[4] = jit %y {jaxpr = { (%a: f32[4]) return %a }}
    return %z
  })",
                        "t.jir");
  verify(module);
  damage(module.functions[0]);
  try {
    verify(module);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "E030") << error.what();
    return error.message();
  }
  return "no error";
}

TEST(Verify, rejects_broken_data) {
  const std::string prefix = "function 'f' is malformed: ";
  EXPECT_EQ(broken([](Function& f) { f.eqns[0].in[0] = 4; }),
            prefix + "%z is used before it is defined");
  EXPECT_EQ(broken([](Function& f) { f.eqns[0].in[0] = 99; }), prefix + "value 99 does not exist");
  EXPECT_EQ(broken([](Function& f) { f.eqns[0].out[0] = 0; }), prefix + "%x is defined twice");
  EXPECT_EQ(broken([](Function& f) { f.params.push_back(99); }),
            prefix + "value 99 does not exist");
  EXPECT_EQ(broken([](Function& f) { f.results[0] = 99; }), prefix + "value 99 does not exist");
  EXPECT_EQ(broken([](Function& f) { f.values[3].name = "x"; }),
            prefix + "two values are named %x");
  EXPECT_EQ(broken([](Function& f) { f.values[3].name = ""; }), prefix + "a value has no name");
  EXPECT_EQ(broken([](Function& f) {
              f.result_names = {"a", "b"};
            }),
            prefix + "2 names for 1 results");
  EXPECT_EQ(broken([](Function& f) { f.eqns[0].location = 7; }),
            prefix + "an equation has an unknown location");
  EXPECT_EQ(broken([](Function& f) { f.eqns[0].primitive = ""; }),
            prefix + "an equation has no primitive");
  EXPECT_EQ(broken([](Function& f) {
              f.eqns[0].attrs = {{"b", {true}}, {"a", {true}}};
            }),
            prefix + "parameter 'a' is out of order or given twice");
  EXPECT_EQ(broken([](Function& f) {
              f.constants[0].tensor.shape = {2, 2};
            }),
            prefix + "constant %c of type f32[4] holds a f32[2,2]");
  EXPECT_EQ(broken([](Function& f) { f.eqns[1].in = {1}; }),
            prefix + "the operands of 'jaxpr' are (f32[4]) instead of (i32[])");
  EXPECT_EQ(broken([](Function& f) { f.values[4].type.dtype = DType::kF64; }),
            prefix + "the results of 'jaxpr' are (f32[4]) instead of (f64[4])");
}

TEST(Verify, looks_into_regions) {
  auto region = std::make_shared<Function>(*doubling());
  region->results = {7};
  EXPECT_EQ(code_of([&] { verify(module_with({List{{Region(region)}}})); }), "E030");
  EXPECT_EQ(code_of([&] { verify(module_with({Region()})); }), "E030");
}

std::string verdict(const std::string& statement) {
  return code_of([&statement] {
    verify(
        parse("func @f(%i: i32[], %c: f32[], %xs: f32[5,3]) {\n" + statement + "\nreturn\n}", "t"));
  });
}

TEST(Verify, control_flow_signatures_fit) {
  const std::string scan_ok =
      R"(%a: f32[], %ys: f32[5,2] = scan %c %xs {jaxpr = { (%d: f32[], %x: f32[3])
      %y: f32[2] = q %x
      return %d %y }, length = 5, num_carry = 1, num_consts = 0, reverse = false})";
  EXPECT_EQ(verdict(scan_ok), "no error");
  EXPECT_EQ(
      verdict(
          R"(%a: f32[] = scan %c %xs {jaxpr = { (%d: f32[], %x: f32[5,3]) return %d }, length = 5, num_carry = 1, num_consts = 0, reverse = false})"),
      "E030");
  EXPECT_EQ(
      verdict(
          R"(%a: f32[] = scan %c {jaxpr = { (%d: f32[]) return %d }, length = 5, num_carry = 1, num_consts = 5, reverse = false})"),
      "E030");
  EXPECT_EQ(
      verdict(
          R"(%a: f32[] = scan %c %i {jaxpr = { (%d: f32[], %x: i32[]) return %d }, length = 5, num_carry = 1, num_consts = 0, reverse = false})"),
      "E030");
  EXPECT_EQ(
      verdict(
          R"(%a: f32[] = while %c {body_jaxpr = { (%d: f32[]) return %d }, body_nconsts = 0, cond_jaxpr = { (%d: f32[]) %b: bool[] = t %d return %b }, cond_nconsts = 0})"),
      "no error");
  EXPECT_EQ(
      verdict(
          R"(%a: f32[] = while %c {body_jaxpr = { (%d: f32[]) return %d }, body_nconsts = 0, cond_jaxpr = { (%d: f32[]) return %d }, cond_nconsts = 0})"),
      "E030");
  EXPECT_EQ(
      verdict(
          R"(%a: f32[] = cond %i %c {branches = ({ (%d: f32[]) return %d }, { (%d: f32[]) return %d })})"),
      "no error");
  EXPECT_EQ(
      verdict(R"(%a: f32[] = cond %i %c {branches = ({ (%d: f32[]) return %d }, { () return })})"),
      "E030");
}

TEST(Verify, results_have_names_of_their_own) {
  const auto code = [](const char* text) { return code_of([&] { verify(parse(text, "t")); }); };
  EXPECT_EQ(code("func @f(%x: f32[2]) -> (%y) { return %x }"), "no error");
  EXPECT_EQ(code("func @f(%x: f32[2]) -> (%x) { return %x }"), "E030");
  EXPECT_EQ(code("func @f(%x: f32[2]) -> (%y, %y) { return %x %x }"), "E030");
}

TEST(Verify, symbolic_sizes_that_may_agree_pass) {
  EXPECT_EQ(code_of([] {
              verify(
                  parse("func @f(%x: f32[floordiv(mod(T, 2) + T, 2)]) {\n%y: f32[floordiv(T + 1, "
                        "2)] = jit %x {jaxpr = { (%a: "
                        "f32[floordiv(T + 1, 2)]) return %a }}\nreturn %y }",
                        "t"));
            }),
            "no error");
  EXPECT_EQ(code_of([] {
              verify(
                  parse("func @f(%x: f32[B]) {\n%y: f32[B + 1] = jit %x {jaxpr = { (%a: "
                        "f32[B]) return %a }}\nreturn %y }",
                        "t"));
            }),
            "E030");
}

}  // namespace
}  // namespace jaxport::front
