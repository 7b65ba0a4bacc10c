// SPDX-License-Identifier: Apache-2.0
// A cursor over .jir text: white space, tokens, quoted text, positions for errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jaxport::front {

class Reader {
 public:
  Reader(std::string_view text, std::string_view file_name) : text_(text), file_name_(file_name) {
    skip_space();
  }

  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  std::size_t position() const { return at_; }
  void rewind(std::size_t position) { at_ = position; }

  // Takes `token` and the space behind it when it stands here.
  bool take(std::string_view token);
  void expect(std::string_view token);
  // Takes a whole word: "loc", but not the start of "location".
  bool take_word(std::string_view word);
  bool looks_at_name() const;  // bare or quoted

  std::string name();             // bare or quoted
  std::string_view bare_word();   // letters, digits, "_", ".", "-"; may be empty
  std::string_view number();      // the same and "+", for exponents
  std::string_view plain_text();  // up to white space
  std::string quoted();
  std::string_view quoted_raw();  // the text between the quotes of a string without escapes
  std::int64_t integer();
  // A number or dimension: up to a delimiter outside parentheses, without trailing space.
  std::string_view expression();

  // Error E010 at the cursor, or at `position`.
  [[noreturn]] void fail(std::string_view what) const { fail_at(at_, what); }
  [[noreturn]] void fail_at(std::size_t position, std::string_view what) const;

 private:
  void skip_space();  // and comments
  char escape();

  std::string_view text_, file_name_;
  std::size_t at_ = 0;
};

}  // namespace jaxport::front
