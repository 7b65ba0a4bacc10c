// SPDX-License-Identifier: Apache-2.0
// Models that the tests of src/wire write and read.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jaxport/error.h"
#include "onnx/ir.h"
#include "wire/wire.h"

namespace jaxport::wire {

// A folder that is empty at the start of a test and gone at its end.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(
      const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "jaxport-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  std::filesystem::path path_;
};

// Elements 0, 1, 2, … modulo 8, in the dtype's own memory form.
inline Tensor counting(DType dtype, Shape shape) {
  MutableTensor result = allocate(dtype, std::move(shape));
  for (std::size_t i = 0; i < result.tensor.nbytes(); ++i) {
    result.bytes[i] = static_cast<std::byte>(i % 8);
  }
  return result.tensor;
}

inline Tensor floats(Shape shape) {
  MutableTensor result = allocate(DType::kF32, std::move(shape));
  for (std::int64_t i = 0; i < result.tensor.size(); ++i) {
    result.as<float>()[i] = static_cast<float>(i);
  }
  return result.tensor;
}

// Adds values and nodes to a model in few words.
struct Sketch {
  onnx::Model model;

  explicit Sketch(std::int64_t opset = 23) {
    model.opsets.push_back({"", opset});
    model.graph.name = "sketch";
  }

  onnx::ValueId value(std::string name, std::optional<onnx::TensorType> type = std::nullopt) {
    model.values.push_back({std::move(type), std::move(name)});
    return static_cast<onnx::ValueId>(model.values.size() - 1);
  }
  onnx::ValueId input(std::string name, onnx::TensorType type) {
    model.graph.inputs.push_back(value(std::move(name), std::move(type)));
    return model.graph.inputs.back();
  }
  onnx::ValueId initializer(std::string name, StridedView view, Shape shape) {
    const DType dtype = view.base.dtype;
    const onnx::ValueId id =
        value(std::move(name), onnx::TensorType{dtype, Dims(shape.begin(), shape.end())});
    model.graph.initializers.push_back({id, std::move(view), std::move(shape)});
    return id;
  }
  onnx::ValueId initializer(std::string name, Tensor tensor) {
    Shape shape = tensor.shape;
    return initializer(std::move(name), whole(std::move(tensor)), std::move(shape));
  }
  onnx::Node& node(std::string op, std::vector<onnx::ValueId> in, std::vector<onnx::ValueId> out) {
    onnx::Node& node = model.graph.nodes.emplace_back();
    node.op = std::move(op);
    node.in = std::move(in);
    node.out = std::move(out);
    return node;
  }
  void output(onnx::ValueId id) { model.graph.outputs.push_back(id); }
};

// y = x + w, with `w` as given.
inline onnx::Model add_model(Tensor w) {
  Sketch s;
  const onnx::TensorType type{w.dtype, Dims(w.shape.begin(), w.shape.end())};
  const auto x = s.input("x", type), y = s.value("y", type);
  s.node("Add", {x, s.initializer("w", std::move(w))}, {y});
  s.output(y);
  return std::move(s.model);
}

inline std::shared_ptr<onnx::Graph> branch(Sketch& s, const std::string& name, std::string op,
                                           onnx::ValueId captured) {
  auto graph = std::make_shared<onnx::Graph>();
  graph->name = name;
  const auto c = s.value(name + "_c", onnx::TensorType{DType::kF32, Dims{}});
  const auto y = s.value(name + "_y");
  graph->initializers.push_back({c, whole(scalar(DType::kF32, 2.5)), {}});
  graph->nodes.push_back({.op = std::move(op),
                          .domain = "",
                          .name = name + "_op",
                          .in = {captured, c},
                          .out = {y},
                          .attrs = {},
                          .origin = 0,
                          .metadata = {}});
  graph->outputs = {y};
  return graph;
}

// One of everything that a model can hold.
inline onnx::Model rich_model() {
  Sketch s;
  onnx::Model& m = s.model;
  m.opsets.push_back({"com.example", 1});
  m.producer_name = "jaxport";
  m.producer_version = "0.1.0";
  m.domain = "org.example";
  m.doc = "everything";
  m.model_version = 3;
  m.metadata = {{"a", "1"}, {"b", "two"}};
  m.graph.name = "rich";
  m.origins.push_back({"net.py:7 in Net.__call__", "blocks.3"});

  const Dim batch = m.dims->symbol("B");
  const auto x = s.input("x", {DType::kF32, Dims{batch, 4}});
  const auto flag = s.input("flag", {DType::kBool, Dims{}});
  const auto ragged = s.input("ragged", {DType::kF32, std::nullopt});
  const auto w = s.initializer("w", floats({4, 4}));
  s.initializer("nibbles", counting(DType::kI4, {5}));
  s.initializer("empty", counting(DType::kF32, {0, 3}));
  const auto y = s.value("y", onnx::TensorType{DType::kF32, Dims{batch * Dim(2) + Dim(1), 4}});
  const auto z = s.value("z", onnx::TensorType{DType::kF32, Dims{m.dims->symbol("?0"), 4}});
  const auto r = s.value("r"), t = s.value("t");

  onnx::Node& gemm = s.node("Gemm", {x, w, onnx::kAbsent}, {y});
  gemm.name = "gemm";
  gemm.origin = 1;
  gemm.attrs = {{"alpha", 0.5f}, {"transB", std::int64_t{-1}}};
  onnx::Node& custom = s.node("Custom", {y, ragged}, {onnx::kAbsent, z});
  custom.domain = "com.example";
  custom.metadata = {{"key", "value"}};
  custom.attrs = {
      {"floats", std::vector<float>{1.5f, -2.0f}},    {"ints", std::vector<std::int64_t>{3, -4}},
      {"none", std::vector<std::int64_t>{}},          {"string", std::string("tanh")},
      {"strings", std::vector<std::string>{"p", ""}}, {"tensor", floats({3})}};
  auto then_branch = branch(s, "then", "Mul", z), else_branch = branch(s, "else", "Add", z);
  s.node("If", {flag}, {r}).attrs = {{"else_branch", else_branch}, {"then_branch", then_branch}};
  s.node("Identity", {r}, {t});
  s.output(t);
  s.output(z);
  return std::move(s.model);
}

inline onnx::Model read_back(const std::string& bytes, const ReadOptions& options = {}) {
  std::shared_ptr<std::byte> copy(new std::byte[bytes.size() + 1],
                                  std::default_delete<std::byte[]>());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  return from_bytes(copy, bytes.size(), "", options);
}

// The error that reading `bytes` throws; "" when it throws none.
inline std::string read_error(const std::string& bytes, const ReadOptions& options = {}) {
  try {
    read_back(bytes, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace jaxport::wire
