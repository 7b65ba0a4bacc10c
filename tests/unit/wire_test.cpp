// SPDX-License-Identifier: Apache-2.0
// Writing models and reading them back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include "wire_sample.h"

namespace jaxport::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const onnx::Initializer& initializer(const onnx::Model& model, std::string_view name) {
  return *std::ranges::find(model.graph.initializers, name, [&](const onnx::Initializer& i) {
    return std::string_view(model.values[i.value].name);
  });
}

std::string save_error(const onnx::Model& model, const std::filesystem::path& path,
                       const WriteOptions& options = {}) {
  try {
    save(model, path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RoundTrip, bytes_of_a_model_that_was_read_are_the_same) {
  const std::string bytes = to_bytes(rich_model());
  EXPECT_EQ(to_bytes(read_back(bytes)), bytes);
}

TEST(RoundTrip, model_fields_survive) {
  const onnx::Model m = read_back(to_bytes(rich_model()));
  EXPECT_EQ(m.ir_version, 10);
  EXPECT_EQ(m.opset(), 23);
  EXPECT_EQ(m.opset("com.example"), 1);
  EXPECT_EQ(m.producer_name, "jaxport");
  EXPECT_EQ(m.producer_version, "0.1.0");
  EXPECT_EQ(m.domain, "org.example");
  EXPECT_EQ(m.doc, "everything");
  EXPECT_EQ(m.model_version, 3);
  EXPECT_EQ(m.graph.name, "rich");
  EXPECT_THAT(m.metadata, ElementsAre(std::pair<std::string, std::string>("a", "1"),
                                      std::pair<std::string, std::string>("b", "two")));
}

TEST(RoundTrip, nodes_and_attributes_survive) {
  const onnx::Model original = rich_model(), m = read_back(to_bytes(original));
  ASSERT_EQ(m.graph.nodes.size(), original.graph.nodes.size());
  const onnx::Node &gemm = m.graph.nodes[0], &custom = m.graph.nodes[1];
  EXPECT_EQ(gemm.op, "Gemm");
  EXPECT_EQ(gemm.in.at(2), onnx::kAbsent);
  EXPECT_EQ(custom.domain, "com.example");
  EXPECT_EQ(custom.out.at(0), onnx::kAbsent);
  for (std::size_t node = 0; node < 2; ++node) {
    EXPECT_EQ(m.graph.nodes[node].attrs, original.graph.nodes[node].attrs);
  }
}

TEST(RoundTrip, types_survive) {
  const onnx::Model m = read_back(to_bytes(rich_model()));
  const auto type = [&](onnx::ValueId id) { return m.values[id].type; };
  EXPECT_EQ(type(m.graph.inputs[0])->shape->at(0).str(), "B");
  EXPECT_EQ(type(m.graph.inputs[1]), (onnx::TensorType{DType::kBool, Dims{}}));
  EXPECT_EQ(type(m.graph.inputs[2])->shape, std::nullopt);
  EXPECT_EQ(type(m.graph.nodes[0].out[0])->shape->at(0).str(), "2*B + 1");
  EXPECT_EQ(type(m.graph.outputs[1])->shape->at(0).str(), "?0");
  EXPECT_EQ(type(m.graph.outputs[0]), std::nullopt);
}

TEST(RoundTrip, subgraphs_see_the_values_around_them) {
  const onnx::Model m = read_back(to_bytes(rich_model()));
  const auto& graph = std::get<std::shared_ptr<onnx::Graph>>(m.graph.nodes[2].attrs[1].value);
  EXPECT_EQ(graph->name, "then");
  EXPECT_EQ(graph->nodes[0].in[0], m.graph.nodes[1].out[1]);
  EXPECT_EQ(graph->nodes[0].in[1], graph->initializers[0].value);
  EXPECT_EQ(graph->initializers[0].view.base.at(0), 2.5);
}

TEST(RoundTrip, equal_names_in_two_subgraphs_are_two_values) {
  Sketch s;
  const auto flag = s.input("flag", {DType::kBool, Dims{}});
  auto one = branch(s, "same", "Mul", flag), two = branch(s, "same", "Add", flag);
  const auto r = s.value("r");
  s.node("If", {flag}, {r}).attrs = {{"else_branch", one}, {"then_branch", two}};
  s.output(r);
  const onnx::Model m = read_back(to_bytes(s.model));
  const auto& attrs = m.graph.nodes[0].attrs;
  EXPECT_NE(std::get<std::shared_ptr<onnx::Graph>>(attrs[0].value)->outputs,
            std::get<std::shared_ptr<onnx::Graph>>(attrs[1].value)->outputs);
}

TEST(RoundTrip, every_dtype_keeps_its_bytes) {
  for (int number = 1; number < 32; ++number) {
    const std::optional<DType> dtype = dtype_from_onnx(number);
    if (!dtype || *dtype == DType::kString) continue;
    const Tensor tensor = counting(*dtype, {3, 5});
    const onnx::Model m = read_back(to_bytes(add_model(tensor)));
    EXPECT_TRUE(same_bytes(initializer(m, "w").view.base, tensor)) << name_of(*dtype);
  }
}

TEST(RoundTrip, negative_nibbles_are_sign_extended) {
  MutableTensor tensor = allocate(DType::kI4, {3});
  tensor.as<std::int8_t>()[0] = -8;
  tensor.as<std::int8_t>()[1] = 7;
  tensor.as<std::int8_t>()[2] = -1;
  const onnx::Model m = read_back(to_bytes(add_model(tensor.tensor)));
  EXPECT_TRUE(same_bytes(initializer(m, "w").view.base, tensor.tensor));
}

TEST(Write, four_bit_elements_are_two_to_a_byte) {
  const std::string odd = to_bytes(add_model(counting(DType::kU4, {5})));
  EXPECT_THAT(odd, HasSubstr(std::string("\x4a\x03\x10\x32\x04", 5)));  // raw_data of 3 bytes
}

TEST(Write, four_bit_elements_of_a_strided_view_are_packed_in_its_order) {
  Sketch s;
  StridedView transposed{counting(DType::kU4, {2, 3}), 0, {3, 2}, {1, 3}};
  s.output(s.initializer("w", transposed, {3, 2}));
  const onnx::Model m = read_back(to_bytes(s.model));
  const Tensor& base = initializer(m, "w").view.base;
  std::vector<std::int64_t> elements;
  for (std::int64_t i = 0; i < base.size(); ++i) elements.push_back(base.int_at(i));
  EXPECT_THAT(elements, ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Write, views_are_written_in_their_own_order_and_regrouped) {
  Sketch s;
  s.output(s.initializer("transposed", {floats({2, 3}), 0, {3, 2}, {1, 3}}, {6}));
  s.output(s.initializer("repeated", {floats({2}), 1, {2, 2}, {0, -1}}, {2, 2}));
  const onnx::Model m = read_back(to_bytes(s.model));
  EXPECT_THAT(initializer(m, "transposed").view.base.as<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(initializer(m, "repeated").view.base.as<float>(), ElementsAre(1, 0, 1, 0));
  EXPECT_EQ(initializer(m, "transposed").shape, Shape{6});
}

TEST(Write, types_of_intermediate_values_are_value_info) {
  Sketch s;
  const onnx::TensorType type{DType::kF32, Dims{3}};
  const auto x = s.input("x", type), h = s.value("hidden", type), y = s.value("y", type);
  s.node("Exp", {x}, {h});
  s.node("Log", {h}, {y});
  s.output(y);
  const std::string bytes = to_bytes(s.model);
  EXPECT_THAT(bytes, HasSubstr("\x6a\x14\n\x06hidden"));  // value_info, length, name
  EXPECT_EQ(read_back(bytes).values.at(1).type, type);
}

TEST(Write, origins_become_metadata_of_nodes) {
  const onnx::Model m = read_back(to_bytes(rich_model()));
  EXPECT_THAT(
      m.graph.nodes[0].metadata,
      ElementsAre(std::pair<std::string, std::string>("jaxport.source", "net.py:7 in Net.__call__"),
                  std::pair<std::string, std::string>("jaxport.scope", "blocks.3")));
}

TEST(Write, origins_can_be_left_out) {
  const onnx::Model m = read_back(to_bytes(rich_model(), {.origins = false}));
  EXPECT_TRUE(m.graph.nodes[0].metadata.empty());
  EXPECT_FALSE(m.graph.nodes[1].metadata.empty());
}

TEST(Write, producer_is_jaxport_unless_the_model_says_otherwise) {
  EXPECT_EQ(read_back(to_bytes(add_model(floats({2})))).producer_name, "jaxport");
}

TEST(Write, same_model_same_bytes) { EXPECT_EQ(to_bytes(rich_model()), to_bytes(rich_model())); }

TEST(Write, value_without_a_name_is_our_fault) {
  onnx::Model m = add_model(floats({2}));
  m.values[0].name.clear();
  EXPECT_THROW(
      {
        try {
          to_bytes(m);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), "BUG");
          throw;
        }
      },
      Error);
}

TEST(Save, file_holds_the_bytes_of_the_model_and_nothing_else_is_left) {
  const TemporaryFolder folder;
  const std::uint64_t written = save(rich_model(), folder / "m.onnx");
  EXPECT_EQ(content(folder / "m.onnx"), to_bytes(rich_model()));
  EXPECT_EQ(written, to_bytes(rich_model()).size());
  EXPECT_THAT(folder.files(), ElementsAre("m.onnx"));
}

TEST(Save, large_tensors_survive_the_buffer_of_the_file) {
  const TemporaryFolder folder;
  Sketch s;
  s.output(s.initializer("large", floats({700'000})));
  s.output(s.initializer("small", floats({3})));
  s.output(s.initializer("medium", floats({50'000})));
  s.output(s.initializer("strided", {floats({600, 700}), 0, {700, 600}, {1, 700}}, {700, 600}));
  save(s.model, folder / "m.onnx");
  EXPECT_EQ(content(folder / "m.onnx"), to_bytes(s.model));
}

TEST(Save, existing_file_is_replaced) {
  const TemporaryFolder folder;
  std::ofstream(folder / "m.onnx") << "old";
  save(rich_model(), folder / "m.onnx");
  EXPECT_EQ(content(folder / "m.onnx"), to_bytes(rich_model()));
}

TEST(Save, model_can_be_saved_over_the_file_it_was_read_from) {
  const TemporaryFolder folder;
  const onnx::Model original = add_model(floats({500'000}));
  save(original, folder / "m.onnx", {.inline_limit = 0});
  save(load(folder / "m.onnx"), folder / "m.onnx", {.inline_limit = 0});
  EXPECT_EQ(to_bytes(load(folder / "m.onnx")), to_bytes(original));
}

onnx::Model three_tensors() {
  Sketch s;
  s.output(s.initializer("large", floats({300'000})));  // 1.2 MB
  s.output(s.initializer("small", floats({8})));
  s.output(s.initializer("medium", floats({1'000})));
  s.output(s.initializer("larger", floats({400'000})));
  return std::move(s.model);
}

TEST(ExternalData, large_tensors_go_beside_the_model_once_it_exceeds_the_limit) {
  const TemporaryFolder folder;
  const std::uint64_t written = save(three_tensors(), folder / "m.onnx", {.inline_limit = 1'000});
  EXPECT_THAT(folder.files(), ElementsAre("m.onnx", "m.onnx.data"));
  const std::string model = content(folder / "m.onnx"), data = content(folder / "m.onnx.data");
  EXPECT_EQ(written, model.size() + data.size());
  EXPECT_LT(model.size(), 1'000);
  EXPECT_THAT(model, HasSubstr("m.onnx.data"));
  EXPECT_EQ(to_bytes(load(folder / "m.onnx")), to_bytes(three_tensors()));
}

TEST(ExternalData, tensors_start_where_a_runtime_can_map_them) {
  const TemporaryFolder folder;
  save(three_tensors(), folder / "m.onnx", {.inline_limit = 0});
  const onnx::Model m = load(folder / "m.onnx");
  const std::byte* start = initializer(m, "large").view.base.data.get();
  EXPECT_EQ((initializer(m, "medium").view.base.data.get() - start) % 4096, 0);
  EXPECT_EQ((initializer(m, "larger").view.base.data.get() - start) % 65536, 0);
}

TEST(ExternalData, small_model_has_none) {
  const TemporaryFolder folder;
  save(three_tensors(), folder / "m.onnx", {.external_threshold = 1});
  EXPECT_THAT(folder.files(), ElementsAre("m.onnx"));
}

TEST(ExternalData, tensors_below_the_threshold_stay_in_the_model) {
  const TemporaryFolder folder;
  save(three_tensors(), folder / "m.onnx",
       {.external_threshold = 1'500'000, .inline_limit = 1'000});
  EXPECT_EQ(std::filesystem::file_size(folder / "m.onnx.data"), 1'600'000);
  save(three_tensors(), folder / "n.onnx",
       {.external_threshold = 2'000'000, .inline_limit = 1'000});
  EXPECT_FALSE(std::filesystem::exists(folder / "n.onnx.data"));
}

TEST(ExternalData, initializers_of_subgraphs_go_there_too) {
  const TemporaryFolder folder;
  save(rich_model(), folder / "m.onnx", {.external_threshold = 1, .inline_limit = 0});
  EXPECT_EQ(to_bytes(load(folder / "m.onnx")), to_bytes(rich_model()));
  EXPECT_EQ(std::filesystem::file_size(folder / "m.onnx.data"), 3 * 4096 + 3);
}

// A broadcast view: 2.2 GB in the file, four bytes in memory.
onnx::Model huge_model() {
  Sketch s;
  const std::int64_t count = 275'000'000;
  s.output(s.initializer("a", {floats({1}), 0, {count}, {0}}, {count}));
  s.output(s.initializer("b", {floats({1}), 0, {count}, {0}}, {count}));
  return std::move(s.model);
}

// A folder in memory when there is room: a slow disk would need minutes.
std::filesystem::path roomy_folder() {
  std::error_code problem;
  const auto space = std::filesystem::space("/dev/shm", problem);
  const bool fits = !problem && space.available > 3'000'000'000;
  return fits ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
}

TEST(ExternalData, models_over_two_gigabytes) {
  if (std::getenv("JAXPORT_SKIP_SLOW") != nullptr) GTEST_SKIP() << "JAXPORT_SKIP_SLOW is set";
  const TemporaryFolder folder(roomy_folder());
  EXPECT_GT(save(huge_model(), folder / "m.onnx"), 2'200'000'000);
  const onnx::Model m = load(folder / "m.onnx");
  EXPECT_EQ(initializer(m, "b").shape, Shape{275'000'000});
  EXPECT_EQ(initializer(m, "b").view.base.at(274'999'999), 0);
}

TEST(ToBytes, models_over_two_gigabytes_are_refused) {
  try {
    to_bytes(huge_model());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "E050");
    EXPECT_THAT(error.what(), HasSubstr("2 GiB"));
  }
}

// An If in the branch of an If, and so on.
onnx::Model nested_model(int levels) {
  auto graph = std::make_shared<onnx::Graph>();
  for (int level = 1; level < levels; ++level) {
    onnx::Node node;
    node.op = "If";
    node.attrs = {{"then_branch", graph}};
    graph = std::make_shared<onnx::Graph>();
    graph->nodes.push_back(std::move(node));
  }
  onnx::Model model;
  model.graph = *graph;
  return model;
}

TEST(ToBytes, graphs_in_more_graphs_than_readers_follow_are_refused) {
  EXPECT_NO_THROW(to_bytes(nested_model(32)));
  try {
    to_bytes(nested_model(33));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "E050");
    EXPECT_THAT(error.what(), HasSubstr("33 graphs inside each other"));
  }
}

TEST(Save, too_large_even_with_external_data) {
  const TemporaryFolder folder;
  const WriteOptions options{.external_threshold = std::uint64_t{1} << 40};
  EXPECT_THAT(save_error(huge_model(), folder / "m.onnx", options), HasSubstr("JXP-E050"));
  EXPECT_THAT(folder.files(), ElementsAre());
}

TEST(SaveFails, when_the_folder_does_not_exist) {
  const TemporaryFolder folder;
  const std::string error = save_error(rich_model(), folder / "none" / "m.onnx");
  EXPECT_THAT(error, HasSubstr("error[JXP-E051]: cannot write"));
  EXPECT_THAT(error, HasSubstr("is not an existing folder"));
  EXPECT_THAT(folder.files(), ElementsAre());
}

TEST(SaveFails, when_the_path_is_a_folder) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "m.onnx");
  EXPECT_THAT(save_error(rich_model(), folder / "m.onnx"), HasSubstr("it is a folder"));
  EXPECT_THAT(save_error(rich_model(), ""), HasSubstr("JXP-E051"));
  EXPECT_THAT(folder.files(), ElementsAre("m.onnx"));
}

TEST(SaveFails, when_the_disk_is_full) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  EXPECT_THAT(save_error(rich_model(), "/dev/full"), HasSubstr("the disk is full"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

// Files of this process may not grow beyond `bytes` while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_ = {};
};

TEST(SaveFails, in_the_middle_and_leaves_no_file) {
  const TemporaryFolder folder;
  std::ofstream(folder / "m.onnx") << "old";
  std::string inline_error, external_error;
  {
    const FileSizeLimit limit(2'000'000);
    inline_error = save_error(three_tensors(), folder / "m.onnx");
    external_error = save_error(three_tensors(), folder / "m.onnx", {.inline_limit = 0});
  }
  EXPECT_THAT(inline_error, HasSubstr("m.onnx': it exceeds the size limit"));
  EXPECT_THAT(external_error, HasSubstr("m.onnx.data': it exceeds the size limit"));
  EXPECT_THAT(folder.files(), ElementsAre("m.onnx"));
  EXPECT_EQ(content(folder / "m.onnx"), "old");
}

TEST(SaveFails, when_only_the_model_cannot_be_renamed) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "m.onnx.data" / "x");
  EXPECT_NE(save_error(three_tensors(), folder / "m.onnx", {.inline_limit = 0}), "");
  EXPECT_THAT(folder.files(), ElementsAre("m.onnx.data"));
}

}  // namespace
}  // namespace jaxport::wire
