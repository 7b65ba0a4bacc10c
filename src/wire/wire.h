// SPDX-License-Identifier: Apache-2.0
// ONNX IR <-> protobuf bytes. The only folder that includes protozero.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::wire {

// What a file says that onnx::Model has no place for, as fields of protobuf, so that whoever writes
// the model again can keep it. What belongs to a node travels with the node: fields under kKept in
// its metadata, those of its subgraphs under kKeptGraph and the name of the attribute.
struct Kept {
  std::string model, graph;                  // further fields of both, functions among them
  std::vector<std::string> inputs, outputs;  // of the main graph, as they are declared
  std::unordered_map<onnx::ValueId, std::string> types;        // of values that are no tensors
  std::vector<std::pair<std::string, std::string>> functions;  // domain and name of each
  bool external_data = false;                                  // some tensors are in other files
};
constexpr std::string_view kKept = "?fields", kKeptGraph = "?fields of ";
// A domain that starts so is an op that only looks like one of ai.onnx: nobody may rewrite it. It
// is written without this mark.
constexpr char kForeign = '?';

struct WriteOptions {
  // Tensors of at least this many bytes go to "<file>.data" once the model would exceed
  // `inline_limit`. Each starts at a multiple of 4096 bytes (64 KiB for those of 1 MiB and more) so
  // that runtimes can map it.
  std::uint64_t external_threshold = 1024;
  std::uint64_t inline_limit = 1'900'000'000;  // protobuf's own limit is 2 GiB
  bool origins = true;                         // source locations in node metadata_props
  const Kept* kept = nullptr;                  // what was read beside the model
};

// The whole model in memory; Error E050 when it exceeds protobuf's 2 GiB.
std::string to_bytes(const onnx::Model& model, const WriteOptions& options = {});

// The same, piece by piece and without the limit.
void for_each_piece(const onnx::Model& model, const WriteOptions& options,
                    const std::function<void(std::span<const std::byte>)>& visit);

// Streams the model to a temporary name in the same folder, then renames; on any error no file of
// ours is left behind, and an older model, with its data, is as it was. Whoever is killed leaves
// the older model or the new one, with its data, perhaps by another name. Error E050: too large
// even with external data. Error E051: folder missing, no permission, disk full. A device or a pipe
// is written in place. Returns bytes written.
std::uint64_t save(const onnx::Model& model, const std::filesystem::path& path,
                   const WriteOptions& options = {});

struct ReadOptions {
  // Throw when a name is defined twice, never, or after its use. Otherwise such graphs are kept as
  // they are, so that a tool can list everything that is wrong.
  bool check_names = true;
  // Read functions that have attributes: an attribute of a node that stands for one of its function
  // is the text "@name". Otherwise they are refused, because they cannot be written.
  bool function_attributes = false;
  // Where to put what onnx::Model cannot hold. Without it such models are refused, or lose it.
  Kept* kept = nullptr;
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
