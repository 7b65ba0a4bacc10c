// SPDX-License-Identifier: Apache-2.0
#include "inspect/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "jaxport/error.h"
#include "support/text.h"

namespace jaxport::inspect {
namespace {

using nlohmann::json;

constexpr std::string_view kArrow = "->", kTimes = "×";
// Ops that only carry a value along; jax2onnx leaves out the same.
constexpr std::string_view kPassthrough[] = {"Add",     "Cast",    "CastLike",  "Concat",
                                             "Flatten", "Gather",  "Identity",  "Reshape",
                                             "Shape",   "Squeeze", "Unsqueeze", "Where"};

[[noreturn]] void fail(const std::string& why) {
  throw Error("E090", "the specification cannot be used: " + why)
      .help("docs/testing-models.md says what a specification may hold");
}

std::string_view trimmed(std::string_view text, std::string_view away = " \t\n") {
  const auto first = text.find_first_not_of(away);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(away) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + separator.size());
  }
}

Size parse_size(std::string_view text) {
  if (text.empty() || text == "?" || text == "None") return {};
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return std::string(text);
}

Sizes parse_sizes(std::string_view text) {
  if (trimmed(text).empty()) return {};
  Sizes sizes;
  for (std::string_view part : split(text, "x")) {
    for (std::string_view size : split(part, kTimes)) sizes.push_back(parse_size(size));
  }
  return sizes;
}

// The keys of a JSON object, each read once: one that nobody asked for is an error.
class Fields {
 public:
  Fields(const json& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object.is_object()) fail(fmt::format("{} is no mapping: {}", what_, shown(object)));
  }

  const json* find(const char* key) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  bool flag(const char* key) {
    const json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) fail(fmt::format("{} is {}, not true or false", key, shown(*value)));
    return value->get<bool>();
  }

  std::string text(const char* key) {
    const json* value = find(key);
    return value == nullptr ? "" : as_text(*value, key);
  }

  std::vector<std::string> texts(const char* key) {
    const json* value = find(key);
    if (value == nullptr) return {};
    if (value->is_string()) return {value->get<std::string>()};
    if (!value->is_array()) fail(fmt::format("{} is no list: {}", key, shown(*value)));
    std::vector<std::string> result;
    for (const json& item : *value) result.push_back(as_text(item, key));
    return result;
  }

  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::ranges::find(known_, key) == known_.end()) {
        fail(fmt::format("{} has no entry '{}', only {}", what_, excerpt(key),
                         fmt::join(known_, ", ")));
      }
    }
  }

 private:
  static std::string as_text(const json& value, const char* key) {
    if (!value.is_string()) fail(fmt::format("{} holds {}, which is no text", key, shown(value)));
    return value.get<std::string>();
  }

  const json& object_;
  std::string what_;
  std::vector<std::string> known_;
};

Symbols read_symbols(const json* object) {
  Symbols symbols;
  if (object == nullptr) return symbols;
  if (!object->is_object()) fail(fmt::format("symbols is no mapping: {}", shown(*object)));
  for (const auto& [name, value] : object->items()) {
    if (value.is_number_integer()) {
      symbols[name] = value.get<std::int64_t>();
    } else if (value.is_string()) {
      symbols[name] = value.get<std::string>();
    } else if (value.is_null()) {
      symbols[name] = {};
    } else {
      fail(fmt::format("symbol '{}' is {}, which is no size", name, shown(value)));
    }
  }
  return symbols;
}

Counts read_counts(const json* object) {
  Counts counts;
  if (object == nullptr) return counts;
  if (!object->is_object()) fail(fmt::format("counts is no mapping: {}", shown(*object)));
  for (const auto& [op, count] : object->items()) {
    if (!count.is_number_integer()) {
      fail(fmt::format("the count of '{}' is {}", op, shown(count)));
    }
    counts[op] = count.get<std::int64_t>();
  }
  return counts;
}

