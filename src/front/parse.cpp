// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <type_traits>

#include "front/literal.h"
#include "front/reader.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "support/hash_index.h"
#include "support/text.h"
#include "support/watch.h"

namespace jaxport::front {
namespace {

// What one function being read knows beyond its data.
struct Body {
  Function& function;
  HashIndex<ValueId> ids;  // by the hash of the name

  const ValueId* find(std::string_view name) const {
    return ids.find(hash_text(name), [&](ValueId id) { return function.values[id].name == name; });
  }
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view file_name) : in_(text, file_name) {}

  Module module() {
    while (!in_.at_end()) {
      if (in_.take_word("constraint")) {
        constraint();
      } else if (in_.take_word("func")) {
        named_function();
      } else {
        in_.fail("expected 'func' or 'constraint'");
      }
    }
    return std::move(module_);
  }

 private:
  void constraint() {
    const std::size_t start = in_.position();
    const std::string text = in_.quoted();
    dim_errors_at(start, [&] { module_.dims->add_constraint(text); });
  }

  void named_function() {
    in_.expect("@");
    Function function;
    function.name = in_.name();
    Body body{function, {}};
    signature(body);
    in_.expect("{");
    statements(body);
    module_.functions.push_back(std::move(function));
  }

  // (%x: f32[B], …) -> (%name, …)
  void signature(Body& body) {
    in_.expect("(");
    if (!in_.take(")")) {
      do body.function.params.push_back(typed_value(body));
      while (in_.take(","));
      in_.expect(")");
    }
    if (!in_.take("->")) return;
    in_.expect("(");
    do {
      in_.expect("%");
      body.function.result_names.push_back(in_.name());
    } while (in_.take(","));
    in_.expect(")");
  }

  // Up to and including the closing brace.
  void statements(Body& body) {
    while (!in_.take_word("return")) statement(body);
    const std::size_t start = in_.position();
    body.function.results = operands(body);
    const std::size_t names = body.function.result_names.size();
    if (names != 0 && names != body.function.results.size()) {
      in_.fail_at(start, fmt::format("{} results for {} result names", body.function.results.size(),
                                     names));
    }
    in_.expect("}");
  }

  void statement(Body& body) {
    watch().add_equation();
    std::vector<std::pair<Type, std::string>> results;
    if (in_.peek() == '%') {
      do results.push_back(unresolved_value(body));
      while (in_.take(","));
      in_.expect("=");
    }
    if (results.size() == 1 && in_.take_word("constant")) return constant(body, results[0]);
    Eqn eqn;
    eqn.primitive = in_.name();
    eqn.in = operands(body);
    if (in_.peek() == '{') eqn.attrs = attrs();
    if (in_.take_word("loc")) eqn.location = location();
    for (auto& [type, name] : results) {
      eqn.out.push_back(define(body, std::move(type), std::move(name)));
    }
    body.function.eqns.push_back(std::move(eqn));
  }

  void constant(Body& body, const std::pair<Type, std::string>& result) {
    const auto& [type, name] = result;
    Constant constant{.value = 0, .tensor = tensor_data(type), .path = {}};
    if (in_.take("{")) {
      if (!in_.take_word("path")) in_.fail("expected 'path'");
      in_.expect("=");
      constant.path = in_.quoted();
      in_.expect("}");
    }
    constant.value = define(body, type, name);
    body.function.constants.push_back(std::move(constant));
  }

  // --- values and types

  // A value is defined behind its equation: it is no operand of itself.
  std::pair<Type, std::string> unresolved_value(const Body& body) {
    in_.expect("%");
    const std::size_t start = in_.position();
    std::string name = in_.name();
    if (name.empty()) in_.fail_at(start, "expected a name");
    if (body.find(name)) {
      in_.fail_at(start, fmt::format("%{} is defined twice", excerpt(name)));
    }
    in_.expect(":");
    return {type(), std::move(name)};
  }

