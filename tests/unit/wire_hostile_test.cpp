// SPDX-License-Identifier: Apache-2.0
// Files that are truncated, corrupt or malicious: an Error E052, never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>

#include "wire_sample.h"

namespace jaxport::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// --- protobuf by hand, for what our own writer never writes

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string number(int field, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(static_cast<std::uint64_t>(value));
}
std::string block(int field, const std::string& content) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(content.size()) + content;
}
std::string float_bits(float value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string model_of(const std::string& graph) {
  return number(1, 10) + block(7, graph) + block(8, number(2, 23));
}
std::string model_with_tensor(const std::string& tensor) {
  return model_of(block(5, block(8, "w") + tensor));
}
std::string node(const std::string& in, const std::string& out, const std::string& rest = "") {
  return block(1, block(1, in) + block(2, out) + block(4, "Exp") + rest);
}
std::string value(int field, const std::string& name) { return block(field, block(1, name)); }

Tensor tensor_of(const std::string& model) {
  return read_back(model).graph.initializers.at(0).view.base;
}
std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.size(); ++i) result.push_back(tensor.at(i));
  return result;
}

constexpr int kF32 = 1, kU8 = 2, kI8 = 3, kI64 = 7, kF16 = 10, kF64 = 11, kU32 = 12, kI4 = 22;

