// SPDX-License-Identifier: Apache-2.0
#include "tool/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <variant>

#include "front/literal.h"
#include "front/reader.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "jaxport/version.h"

namespace jaxport::tool {
namespace {

constexpr std::string_view kOptionsLine = "// options:";

bool needs_quotes(std::string_view argument) {
  constexpr std::string_view kPlain = "-_.,=<>*";
  return argument.empty() || !std::ranges::all_of(argument, [&](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  kPlain.find(c) != std::string_view::npos;
         });
}

void add_limits(CLI::App& command, Limits& limits) {
  command
      .add_option("--max-nodes", limits.nodes, "most equations of the program, nodes of a graph")
      ->check(above_zero())
      ->capture_default_str();
  command.add_option("--max-bytes", limits.bytes, "most bytes of the program, an array, the model")
      ->check(above_zero())
      ->capture_default_str();
  command.add_option("--max-depth", limits.depth, "how deep functions and lists may be nested")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--max-seconds", limits.seconds, "how long the conversion may take")
      ->check(above_zero());
}

void add_choice(CLI::App& command, const compile::Choice& choice, bool& value) {
  command.add_flag_callback(
      std::string(choice.flag), [&value, initial = value] { value = !initial; },
      std::string(choice.help));
}

template <typename T>
void add_choice(CLI::App& command, const compile::Choice& choice, T& value) {
  CLI::Option* option =
      command.add_option(std::string(choice.flag), value, std::string(choice.help));
  if constexpr (std::is_same_v<T, int>) {
    option->transform(CLI::Transformer(std::map<std::string, int>{{"auto", compile::kAutoOpset}}));
  }
  if constexpr (std::is_same_v<T, std::vector<std::string>>) option->delimiter(',');
  if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::string>) {
    option->capture_default_str();
  }
  if (!choice.allowed.empty()) option->check(CLI::IsMember(choice.allowed));
}

void add_write_options(CLI::App& command, ConvertOptions& o) {
  command
      .add_option("--external-threshold", o.write.external_threshold,
                  "tensors of at least so many bytes may go to a file of their own")
      ->capture_default_str();
  command
      .add_option("--inline-limit", o.write.inline_limit,
                  "they do when the model would have more bytes than this")
      ->capture_default_str();
  command.add_flag_callback(
      "--no-source-locations", [&o] { o.write.origins = false; },
      "leave the lines of the Python source out of the model");
}

// --- options as text

void append(std::vector<std::string>& arguments, std::string_view flag, bool) {
  arguments.emplace_back(flag);
}

template <class T>
void append(std::vector<std::string>& arguments, std::string_view flag, const T& value) {
  arguments.push_back(fmt::format("{}={}", flag, value));
}

void append(std::vector<std::string>& arguments, std::string_view flag,
            const std::vector<std::string>& list) {
  arguments.push_back(fmt::format("{}={}", flag, fmt::join(list, ",")));
}

void append(std::vector<std::string>& arguments, std::string_view flag,
            const std::optional<std::int64_t>& number) {
  append(arguments, flag, *number);
}

template <class T>
void append_unusual(std::vector<std::string>& arguments, std::string_view flag, const T& value,
                    const T& usual) {
  if (value != usual) append(arguments, flag, value);
}

}  // namespace

CLI::Validator above_zero() {
  const auto refuse = [](std::string& text) {
    double number = 0;
    const bool is_above = CLI::detail::lexical_cast(text, number) && number > 0;
    return is_above ? "" : fmt::format("'{}' is not a number above 0", text);
  };
  return {refuse, "POSITIVE"};
}

void add_choices(CLI::App& command, compile::Choices& choices) {
  for (const compile::Choice& choice : compile::all_choices()) {
    std::visit([&](auto member) { add_choice(command, choice, choices.*member); }, choice.member);
  }
}

void add_options(CLI::App& command, ConvertOptions& options) {
  add_choices(command, options.choices);
  add_write_options(command, options);
  add_limits(command, options.limits);
}

void add_arguments(CLI::App& command, std::vector<std::string>& inputs,
                   std::vector<std::string>& params) {
  command
      .add_option("--input", inputs,
                  "an argument of the function: x:Bx28x28x3, or x:Bx4:int32 with its dtype")
      ->allow_extra_args(false);
  command.add_option("--params", params, "keyword arguments of the function: deterministic=true")
      ->delimiter(',')
      ->allow_extra_args(false);
}

std::vector<std::string> arguments_of(const ConvertOptions& o) {
  const ConvertOptions usual;
  std::vector<std::string> arguments;
  for (const compile::Choice& choice : compile::all_choices()) {
    const auto add = [&](auto member) {
      append_unusual(arguments, choice.flag, o.choices.*member, usual.choices.*member);
    };
    std::visit(add, choice.member);
  }
  append_unusual(arguments, "--external-threshold", o.write.external_threshold,
                 usual.write.external_threshold);
  append_unusual(arguments, "--inline-limit", o.write.inline_limit, usual.write.inline_limit);
  append_unusual(arguments, "--no-source-locations", o.write.origins, usual.write.origins);
  append_unusual(arguments, "--max-nodes", o.limits.nodes, usual.limits.nodes);
  append_unusual(arguments, "--max-bytes", o.limits.bytes, usual.limits.bytes);
  append_unusual(arguments, "--max-depth", o.limits.depth, usual.limits.depth);
  append_unusual(arguments, "--max-seconds", o.limits.seconds, usual.limits.seconds);
  return arguments;
}

std::string case_header(const ConvertOptions& options) {
  std::string text = fmt::format("// jaxport {}\n{}", kVersion, kOptionsLine);
  for (const std::string& argument : arguments_of(options)) {
    text += ' ';
    if (needs_quotes(argument)) {
      front::append_quoted(text, argument);
    } else {
      text += argument;
    }
  }
  return text + '\n';
}

std::string case_text(const front::Module& module, const ConvertOptions& options) {
  return case_header(options) + front::print(module);
}

std::vector<std::string> case_arguments(std::string_view text) {
  while (text.starts_with("//")) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!line.starts_with(kOptionsLine)) {
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      continue;
    }
    front::Reader in(line.substr(kOptionsLine.size()), "the options of the case");
    std::vector<std::string> arguments;
    while (!in.at_end()) {
      arguments.push_back(in.peek() == '"' ? in.quoted() : std::string(in.plain_text()));
    }
    return arguments;
  }
  return {};
}

ConvertOptions options_from(const std::vector<std::string>& arguments) {
  ConvertOptions options;
  CLI::App app("", "options");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_options(app, options);
  app.set_help_flag();
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw Error("E092",
                fmt::format("the options of the conversion cannot be used: {}", error.what()))
        .help("jaxport convert --help lists them");
  }
  return options;
}

}  // namespace jaxport::tool
