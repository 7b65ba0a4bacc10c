// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>

#include "jaxport/error.h"
#include "support/watch.h"
#include "wire/encoder.h"
#include "wire/external_data.h"
#include "wire/file.h"
#include "wire/model_encoder.h"
#include "wire/wire.h"

namespace jaxport::wire {
namespace {

constexpr const char* kPlaceBeside =
    "let large tensors go beside it: a lower external_data_threshold, no export_mode=\"web\"; a "
    "browser takes no more in one model: halve it with weights of f16, or export its parts";
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
  file.expect(message.size());
  write_message(message, file);
  file.publish();
  file.keep();
  return file.size();
}

std::filesystem::path data_path(std::filesystem::path path) { return path += ".data"; }

// A name for data that no model refers to.
std::filesystem::path unused_data_path(const std::filesystem::path& path) {
  for (int number = 1;; ++number) {
    std::filesystem::path name = data_path(path);
    name += fmt::format("-{}", number);
    if (!std::filesystem::exists(name)) return name;
  }
}

// A model whose data stands beside it, under any name. Nobody sees it before it is published.
class Pair {
 public:
  Pair(const onnx::Model& model, const WriteOptions& options, const std::filesystem::path& path,
       const std::filesystem::path& data)
      : external_(data.filename().string(), options.external_threshold),
        message_(encode(model, options, &external_)),
        data_(data),
        file_(path) {
    require_protobuf_size(message_, kPlaceBeside);
    data_.expect(external_.bytes());
    external_.write_to(data_);
    data_.close();
    write_message(message_, file_);
  }

  void publish_data() { data_.publish(); }
  // Whoever sees the model finds its data in place: it is published before.
  void publish_model() {
    file_.publish();
    data_.keep();
    file_.keep();
  }
  std::uint64_t size() const { return data_.size() + file_.size(); }

 private:
  ExternalData external_;
  Encoder message_;
  OutputFile data_, file_;
};

// Two names cannot change at once, so the old model first gives way to one whose data has another
// name. Everything is written before; then there is a whole model at every moment, for the price
// of writing the data twice. A second name of the same file, a hard link, would be cheaper, but the
// package onnx refuses data that has two names.
std::uint64_t replace_pair(const onnx::Model& model, const WriteOptions& options,
                           const std::filesystem::path& path) {
  const std::filesystem::path other = unused_data_path(path);
  Pair between(model, options, path, other), last(model, options, path, data_path(path));
  between.publish_data();
  between.publish_model();
  last.publish_data();
  last.publish_model();
  std::filesystem::remove(other);
  return last.size();
}

bool has_external_data(const onnx::Model& model, const WriteOptions& options) {
  ExternalData external("", options.external_threshold);
  encode(model, options, &external);
  return !external.empty();
}

std::uint64_t write_to_file(const onnx::Model& model, const std::filesystem::path& path,
                            const WriteOptions& options) {
  const Encoder whole_model = encode(model, options, nullptr);
  watch().require_bytes(whole_model.size(), "the model");
  if (is_written_in_place(path)) {
    require_protobuf_size(whole_model, "save the model to a regular file");
    return save_inline(whole_model, path);
  }
  if (whole_model.size() <= options.inline_limit && whole_model.size() <= kProtobufLimit) {
    return save_inline(whole_model, path);
  }
  if (!has_external_data(model, options)) {
    require_protobuf_size(whole_model, kPlaceBeside);
    return save_inline(whole_model, path);
  }
  if (std::filesystem::exists(path) && std::filesystem::exists(data_path(path))) {
    return replace_pair(model, options, path);
  }
  Pair pair(model, options, path, data_path(path));
  pair.publish_data();
  pair.publish_model();
  return pair.size();
}

}  // namespace

std::string to_bytes(const onnx::Model& model, const WriteOptions& options) {
  const Encoder message = encode(model, options, nullptr);
  watch().require_bytes(message.size(), "the model");
  require_protobuf_size(message, "save the model to a file: large tensors then go beside it");
  std::string bytes;
  bytes.reserve(message.size());
  message.emit_to([&](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return bytes;
}

void for_each_piece(const onnx::Model& model, const WriteOptions& options,
                    const std::function<void(std::span<const std::byte>)>& visit) {
  encode(model, options, nullptr).emit_to(visit);
}

std::uint64_t save(const onnx::Model& model, const std::filesystem::path& path,
                   const WriteOptions& options) {
  watch().enter("write");
  const std::uint64_t bytes = write_to_file(model, path, options);
  if (watch().hears("write")) {
    watch().say("write", fmt::format("{}: {} bytes", path.string(), bytes));
  }
  return bytes;
}

}  // namespace jaxport::wire
