// SPDX-License-Identifier: Apache-2.0
// The operators of models, as ONNX Runtime's reduced builds read them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "onnx/ir.h"

namespace jaxport::inspect {

// What one operator is used with. A node whose types the model does not tell makes all of them
// needed.
struct OperatorTypes {
  bool is_known = true;
  std::map<std::size_t, std::set<std::string>> inputs, outputs;  // by position; C++ names
  std::set<std::vector<std::string>> combinations;               // of the types of OneHot
};

// The operators of several models, with bodies of control flow and functions.
class Operators {
 public:
  void add(const onnx::Model& model);  // E111: of an opset that we have no schemas of
  // One line for each domain and opset: "ai.onnx;13;Cast,Exp"; with_types: what each is used with,
  // as JSON behind its name.
  std::string config(bool with_types) const;

 private:
  void add_node(const onnx::Model& model, const onnx::Node& node);

  using Key = std::tuple<std::string, std::int64_t, std::string>;  // domain, since, op
  std::map<Key, OperatorTypes> operators_;
};

}  // namespace jaxport::inspect
