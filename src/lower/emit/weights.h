// SPDX-License-Identifier: Apache-2.0
// The constants of a program as values of the model.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "lower/layout/facts.h"
#include "lower/layout/layout.h"
#include "onnx/builder.h"

namespace jaxport::lower {

class Weights {
 public:
  Weights(const Facts& facts, onnx::Builder& op) : facts_(facts), op_(op) {}

  // The constant in this arrangement of the consumer's labels, each arrangement stored once. Labels
  // that it lacks are repeated where `full`, or where a merged dim has others beside them; a dim of
  // such labels alone is a unit dim otherwise.
  onnx::Value stored(const axis::Edge& edge, const Dims& sizes, const Arrangement& to, bool full);

 private:
  struct Key {
    std::size_t node;  // Facts::index
    Ints sizes, strides, shape;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::string unused_name(const axis::Node& node);

  const Facts& facts_;
  onnx::Builder& op_;
  std::map<Key, onnx::Value> stored_;
  std::unordered_set<std::string> names_;
};

}  // namespace jaxport::lower
