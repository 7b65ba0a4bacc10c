// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "jaxport/error.h"
#include "wire/decoder.h"
#include "wire/field.h"
#include "wire/file.h"
#include "wire/graph_reader.h"
#include "wire/tensor_reader.h"
#include "wire/wire.h"

namespace jaxport::wire {
namespace {

onnx::OpsetImport read_opset(Decoder message) {
  onnx::OpsetImport opset{"", 0};
  while (message.next()) {
    switch (message.field()) {
      case field::opset::domain:
        opset.domain = message.text();
        break;
      case field::opset::version:
        opset.version = message.integer();
        break;
      default:
        message.skip();
    }
  }
  if (opset.domain == "ai.onnx") opset.domain.clear();
  return opset;
}

void read_function(Decoder& message, GraphReader& graphs, const ReadOptions& options,
                   onnx::Model& model) {
  if (options.kept != nullptr) {
    Decoder function = message;
    graphs.keep_function(function.message("functions"));
    options.kept->model += message.raw();
    return;
  }
  const auto index = static_cast<std::int64_t>(model.functions.size());
  model.functions.push_back(graphs.read_function(message.message("functions", index)));
}

onnx::Model read_model(Decoder message, TensorReader tensors, const ReadOptions& options) {
  namespace f = field::model;
  onnx::Model model;
  GraphReader graphs(model, std::move(tensors), options);
  bool has_graph = false;
  while (message.next()) {
    switch (message.field()) {
      case f::ir_version:
        model.ir_version = message.integer();
        break;
      case f::producer_name:
        model.producer_name = message.text();
        break;
      case f::producer_version:
        model.producer_version = message.text();
        break;
      case f::domain:
        model.domain = message.text();
        break;
      case f::model_version:
        model.model_version = message.integer();
        break;
      case f::doc_string:
        model.doc = message.text();
        break;
      case f::graph:
        if (std::exchange(has_graph, true)) message.fail("there are two graphs");
        model.graph = graphs.read(message.message("graph"));
        break;
      case f::opset_import:
        model.opsets.push_back(read_opset(message.message("opset_import")));
        break;
      case f::metadata_props:
        model.metadata.emplace_back(read_entry(message.message("metadata_props")));
        break;
      case f::training_info:
        message.fail("training information is not supported", "export the model for inference");
      case f::functions:
        read_function(message, graphs, options, model);
        break;
      default:
        if (options.kept != nullptr) {
          options.kept->model += message.raw();
        } else {
          message.skip();
        }
    }
  }
  if (options.kept != nullptr) options.kept->external_data = graphs.has_external_data();
  if (!has_graph) message.fail("there is no graph", "check that the file is an ONNX model");
  return model;
}

onnx::Model read(std::string name, const MappedFile& file, const std::filesystem::path& folder,
                 const ReadOptions& options) {
  const Source source{std::move(name),
                      {reinterpret_cast<const char*>(file.bytes.get()), file.size}};
  const Decoder message(source);
  constexpr std::size_t kProtobufLimit = (std::size_t{1} << 31) - 1;
  if (file.size > kProtobufLimit) message.fail("it is larger than the 2 GiB of one protobuf");
  return read_model(message, TensorReader(file.bytes, folder), options);
}

}  // namespace

onnx::Model load(const std::filesystem::path& path, const ReadOptions& options) {
  return read(path.string(), map_file(path, "model"), path.parent_path(), options);
}

onnx::Model from_bytes(std::shared_ptr<const std::byte> bytes, std::size_t size,
                       const std::filesystem::path& folder, const ReadOptions& options) {
  return read("", {std::move(bytes), size}, folder, options);
}

}  // namespace jaxport::wire