  ValueId define(Body& body, Type type, std::string name) {
    if (body.find(name)) in_.fail(fmt::format("%{} is defined twice", excerpt(name)));
    const auto id = static_cast<ValueId>(body.function.values.size());
    body.ids.add(hash_text(name), id);
    body.function.values.push_back({.type = std::move(type), .name = std::move(name)});
    return id;
  }

  ValueId typed_value(Body& body) {
    auto [type, name] = unresolved_value(body);
    return define(body, std::move(type), std::move(name));
  }

  // Separated by space; a comma between them does no harm.
  std::vector<ValueId> operands(const Body& body) {
    std::vector<ValueId> ids;
    for (;;) {
      const std::size_t start = in_.position();
      if (!in_.take("%")) break;
      const std::string name = in_.name();
      if (in_.peek() == ':') {  // the next statement begins here
        in_.rewind(start);
        break;
      }
      const ValueId* found = body.find(name);
      if (!found) in_.fail_at(start, fmt::format("%{} is not defined", excerpt(name)));
      ids.push_back(*found);
      if (in_.take(",") && in_.peek() != '%') in_.fail("expected an operand");
    }
    return ids;
  }

  Type type() {
    const std::size_t start = in_.position();
    const std::optional<DType> dtype = dtype_from_name(in_.bare_word());
    if (!dtype) in_.fail_at(start, "expected a dtype such as f32");
    return shaped(*dtype);
  }

  Type shaped(DType dtype) {
    Type type{.dtype = dtype, .shape = {}};
    in_.expect("[");
    if (in_.take("]")) return type;
    do type.shape.push_back(size());
    while (in_.take(","));
    in_.expect("]");
    return type;
  }

  Dim size() {
    const std::size_t start = in_.position();
    const Dim result = dim(start, in_.expression());
    if (result.is_static() && result.value() < 0) in_.fail_at(start, "a size below zero");
    return result;
  }

  Dim dim(std::size_t start, std::string_view text) {
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure == std::errc() && end == text.data() + text.size()) return value;
    return dim_errors_at(start, [&] { return module_.dims->parse(text); });
  }

  // Errors of the dimension algebra, with a position in this text.
  template <class Compute>
  std::invoke_result_t<Compute> dim_errors_at(std::size_t start, Compute compute) {
    try {
      return compute();
    } catch (const Error& error) {
      in_.fail_at(start, error.message());
    }
  }

  // --- attributes

  Attrs attrs() {
    const std::size_t start = in_.position();
    Attrs attrs = fields();
    std::ranges::sort(attrs, {}, [](const auto& entry) { return std::string_view(entry.first); });
    for (std::size_t i = 1; i < attrs.size(); ++i) {
      if (attrs[i - 1].first == attrs[i].first) {
        in_.fail_at(start, fmt::format("parameter '{}' is given twice", excerpt(attrs[i].first)));
      }
    }
    return attrs;
  }

  // {name = value, …}
  std::vector<std::pair<std::string, Attr>> fields() {
    const Nested level;
    std::vector<std::pair<std::string, Attr>> fields;
    in_.expect("{");
    if (in_.take("}")) return fields;
    do {
      std::string name = in_.name();
      in_.expect("=");
      fields.emplace_back(std::move(name), attr());
    } while (in_.take(","));
    in_.expect("}");
    return fields;
  }

  Attr attr() {
    switch (in_.peek()) {
      case '"':
        return string_or_record();
      case '(':
        return {list()};
      case '{':
      case '@':
        return {region()};
      case '#':
        in_.take("#");
        return {Enum{in_.name()}};
      default:
        return word_or_expression();
    }
  }

  Attr string_or_record() {
    std::string text = in_.quoted();
    if (in_.peek() != '{') return {std::move(text)};
    return {Record{std::move(text), fields()}};
  }

  List list() {
    const Nested level;
    List list;
    in_.expect("(");
    if (in_.take(")")) return list;
    do list.push_back(attr());
    while (in_.take(","));
    in_.expect(")");
    return list;
  }

