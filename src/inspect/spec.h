// SPDX-License-Identifier: Apache-2.0
// What somebody expects of a model: paths of ops with shapes, counts, what must be absent. The
// words are those of jax2onnx's expect_graph, as JSON (docs/testing-models.md).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/tensor.h"

namespace jaxport::inspect {

// A size: unknown or any ("?"), a number, or a name. A name in a specification stands for one size
// throughout a path; in a model it is the name of a symbolic size.
using Size = std::variant<std::monostate, std::int64_t, std::string>;
using Sizes = std::vector<Size>;
using Symbols = std::map<std::string, Size, std::less<>>;  // monostate: not bound yet
std::string to_string(const Size& size);                   // "?", "10", "B"
std::string to_string(const Sizes& sizes);                 // "Bx10"

// "Gemm:Bx10". Without a shape every shape will do.
struct Step {
  std::string op;
  std::optional<Sizes> shape;
  friend bool operator==(const Step&, const Step&) = default;
};
std::string to_string(const Step& step);
std::vector<Step> parse_path(std::string_view text);  // "Gemm:Bx10 -> Relu"
// "Block" of "Block_1": functions of one kind are numbered.
std::string_view without_number(std::string_view name);
// Equal but for such a number.
bool same_op(std::string_view a, std::string_view b);

// Numbers of a constant, widened to double.
struct Numbers {
  Shape shape;
  std::vector<double> values;
  bool is_bool = false;
};

// What must hold for one input of the last node of a path.
struct InputRule {
  bool absent = false;
  std::optional<std::string> initializer_name;
  std::optional<Numbers> value;
  std::optional<bool> truth;  // a constant of one element that is true or false
};

using Counts = std::map<std::string, std::int64_t>;

struct PathSpec {
  std::string text;
  std::vector<Step> steps;  // none: any graph will do for the rest
  Symbols symbols;
  std::vector<std::string> graphs;  // names of graphs to search; none: all
  Counts counts;                    // exact numbers of nodes by op
  std::vector<std::string> must_absent;
  std::map<std::string, nlohmann::json> attrs;  // by op: attributes that all its nodes have
  std::map<std::size_t, InputRule> inputs;
};

struct Expectation {
  std::vector<PathSpec> paths;
  bool any_path = false;  // one path is enough
  std::vector<std::string> must_absent;
  bool no_unused_inputs = false, no_unused_function_inputs = false;
  bool search_functions = false, search_subgraphs = false;
  std::set<std::string, std::less<>> passthrough;  // ops that a path may leave out
};

std::string shown(const nlohmann::json& value);  // for messages: one line, not too long

// Reads the JSON form. Throws Error E090.
Expectation read_expectation(std::string_view json);

}  // namespace jaxport::inspect