TEST(TypedData, numbers_are_read_from_the_field_of_their_type) {
  const auto read = [](int type, std::int64_t count, const std::string& data) {
    return elements(tensor_of(model_with_tensor(number(1, count) + number(2, type) + data)));
  };
  using List = std::vector<double>;
  EXPECT_EQ(read(kF32, 2, block(4, float_bits(1.5f) + float_bits(-2))), (List{1.5, -2}));
  EXPECT_EQ(read(kI8, 3, block(5, varint(1) + varint(-1) + varint(127))), (List{1, -1, 127}));
  EXPECT_EQ(read(kU8, 1, number(5, 200)), List{200});
  EXPECT_EQ(read(kF16, 1, number(5, 0x3c00)), List{1});
  EXPECT_EQ(read(kI64, 2, block(7, varint(-5) + varint(6))), (List{-5, 6}));
  EXPECT_EQ(read(kU32, 1, block(11, varint(4'000'000'000))), List{4e9});
  EXPECT_EQ(read(kI4, 3, block(5, varint(0x2f) + varint(0x03))), (List{-1, 2, 3}));
}

TEST(TypedData, numbers_may_come_one_by_one) {
  const std::string one = varint(4 << 3 | 5) + float_bits(1), two = varint(4 << 3 | 5);
  const std::string tensor = number(1, 2) + number(2, kF32) + one + two + float_bits(2);
  EXPECT_EQ(elements(tensor_of(model_with_tensor(tensor))), (std::vector<double>{1, 2}));
}

TEST(TypedData, must_fit_the_shape_and_the_type) {
  const auto error = [](int type, std::int64_t count, const std::string& data) {
    return read_error(model_with_tensor(number(1, count) + number(2, type) + data));
  };
  EXPECT_THAT(error(kF32, 2, block(4, float_bits(1))), HasSubstr("has 4 bytes instead of 8"));
  EXPECT_THAT(error(kF32, 2, block(9, "123")), HasSubstr("has 3 bytes instead of 8"));
  EXPECT_THAT(error(kI64, 2, block(7, varint(1))), HasSubstr("has 8 bytes instead of 16"));
  EXPECT_THAT(error(kF64, 1, block(4, float_bits(1))), HasSubstr("in a wrong field"));
  EXPECT_THAT(error(kF32, 1, ""), HasSubstr("has 0 bytes instead of 4"));
  EXPECT_THAT(error(kF32, 1, block(4, float_bits(1)) + block(9, "1234")), HasSubstr("two places"));
  EXPECT_THAT(error(kI64, 1, block(7, "\x80\x80")), HasSubstr("malformed"));
  EXPECT_THAT(error(8, 1, block(6, "text")), HasSubstr("does not support"));
  EXPECT_THAT(error(77, 1, ""), HasSubstr("element type 77"));
}

TEST(Hostile, every_prefix_of_a_model_loads_or_throws) {
  const std::string bytes = to_bytes(rich_model());
  std::size_t loaded = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string error = read_error(bytes.substr(0, size));
    if (error.empty()) {
      ++loaded;
    } else {
      EXPECT_THAT(error, StartsWith("error[JXP-E052]: cannot read model: "));
    }
  }
  EXPECT_LE(loaded, 10u);  // only cuts between the fields after the graph
}

TEST(Hostile, every_corrupt_byte_loads_or_throws) {
  const std::string bytes = to_bytes(rich_model());
  std::mt19937 random(20240229);
  for (int round = 0; round < 4000; ++round) {
    std::string corrupt = bytes;
    corrupt[random() % bytes.size()] = static_cast<char>(random());
    if (round % 2 == 1) corrupt[random() % bytes.size()] = static_cast<char>(random());
    for (bool check_names : {true, false}) {
      const std::string error = read_error(corrupt, {.check_names = check_names});
      if (error.empty()) continue;
      EXPECT_THAT(error, StartsWith("error[JXP-E052]: ")) << round;
    }
  }
}

TEST(Hostile, random_bytes_throw) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_THAT(read_error(bytes), StartsWith("error[JXP-E052]: ")) << round;
  }
}

TEST(Hostile, errors_say_where) {
  const std::string bad_node = block(1, block(4, "Exp") + varint(5 << 3 | 2) + varint(100));
  const std::string error = read_error(model_of(node("", "y") + bad_node));
  EXPECT_THAT(error, HasSubstr("a field runs past the end of its message"));
  EXPECT_THAT(error, HasSubstr("at byte 25 in graph.node[1]"));
  EXPECT_THAT(error, HasSubstr("help: check that the file is a complete ONNX model"));
}

TEST(Hostile, graphs_nested_too_deeply) {
  std::string graph = node("", "y");
  for (int depth = 0; depth < 2000; ++depth) {
    graph = node("", "y", block(5, block(1, "body") + block(6, graph)));
  }
  EXPECT_THAT(read_error(model_of(graph)), HasSubstr("nested too deeply"));
}

TEST(Hostile, gigantic_shapes) {
  const auto error = [](std::int64_t a, std::int64_t b, const std::string& data) {
    const std::string shape = number(1, a) + number(1, b);
    return read_error(model_with_tensor(shape + number(2, kF32) + data));
  };
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_THAT(error(huge, huge, block(9, "")), HasSubstr("cannot exist"));
  EXPECT_THAT(error(huge, 1, block(9, "")), HasSubstr("cannot exist"));
  EXPECT_THAT(error(-1, 1, block(9, "")), HasSubstr("cannot exist"));
  EXPECT_THAT(error(std::int64_t{1} << 40, 1, block(4, "1234")), HasSubstr("4 bytes instead of"));
  EXPECT_THAT(error(std::int64_t{1} << 40, 0, block(9, "")), IsEmpty());
}

TEST(Hostile, wrong_wire_types) {
  EXPECT_THAT(read_error(number(7, 3)), HasSubstr("field 7 has a wrong wire type"));
  EXPECT_THAT(read_error(block(1, "ten")), HasSubstr("field 1 has a wrong wire type"));
  EXPECT_THAT(read_error(model_of(number(1, 1))), HasSubstr("field 1 has a wrong wire type"));
  EXPECT_THAT(read_error("\x0b"), HasSubstr("malformed protobuf"));  // a group
  EXPECT_THAT(read_error("\x08" + std::string(11, '\x80')), HasSubstr("malformed protobuf"));
}

TEST(Hostile, not_a_model) {
  EXPECT_THAT(read_error(""), HasSubstr("there is no graph"));
  EXPECT_THAT(read_error(number(1, 10)), HasSubstr("there is no graph"));
  EXPECT_THAT(read_error(model_of("") + block(7, "")), HasSubstr("there are two graphs"));
}

TEST(Hostile, names_that_make_no_graph) {
  const auto expect = [](const std::string& graph, const std::string& message) {
    EXPECT_THAT(read_error(model_of(graph)), HasSubstr(message));
    EXPECT_THAT(read_error(model_of(graph), {.check_names = false}), IsEmpty());
  };
  const std::string x = value(11, "x"), y = value(12, "y");
  const std::string w = block(5, block(8, "w") + number(1, 0) + number(2, kF32));
  expect(x + node("a", "b") + node("b", "a") + value(12, "a"), "value 'a' is used but not defined");
  expect(x + node("x", "y") + node("x", "y") + y, "value 'y' is defined twice");
  expect(x + node("x", "x") + y, "value 'x' is defined twice");
  expect(x + x, "value 'x' is defined twice");
  expect(w + w, "initializer 'w' is defined twice");
  expect(x + y, "value 'y' is used but not defined");
  const std::string body = block(1, "body") + block(6, node("z", "inner") + value(12, "inner"));
  expect(x + node("x", "z", block(5, body)), "value 'z' is used but not defined");
}

TEST(Hostile, initializer_may_be_the_default_of_an_input) {
  const std::string w = block(5, block(8, "w") + number(1, 0) + number(2, kF32));
  EXPECT_THAT(read_error(model_of(value(11, "w") + w)), IsEmpty());
}

TEST(Hostile, malformed_nodes_and_attributes) {
  const auto error = [](const std::string& attribute) {
    return read_error(model_of(node("", "y", attribute)));
  };
  EXPECT_THAT(read_error(model_of(block(1, ""))), HasSubstr("a node has no op_type"));
  EXPECT_THAT(error(block(5, number(3, 1))), HasSubstr("an attribute has no name"));
  EXPECT_THAT(error(block(5, block(1, "a") + number(3, 1) + block(4, "s"))),
              HasSubstr("values of two kinds"));
  EXPECT_THAT(error(block(5, block(1, "a") + number(3, 1) + number(20, 1))),
              HasSubstr("another kind than it declares"));
  EXPECT_THAT(error(block(5, block(1, "a") + number(20, 9))), HasSubstr("does not support"));
  EXPECT_THAT(error(block(5, block(1, "a") + block(21, "r"))), HasSubstr("local functions"));
  const std::string a = block(5, block(1, "a") + number(20, 2));
  EXPECT_THAT(error(a), IsEmpty());  // zero need not be written
  EXPECT_THAT(error(a + a), HasSubstr("attribute 'a' is given twice"));
}

TEST(Hostile, what_a_model_cannot_hold_is_refused) {
  EXPECT_THAT(read_error(model_of("") + block(25, "")), HasSubstr("a function has no name"));
  EXPECT_THAT(read_error(model_of("") + block(25, block(1, "f") + block(6, "a"))),
              HasSubstr("attributes of local functions"));
  EXPECT_THAT(read_error(model_of("") + block(20, "")), HasSubstr("training information"));
  EXPECT_THAT(read_error(model_of(block(15, ""))), HasSubstr("sparse initializers"));
}

// --- files

std::string load_error(const std::filesystem::path& path) {
  try {
    load(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string external(const std::string& location, const std::string& offset,
                     const std::string& length) {
  const auto entry = [](const std::string& key, const std::string& text) {
    return block(13, block(1, key) + block(2, text));
  };
  return model_with_tensor(number(1, 2) + number(2, kF32) + entry("location", location) +
                           entry("offset", offset) + entry("length", length) + number(14, 1));
}

class ExternalFile : public ::testing::Test {
 protected:
  ExternalFile() {
    std::filesystem::create_directory(folder_ / "models");
    write("models/w.bin", float_bits(1) + float_bits(2) + float_bits(3));
    write("secret.bin", float_bits(4) + float_bits(5));
  }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string error(const std::string& location, const std::string& offset = "0",
                    const std::string& length = "8") {
    write("models/m.onnx", external(location, offset, length));
    return load_error(folder_ / "models/m.onnx");
  }
  TemporaryFolder folder_;
};

TEST_F(ExternalFile, is_read_at_its_offset) {
  EXPECT_THAT(error("w.bin", "4"), IsEmpty());
  const onnx::Model m = load(folder_ / "models/m.onnx");
  EXPECT_EQ(elements(m.graph.initializers[0].view.base), (std::vector<double>{2, 3}));
}

TEST_F(ExternalFile, outside_the_folder_of_the_model_is_refused) {
  const char* outside = "is outside the folder of the model";
  EXPECT_THAT(error("../secret.bin"), HasSubstr(outside));
  EXPECT_THAT(error((folder_ / "secret.bin").string()), HasSubstr(outside));
  EXPECT_THAT(error("a/../../secret.bin"), HasSubstr(outside));
  EXPECT_THAT(error(""), HasSubstr(outside));
  std::filesystem::create_symlink("../secret.bin", folder_ / "models/link.bin");
  EXPECT_THAT(error("link.bin"), HasSubstr(outside));
}

TEST_F(ExternalFile, too_short_or_missing_is_refused) {
  EXPECT_THAT(error("w.bin", "8"), HasSubstr("has 12 bytes; a tensor needs 8 bytes from 8 on"));
  EXPECT_THAT(error("w.bin", "18446744073709551615"), HasSubstr("has 12 bytes"));
  EXPECT_THAT(error("w.bin", "-1"), HasSubstr("'-1' for a number"));
  EXPECT_THAT(error("w.bin", "0", "12"), HasSubstr("of 12 bytes for a tensor of 8"));
  EXPECT_THAT(error("gone.bin"), HasSubstr("there is no such file"));
  EXPECT_THAT(error("."), HasSubstr("it is a folder"));
}

TEST(Load, missing_empty_and_strange_files) {
  const TemporaryFolder folder;
  std::ofstream(folder / "empty.onnx").flush();
  EXPECT_THAT(load_error(folder / "none.onnx"), HasSubstr("none.onnx': there is no such file"));
  EXPECT_THAT(load_error(folder / "empty.onnx"), HasSubstr("the file is empty"));
  EXPECT_THAT(load_error(folder / ""), HasSubstr("it is a folder"));
  EXPECT_THAT(load_error("/dev/null"), HasSubstr("it is not a regular file"));
}

TEST(Load, errors_name_the_file) {
  const TemporaryFolder folder;
  std::ofstream(folder / "m.onnx") << "hello world";
  EXPECT_THAT(load_error(folder / "m.onnx"), HasSubstr("m.onnx': "));
}

}  // namespace
}  // namespace jaxport::wire