  // [@name] { (params) statements return results }
  Region region() {
    const Nested level;
    auto function = std::make_shared<Function>();
    if (in_.take("@")) function->name = in_.name();
    in_.expect("{");
    Body body{*function, {}};
    signature(body);
    statements(body);
    return function;
  }

  Attr word_or_expression() {
    const std::size_t start = in_.position();
    const std::string_view text = in_.expression();
    if (text.empty()) in_.fail("expected a value");
    if (in_.peek() == '{') return {record_at(start)};
    if (text == "opaque") return {opaque()};
    const std::optional<DType> dtype = dtype_from_name(text);
    if (dtype && in_.peek() == '[') return {tensor_data(shaped(*dtype))};
    if (dtype) return {*dtype};
    if (text == "none") return {None{}};
    if (text == "true" || text == "false") return {text == "true"};
    return number_or_dim(start, text);
  }

  Record record_at(std::size_t start) {
    in_.rewind(start);
    std::string name = in_.name();
    return {std::move(name), fields()};
  }

  Opaque opaque() {
    in_.expect("<");
    Opaque result{in_.quoted()};
    in_.expect(">");
    return result;
  }

  Attr number_or_dim(std::size_t start, std::string_view text) {
    std::int64_t integer = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), integer);
    if (failure == std::errc() && end == text.data() + text.size()) return {integer};
    if (const std::optional<double> number = double_from_text(text);
        number && text.find_first_of(".enf") != std::string_view::npos) {
      return {*number};
    }
    const Dim symbolic = dim(start, text);
    if (symbolic.is_static()) return {symbolic.value()};
    return {symbolic};
  }

  // dense<[…]>, dense<"0x…"> or a number, of a type that is already known.
  Tensor tensor_data(const Type& type) {
    const std::size_t start = in_.position();
    Shape shape;
    for (const Dim& size : type.shape) {
      if (!size.is_static()) in_.fail_at(start, "a constant of symbolic size");
      shape.push_back(size.value());
    }
    std::optional<Tensor> tensor;
    if (in_.take_word("dense")) {
      in_.expect("<");
      if (in_.peek() == '[') {
        const std::vector<std::string_view> elements = numbers();
        dim_errors_at(start, [&] { tensor = tensor_from_list(type.dtype, shape, elements); });
      } else {
        const std::string_view hex = in_.quoted_raw();
        dim_errors_at(start, [&] { tensor = tensor_from_hex(type.dtype, shape, hex); });
      }
      in_.expect(">");
    } else if (shape.empty()) {
      tensor = scalar_from_text(type.dtype, in_.number());
    }
    if (!tensor) in_.fail_at(start, fmt::format("expected a value of type {}", to_string(type)));
    return *std::move(tensor);
  }

  // [1, 2, 3]
  std::vector<std::string_view> numbers() {
    std::vector<std::string_view> numbers;
    in_.expect("[");
    while (in_.peek() != ']') {
      if (!numbers.empty()) in_.expect(",");
      numbers.push_back(in_.number());
    }
    in_.expect("]");
    return numbers;
  }

  // ("file":line "function" scope "…" library "…")
  LocationId location() {
    Location location;
    in_.expect("(");
    location.file = in_.quoted();
    in_.expect(":");
    const std::size_t start = in_.position();
    const std::int64_t line = in_.integer();
    if (line < 0 || line > std::numeric_limits<int>::max()) in_.fail_at(start, "expected a line");
    location.line = static_cast<int>(line);
    if (in_.peek() == '"') location.function = in_.quoted();
    if (in_.take_word("scope")) location.scope = in_.quoted();
    if (in_.take_word("library")) location.library = in_.quoted();
    in_.expect(")");
    return module_.add_location(std::move(location));
  }

  Reader in_;
  Module module_;
};

}  // namespace

Module parse(std::string_view text, std::string_view file_name) {
  watch().enter("parse");
  watch().require_bytes(text.size(), "the text of the program");
  return Parser(text, file_name).module();
}

}  // namespace jaxport::front
