// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>

#include "jaxport/error.h"
#include "wire/encoder.h"
#include "wire/external_data.h"
#include "wire/file.h"
#include "wire/model_encoder.h"
#include "wire/wire.h"

namespace jaxport::wire {
namespace {

constexpr std::uint64_t kProtobufLimit = (std::uint64_t{1} << 31) - 1;

void require_protobuf_size(const Encoder& message, const char* help) {
  if (message.size() <= kProtobufLimit) return;
  throw Error("E050", fmt::format("the model takes {} bytes, more than the 2 GiB of one protobuf",
                                  message.size()))
      .help(help);
}

void write_message(const Encoder& message, OutputFile& file) {
  message.emit_to([&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.close();
}

std::uint64_t save_inline(const Encoder& message, const std::filesystem::path& path) {
  OutputFile file(path);
  write_message(message, file);
  file.publish();
  file.keep();
  return file.size();
}

std::filesystem::path data_path(std::filesystem::path path) { return path += ".data"; }

// Two names cannot change at once. An older model with data beside it must not meet the new data,
// so it is out of the way while they change, and comes back with its data when that fails. The
// model is published last: whoever sees its name finds its data in place.
void publish_pair(OutputFile& data, OutputFile& file, const std::filesystem::path& path,
                  SetAside& old_data, SetAside& old_file) {
  if (std::filesystem::exists(data_path(path))) {
    old_file.reserve(path);
    old_data.reserve(data_path(path));
    old_file.take();
    old_data.take();
  }
  data.publish();
  file.publish();
  data.keep();
  file.keep();
  old_data.drop();
  old_file.drop();
}

}  // namespace

std::string to_bytes(const onnx::Model& model, const WriteOptions& options) {
  const Encoder message = encode(model, options.origins, nullptr);
  require_protobuf_size(message, "save the model to a file: large tensors then go beside it");
  std::string bytes;
  bytes.reserve(message.size());
  message.emit_to([&](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return bytes;
}

std::uint64_t save(const onnx::Model& model, const std::filesystem::path& path,
                   const WriteOptions& options) {
  const Encoder whole_model = encode(model, options.origins, nullptr);
  if (is_written_in_place(path)) {
    require_protobuf_size(whole_model, "save the model to a regular file");
    return save_inline(whole_model, path);
  }
  if (whole_model.size() <= options.inline_limit && whole_model.size() <= kProtobufLimit) {
    return save_inline(whole_model, path);
  }
  ExternalData external(data_path(path).filename().string(), options.external_threshold);
  const Encoder message = encode(model, options.origins, &external);
  require_protobuf_size(
      message,
      "let large tensors go beside it: a lower external_data_threshold, no export_mode=\"web\"");
  if (external.empty()) return save_inline(message, path);

  SetAside old_file, old_data;
  OutputFile data(data_path(path)), file(path);
  external.write_to(data);
  data.close();
  write_message(message, file);
  publish_pair(data, file, path, old_data, old_file);
  return data.size() + file.size();
}

}  // namespace jaxport::wire