// JSON has no spelling for these; the Python side writes them as texts.
std::optional<double> special_number(const json& value) {
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  if (text == "inf") return kInfinity;
  if (text == "-inf") return -kInfinity;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

// A number, or lists of lists of numbers: the shape is that of the lists.
void read_numbers(const json& value, Numbers& into, std::size_t depth) {
  constexpr std::size_t kMostDims = 32;
  if (depth > kMostDims) fail("const has too many dims");
  if (value.is_array()) {
    const auto size = static_cast<std::int64_t>(value.size());
    if (into.shape.size() == depth && into.values.empty()) into.shape.push_back(size);
    if (into.shape.size() <= depth || into.shape[depth] != size) fail("const is no regular array");
    for (const json& item : value) read_numbers(item, into, depth + 1);
    return;
  }
  if (into.shape.size() != depth) fail("const is no regular array");
  if (value.is_boolean()) {
    into.is_bool = true;
    into.values.push_back(value.get<bool>() ? 1.0 : 0.0);
  } else if (value.is_number()) {
    into.values.push_back(value.get<double>());
  } else if (const auto special = special_number(value)) {
    into.values.push_back(*special);
  } else {
    fail(fmt::format("const holds {}, which is no number", shown(value)));
  }
}

InputRule read_input_rule(const json& object) {
  InputRule rule;
  if (object.is_null()) return rule;
  Fields fields(object, "an entry of inputs");
  rule.absent = fields.flag("absent");
  if (fields.find("initializer_name") != nullptr) {
    rule.initializer_name = fields.text("initializer_name");
  }
  if (fields.find("const_bool") != nullptr) rule.truth = fields.flag("const_bool");
  if (const json* value = fields.find("const")) {
    rule.value.emplace();
    read_numbers(*value, *rule.value, 0);
  }
  fields.finish();
  return rule;
}

std::map<std::size_t, InputRule> read_inputs(const json* object) {
  std::map<std::size_t, InputRule> rules;
  if (object == nullptr) return rules;
  if (!object->is_object()) fail(fmt::format("inputs is no mapping: {}", shown(*object)));
  for (const auto& [key, value] : object->items()) {
    const Size index = parse_size(key);
    const auto* number = std::get_if<std::int64_t>(&index);
    if (number == nullptr || *number < 0) {
      fail(fmt::format("'{}' is no position of an input; they count from 0", excerpt(key)));
    }
    rules[*number] = read_input_rule(value);
  }
  return rules;
}

PathSpec read_path(const json& entry) {
  PathSpec spec;
  Fields fields(entry, "a path");
  spec.text = fields.text("path");
  if (!spec.text.empty()) spec.steps = parse_path(spec.text);
  spec.symbols = read_symbols(fields.find("symbols"));
  spec.graphs = fields.texts("graph");
  spec.counts = read_counts(fields.find("counts"));
  spec.must_absent = fields.texts("must_absent");
  if (const json* attrs = fields.find("attrs")) {
    if (!attrs->is_object()) fail(fmt::format("attrs is no mapping: {}", shown(*attrs)));
    for (const auto& [op, wanted] : attrs->items()) {
      if (!wanted.is_object()) fail(fmt::format("attrs of '{}' are no mapping", excerpt(op)));
      spec.attrs[op] = wanted;
    }
  }
  spec.inputs = read_inputs(fields.find("inputs"));
  fields.finish();
  if (spec.steps.empty() && !spec.inputs.empty()) {
    fail("inputs are those of the last node of a path; there is no path");
  }
  return spec;
}

}  // namespace

std::string shown(const json& value) {
  return excerpt(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string to_string(const Size& size) {
  if (const auto* number = std::get_if<std::int64_t>(&size)) return fmt::to_string(*number);
  if (const auto* name = std::get_if<std::string>(&size)) return *name;
  return "?";
}

std::string to_string(const Sizes& sizes) {
  std::vector<std::string> parts;
  for (const Size& size : sizes) parts.push_back(to_string(size));
  return fmt::format("{}", fmt::join(parts, "x"));
}

std::string to_string(const Step& step) {
  return step.shape ? fmt::format("{}:{}", step.op, to_string(*step.shape)) : step.op;
}

std::vector<Step> parse_path(std::string_view text) {
  std::vector<Step> steps;
  for (std::string_view part : split(trimmed(text, "^$ \t\n"), kArrow)) {
    const auto colon = part.find(':');
    Step step{std::string(trimmed(part.substr(0, colon))), std::nullopt};
    if (step.op.empty()) fail(fmt::format("a step of path '{}' names no op", excerpt(text)));
    if (colon != std::string_view::npos) step.shape = parse_sizes(part.substr(colon + 1));
    steps.push_back(std::move(step));
  }
  return steps;
}

std::string_view without_number(std::string_view name) {
  const auto last = name.find_last_not_of("0123456789");
  const bool is_numbered =
      last != std::string_view::npos && last + 1 < name.size() && name[last] == '_';
  return is_numbered ? name.substr(0, last) : name;
}

bool same_op(std::string_view a, std::string_view b) {
  return a == b || without_number(a) == without_number(b);
}

Expectation read_expectation(std::string_view text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) fail("it is not valid JSON");
  Expectation expectation;
  Fields fields(document, "the specification");
  if (const json* specs = fields.find("specs")) {
    if (!specs->is_array()) fail(fmt::format("specs is no list: {}", shown(*specs)));
    for (const json& entry : *specs) {
      expectation.paths.push_back(read_path(entry.is_string() ? json{{"path", entry}} : entry));
    }
  }
  const Symbols symbols = read_symbols(fields.find("symbols"));
  for (PathSpec& path : expectation.paths) path.symbols.insert(symbols.begin(), symbols.end());
  const std::string mode = fields.text("mode");
  if (mode != "" && mode != "all" && mode != "any") {
    fail(fmt::format("mode is '{}', not 'all' or 'any'", excerpt(mode)));
  }
  expectation.any_path = mode == "any";
  expectation.must_absent = fields.texts("must_absent");
  expectation.no_unused_inputs = fields.flag("no_unused_inputs");
  expectation.no_unused_function_inputs = fields.flag("no_unused_function_inputs");
  expectation.search_functions = fields.flag("search_functions");
  if (expectation.no_unused_function_inputs && !expectation.search_functions) {
    fail("no_unused_function_inputs needs search_functions");
  }
  expectation.search_subgraphs = fields.flag("search_subgraphs");
  expectation.passthrough.insert(std::begin(kPassthrough), std::end(kPassthrough));
  if (fields.find("passthrough") != nullptr) {
    const std::vector<std::string> ops = fields.texts("passthrough");
    expectation.passthrough = {ops.begin(), ops.end()};
  }
  fields.finish();
  return expectation;
}

}  // namespace jaxport::inspect
