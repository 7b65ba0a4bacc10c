// SPDX-License-Identifier: Apache-2.0
// What a user chooses for a conversion, by the names that to_onnx has for it. One table says it to
// the command line, to Python and to whoever writes choices down: a new choice is a member, a row,
// and its use in compile_options.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compile/compile.h"

namespace jaxport::compile {

constexpr int kAutoOpset = 0;  // the newest that the target runs

struct Choices {
  int opset = 23;
  std::string model_name = "jax_model";
  std::string target = "onnxruntime";
  std::string normalization_mode = "auto";
  std::string precision = "f32";
  bool precision_io = false, exact = false;
  std::string functions = "marked";
  std::string on_unsupported = "error";
  bool raise = true;
  std::vector<std::string> without_rules;
  std::optional<std::int64_t> unroll_layers;

  bool operator==(const Choices&) const = default;
};

using ChoiceMember =
    std::variant<int Choices::*, bool Choices::*, std::string Choices::*,
                 std::vector<std::string> Choices::*, std::optional<std::int64_t> Choices::*>;

struct Choice {
  std::string_view name;  // the argument of to_onnx
  std::string_view flag;  // of `jaxport convert`; that of a bool turns it to what it is not
  std::string_view help;
  ChoiceMember member;
  std::vector<std::string> allowed = {};  // for a text: what it may be; empty: anything
};

// In the order in which they are listed for users.
std::span<const Choice> all_choices();
const Choice* find_choice(std::string_view name);

// Errors E011, E075 and E079: an opset, a text or a target that is none.
Options compile_options(const Choices& choices);

}  // namespace jaxport::compile
