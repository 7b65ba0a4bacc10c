// SPDX-License-Identifier: Apache-2.0
#include "front/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "front/literal.h"
#include "jaxport/error.h"

namespace jaxport::front {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

void Reader::skip_space() {
  for (;;) {
    while (!at_end() && is_space(text_[at_])) ++at_;
    if (!text_.substr(at_).starts_with("//")) return;
    at_ = std::min(text_.find('\n', at_), text_.size());
  }
}

bool Reader::take(std::string_view token) {
  if (!text_.substr(at_).starts_with(token)) return false;
  at_ += token.size();
  skip_space();
  return true;
}

void Reader::expect(std::string_view token) {
  if (!take(token)) fail(fmt::format("expected '{}'", token));
}

bool Reader::take_word(std::string_view word) {
  const std::string_view rest = text_.substr(at_);
  if (!rest.starts_with(word)) return false;
  if (rest.size() > word.size() && is_name_char(rest[word.size()])) return false;
  return take(word);
}

bool Reader::looks_at_name() const {
  return peek() == '"' || (is_name_char(peek()) && peek() != '-');
}

std::string_view Reader::bare_word() {
  const std::size_t start = at_;
  while (!at_end() && is_name_char(text_[at_])) ++at_;
  const std::string_view word = text_.substr(start, at_ - start);
  skip_space();
  return word;
}

std::string_view Reader::number() {
  const std::size_t start = at_;
  while (!at_end() && (is_name_char(text_[at_]) || text_[at_] == '+')) ++at_;
  const std::string_view text = text_.substr(start, at_ - start);
  skip_space();
  return text;
}

std::string_view Reader::plain_text() {
  const std::size_t start = at_;
  while (!at_end() && !is_space(text_[at_])) ++at_;
  const std::string_view text = text_.substr(start, at_ - start);
  skip_space();
  return text;
}

std::string Reader::name() {
  if (peek() == '"') return quoted();
  if (!looks_at_name()) fail("expected a name");
  return std::string(bare_word());
}

char Reader::escape() {
  const std::size_t start = at_++;
  switch (peek()) {
    case '"':
      return '"';
    case '\\':
      return '\\';
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'x': {
      unsigned value = 0;
      const std::string_view digits = text_.substr(at_ + 1, 2);
      const auto [end, failure] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
      if (failure == std::errc() && end == digits.data() + 2) {
        at_ += 2;
        return static_cast<char>(value);
      }
      break;
    }
    default:
      break;
  }
  fail_at(start, "unknown escape in a string");
}

std::string Reader::quoted() {
  const std::size_t start = at_;
  if (peek() != '"') fail("expected '\"'");
  std::string result;
  for (++at_;; ++at_) {
    if (at_end() || peek() == '\n') fail_at(start, "a string that does not end");
    if (peek() == '"') break;
    result += peek() == '\\' ? escape() : peek();
  }
  ++at_;
  skip_space();
  return result;
}

std::string_view Reader::quoted_raw() {
  const std::size_t start = at_ + 1;
  if (peek() != '"') fail("expected '\"'");
  const std::size_t end = text_.find('"', start);
  if (end == std::string_view::npos) fail("a string that does not end");
  at_ = end + 1;
  skip_space();
  return text_.substr(start, end - start);
}

std::int64_t Reader::integer() {
  std::int64_t value = 0;
  const char* first = text_.data() + at_;
  const auto [end, failure] = std::from_chars(first, text_.data() + text_.size(), value);
  if (failure != std::errc()) fail("expected an integer of 64 bits");
  at_ += static_cast<std::size_t>(end - first);
  skip_space();
  return value;
}

std::string_view Reader::expression() {
  const std::size_t start = at_;
  int open = 0;
  for (; !at_end(); ++at_) {
    const char c = text_[at_];
    if (c == '\n' || c == '{' || c == '}' || c == '[' || c == ']' || c == '<' || c == '"') break;
    if (open == 0 && (c == ',' || c == ')')) break;
    open += (c == '(') - (c == ')');
  }
  std::string_view result = text_.substr(start, at_ - start);
  while (!result.empty() && is_space(result.back())) result.remove_suffix(1);
  skip_space();
  return result;
}

void Reader::fail_at(std::size_t position, std::string_view what) const {
  const std::string_view before = text_.substr(0, position);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  throw Error("E010", fmt::format("cannot read .jir text: {}", what))
      .at(fmt::format("{}:{}:{}", file_name_, line, position - line_start + 1))
      .help("the grammar is in docs/jir.md");
}

}  // namespace jaxport::front
