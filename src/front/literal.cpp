// SPDX-License-Identifier: Apache-2.0
#include "front/literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace jaxport::front {
namespace {

bool is_bare_name(std::string_view name) {
  if (name.empty() || name[0] == '-') return false;
  for (const char c : name) {
    if (!is_name_char(c)) return false;
  }
  return true;
}

template <class Number>
std::optional<Number> number_from_text(std::string_view text) {
  Number value;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_real(DType dtype) { return is_float(dtype) || is_integer(dtype) || dtype == DType::kBool; }

std::string readable(const Tensor& tensor) {
  if (tensor.dtype == DType::kBool) return tensor.int_at(0) != 0 ? "true" : "false";
  if (tensor.dtype == DType::kU64) {
    return fmt::format("{}", static_cast<std::uint64_t>(tensor.int_at(0)));
  }
  if (is_integer(tensor.dtype)) return fmt::format("{}", tensor.int_at(0));
  const double value = tensor.at(0);
  // The shortest digits that tell f32 values apart also tell those of narrower floats apart.
  if (tensor.dtype == DType::kF64 || !std::isfinite(value)) return double_text(value);
  std::string text = fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

void append_name(std::string& out, std::string_view name) {
  if (is_bare_name(name)) {
    out += name;
  } else {
    append_quoted(out, name);
  }
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

bool is_reserved(std::string_view word) {
  return word == "true" || word == "false" || word == "none" || word == "inf" || word == "nan" ||
         dtype_from_name(word).has_value();
}

std::string double_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::optional<double> double_from_text(std::string_view text) {
  if (text == "inf") return kInfinity;
  if (text == "-inf") return -kInfinity;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  // from_chars also reads "infinity" and "nan(…)", which are no spellings of ours.
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  if (first >= text.size() || hex_digit(text[first]) < 0 || hex_digit(text[first]) > 9) {
    return std::nullopt;
  }
  return number_from_text<double>(text);
}

std::string scalar_text(const Tensor& tensor) {
  if (!tensor.is_scalar() || !is_real(tensor.dtype)) return "";
  std::string text = readable(tensor);
  const std::optional<Tensor> back = scalar_from_text(tensor.dtype, text);
  // NaNs with a payload and values outside the dtype's range have no readable form.
  return back && same_bytes(*back, tensor) ? text : "";
}

std::optional<Tensor> scalar_from_text(DType dtype, std::string_view text) {
  if (dtype == DType::kBool) {
    if (text == "true" || text == "false") return int_scalar(dtype, text == "true");
    return std::nullopt;
  }
  if (dtype == DType::kU64) {
    const auto value = number_from_text<std::uint64_t>(text);
    if (!value) return std::nullopt;
    return int_scalar(dtype, static_cast<std::int64_t>(*value));
  }
  if (is_integer(dtype)) {
    const auto value = number_from_text<std::int64_t>(text);
    if (!value) return std::nullopt;
    Tensor tensor = int_scalar(dtype, *value);
    return tensor.int_at(0) == *value ? std::optional(tensor) : std::nullopt;
  }
  if (!is_float(dtype)) return std::nullopt;
  const std::optional<double> value = double_from_text(text);
  return value ? std::optional(scalar(dtype, *value)) : std::nullopt;
}

namespace {

// The texts of all elements; empty when there are many, or one of them has no readable form.
std::vector<std::string> element_texts(const Tensor& tensor) {
  constexpr std::int64_t kMostListed = 16;
  std::vector<std::string> texts;
  if (tensor.size() > kMostListed || bit_width(tensor.dtype) < 8) return texts;
  const auto width = static_cast<std::size_t>(byte_width(tensor.dtype));
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    MutableTensor element = allocate(tensor.dtype, {});
    std::ranges::copy(tensor.bytes().subspan(static_cast<std::size_t>(i) * width, width),
                      element.bytes);
    texts.push_back(scalar_text(element.tensor));
    if (texts.back().empty()) return {};
  }
  return texts;
}

}  // namespace

void append_dense(std::string& out, const Tensor& tensor) {
  if (const auto texts = element_texts(tensor); !texts.empty()) {
    out += fmt::format("dense<[{}]>", fmt::join(texts, ", "));
    return;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "dense<\"0x";
  for (const std::byte byte : tensor.bytes()) {
    out += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    out += kDigits[std::to_integer<std::size_t>(byte & std::byte{0xf})];
  }
  out += "\">";
}

std::optional<Tensor> tensor_from_list(DType dtype, const Shape& shape,
                                       const std::vector<std::string_view>& elements) {
  // Compared before anything is allocated: the shape may be hostile.
  if (bit_width(dtype) < 8 || element_count(shape) != std::ssize(elements)) return std::nullopt;
  MutableTensor tensor = allocate(dtype, shape);
  std::byte* next = tensor.bytes;
  for (std::string_view text : elements) {
    const std::optional<Tensor> element = scalar_from_text(dtype, text);
    if (!element) return std::nullopt;
    next = std::ranges::copy(element->bytes(), next).out;
  }
  return tensor.tensor;
}

std::optional<Tensor> tensor_from_hex(DType dtype, const Shape& shape, std::string_view hex) {
  if (!hex.starts_with("0x") || hex.size() % 2 != 0) return std::nullopt;
  hex.remove_prefix(2);
  const auto count = static_cast<std::int64_t>(hex.size() / 2);
  // Compared before anything is allocated: the shape may be hostile.
  std::int64_t wanted;
  if (__builtin_mul_overflow(element_count(shape), std::int64_t{byte_width(dtype)}, &wanted) ||
      wanted != count) {
    return std::nullopt;
  }
  MutableTensor tensor = allocate(dtype, shape);
  for (std::int64_t i = 0; i < count; ++i) {
    const int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    tensor.bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return tensor.tensor;
}

}  // namespace jaxport::front
