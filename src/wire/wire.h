// SPDX-License-Identifier: Apache-2.0
// ONNX IR <-> protobuf bytes. The only folder that includes protozero.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::wire {

struct WriteOptions {
  // Tensors of at least this many bytes go to "<file>.data" once the model would exceed
  // `inline_limit`. Each starts at a multiple of 4096 bytes (64 KiB for those of 1 MiB and more) so
  // that runtimes can map it.
  std::uint64_t external_threshold = 1024;
  std::uint64_t inline_limit = 1'900'000'000;  // protobuf's own limit is 2 GiB
  bool origins = true;                         // source locations in node metadata_props
};

// The whole model in memory; Error E050 when it exceeds protobuf's 2 GiB.
std::string to_bytes(const onnx::Model& model, const WriteOptions& options = {});

// Streams the model to a temporary name in the same folder, then renames; on any error no file of
// ours is left behind, and an older model, with its data, is as it was. Whoever is killed leaves
// the older model, the new one, or (in the moment that two files change places) none; never the
// data of one beside the other. Error E050: too large even with external data. Error E051: folder
// missing, no permission, disk full. A device or a pipe is written in place. Returns bytes written.
std::uint64_t save(const onnx::Model& model, const std::filesystem::path& path,
                   const WriteOptions& options = {});

struct ReadOptions {
  // Throw when a name is defined twice, never, or after its use. Otherwise such graphs are kept as
  // they are, so that a tool can list everything that is wrong.
  bool check_names = true;
  // Read functions that have attributes: an attribute of a node that stands for one of its function
  // is the text "@name". Otherwise they are refused, because they cannot be written.
  bool function_attributes = false;
};

// Sizes that a model leaves open are read as symbols of their own, "?0", "?1", …, and written as
// open sizes again.
constexpr std::string_view kUnknownDim = "?";

// Reads a model. Tensors are views of the file's mapping or of `bytes`; initializers above
// 1 MiB may be unaligned. Throws Error E052 for anything truncated, malformed, nested too deeply,
// or whose external data leaves the model's folder, and for what onnx::Model cannot hold (sparse
// and string tensors, training information). Never crashes.
onnx::Model load(const std::filesystem::path& path, const ReadOptions& options = {});
onnx::Model from_bytes(std::shared_ptr<const std::byte> bytes, std::size_t size,
                       const std::filesystem::path& folder, const ReadOptions& options = {});

}  // namespace jaxport::wire
