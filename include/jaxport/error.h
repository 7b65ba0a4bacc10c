// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace jaxport {

// The one exception type of jaxport: what went wrong, where in the user's code, what to do next.
// Codes are documented in docs/errors.md; "JXP-BUG" marks a fault of jaxport itself.
class Error : public std::exception {
 public:
  // `code` is "E012" or "BUG"; `message` is the first line: lower case, no full stop.
  Error(std::string code, std::string message)
      : code_(std::move(code)), message_(std::move(message)) {
    render();
  }

  // Builders, so that an error is thrown in one expression:
  //   throw Error("E012", fmt::format("no lowering for primitive '{}'", name)).at(where).help("…");
  Error& at(std::string source) & {
    source_ = std::move(source);
    return render();
  }
  Error& equation(std::string text) & {
    equation_ = std::move(text);
    return render();
  }
  Error& note(std::string line) & {
    notes_.push_back(std::move(line));
    return render();
  }
  Error& help(std::string line) & {
    help_ = std::move(line);
    return render();
  }
  Error&& at(std::string source) && { return std::move(at(std::move(source))); }
  Error&& equation(std::string text) && { return std::move(equation(std::move(text))); }
  Error&& note(std::string line) && { return std::move(note(std::move(line))); }
  Error&& help(std::string line) && { return std::move(help(std::move(line))); }

  const std::string& code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& source() const { return source_; }  // "model.py:42 in Router.__call__", or ""
  const std::string& equation() const { return equation_; }  // the equation with types, or ""
  const std::vector<std::string>& notes() const { return notes_; }  // further lines before the help
  const std::string& help() const { return help_; }
  const char* what() const noexcept override { return rendered_.c_str(); }

 private:
  Error& render();

  std::string code_, message_, source_, equation_, help_, rendered_;
  std::vector<std::string> notes_;
};

}  // namespace jaxport
