// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::explore {

using Json = nlohmann::ordered_json;

// Texts that many things share, by number; 0 is the empty one.
class Texts {
 public:
  std::size_t add(const std::string& text);
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::vector<std::string> texts_{""};
  std::map<std::string, std::size_t> numbers_{{"", 0}};
};

// What the conversion knows of a node beside the model itself; nothing of a model that was read.
struct NodeFacts {
  std::uint32_t equation = 0;
  std::string layer, made;
};
using FactsOf = std::function<NodeFacts(const onnx::Node&)>;

// "model", "graphs", "values" and "nodes".
Json model_data(const onnx::Model& model, Texts& sources, const FactsOf& facts);

// Of each runtime with a table of kernels: which versions load it, and what to do for others.
Json runtime_data(const onnx::Model& model);

}  // namespace jaxport::explore
