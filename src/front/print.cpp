// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "front/literal.h"
#include "front/text.h"
#include "support/text.h"

namespace jaxport::front {
namespace {

// Appends to one string, so that printing is linear.
class Printer {
 public:
  Printer(const Module& module, const PrintOptions& options)
      : locations_(&module.locations), options_(options) {}
  explicit Printer(const PrintOptions& options) : options_(options) {}

  std::string take() { return std::move(out_); }
  MarkedText take_marked() { return {std::move(out_), std::move(marks_)}; }

  void module(const Module& module) {
    for (const std::string& constraint : module.dims->constraints()) {
      out_ += "constraint ";
      append_quoted(out_, constraint);
      out_ += '\n';
    }
    for (std::size_t i = 0; i < module.functions.size(); ++i) {
      if (i > 0 || !module.dims->constraints().empty()) out_ += '\n';
      function(module.functions[i]);
    }
  }

  void attr(const Attr& attr) {
    std::visit([this](const auto& value) { write(value); }, attr.value);
  }

 private:
  void function(const Function& function) {
    out_ += "func @";
    append_name(out_, function.name);
    signature(function);
    out_ += " {";
    body(function);
    out_ += "}\n";
  }

  void signature(const Function& function) {
    out_ += '(';
    for (std::size_t i = 0; i < function.params.size(); ++i) {
      if (i > 0) out_ += ", ";
      typed_value(function, function.params[i]);
    }
    out_ += ')';
    if (function.result_names.empty()) return;
    out_ += " -> (";
    for (std::size_t i = 0; i < function.result_names.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += '%';
      append_name(out_, function.result_names[i]);
    }
    out_ += ')';
  }

  // Everything between the braces; ends at the start of the line of the closing one.
  void body(const Function& function) {
    ++indent_;
    for (const Constant& constant : function.constants) {
      new_line();
      this->constant(function, constant);
    }
    for (const Eqn& eqn : function.eqns) {
      new_line();
      this->eqn(function, eqn);
    }
    new_line();
    out_ += "return";
    values(function, function.results);
    --indent_;
    new_line();
  }

  void constant(const Function& function, const Constant& constant) {
    typed_value(function, constant.value);
    out_ += " = constant ";
    tensor_data(constant.tensor);
    if (constant.path.empty()) return;
    out_ += " {path = ";
    append_quoted(out_, constant.path);
    out_ += '}';
  }

  void eqn(const Function& function, const Eqn& eqn) {
    marks_.emplace_back(out_.size(), eqn.location);
    for (std::size_t i = 0; i < eqn.out.size(); ++i) {
      if (i > 0) out_ += ", ";
      typed_value(function, eqn.out[i]);
    }
    if (!eqn.out.empty()) out_ += " = ";
    append_name(out_, eqn.primitive);
    values(function, eqn.in);
    if (!eqn.attrs.empty()) {
      out_ += " {";
      fields(eqn.attrs);
      out_ += '}';
    }
    if (options_.locations && eqn.location != kNoLocation) location((*locations_)[eqn.location]);
  }

  void location(const Location& location) {
    out_ += " loc(";
    append_quoted(out_, location.file);
    fmt::format_to(std::back_inserter(out_), ":{}", location.line);
    if (!location.function.empty()) {
      out_ += ' ';
      append_quoted(out_, location.function);
    }
    if (!location.scope.empty()) {
      out_ += " scope ";
      append_quoted(out_, location.scope);
    }
    if (!location.library.empty()) {
      out_ += " library ";
      append_quoted(out_, location.library);
    }
    out_ += ')';
  }

  void typed_value(const Function& function, ValueId id) {
    out_ += '%';
    append_name(out_, function.values[id].name);
    out_ += ": ";
    out_ += to_string(function.type(id));
  }

  void values(const Function& function, const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      out_ += " %";
      append_name(out_, function.values[id].name);
    }
  }

  void fields(const std::vector<std::pair<std::string, Attr>>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) out_ += ", ";
      append_name(out_, fields[i].first);
      out_ += " = ";
      attr(fields[i].second);
    }
  }

  void tensor_data(const Tensor& tensor) {
    if (const std::string number = scalar_text(tensor); !number.empty()) {
      out_ += number;
    } else if (options_.constants) {
      append_dense(out_, tensor);
    } else {
      fmt::format_to(std::back_inserter(out_), "dense<#{:016x}>", content_hash(tensor));
    }
  }

  void write(None) { out_ += "none"; }
  void write(bool value) { out_ += value ? "true" : "false"; }
  void write(std::int64_t value) { fmt::format_to(std::back_inserter(out_), "{}", value); }
  void write(double value) { out_ += double_text(value); }
  void write(const std::string& value) { append_quoted(out_, value); }
  void write(DType value) { out_ += name_of(value); }
  void write(const Dim& value) {
    const std::string text = value.str();
    // A lone symbol that reads as another kind of literal is kept apart.
    if (!value.is_static() && is_reserved(text)) out_ += "1*";
    out_ += text;
  }
  void write(const Enum& value) {
    out_ += '#';
    append_name(out_, value.name);
  }
  void write(const List& value) {
    out_ += '(';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out_ += ", ";
      attr(value[i]);
    }
    out_ += ')';
  }
  void write(const Record& value) {
    append_name(out_, value.name);
    out_ += '{';
    fields(value.fields);
    out_ += '}';
  }
  void write(const Region& value) {
    if (!value->name.empty()) {
      out_ += '@';
      append_name(out_, value->name);
      out_ += ' ';
    }
    out_ += "{ ";
    signature(*value);
    body(*value);
    out_ += '}';
  }
  void write(const Tensor& value) {
    Type type{.dtype = value.dtype, .shape = {value.shape.begin(), value.shape.end()}};
    out_ += to_string(type);
    out_ += ' ';
    tensor_data(value);
  }
  void write(const Opaque& value) {
    out_ += "opaque<";
    append_quoted(out_, value.text);
    out_ += '>';
  }

  void new_line() {
    out_ += '\n';
    out_.append(2 * indent_, ' ');
  }

  std::string out_;
  std::vector<std::pair<std::size_t, LocationId>> marks_;  // of equations
  const std::vector<Location>* locations_ = nullptr;
  PrintOptions options_;
  std::size_t indent_ = 0;
};

constexpr std::size_t kMaxAttrInError = 80;

// A parameter as a reader of an error wants it: no nested functions, nothing long.
std::string brief(const Attr& attr) {
  if (const auto* region = attr.get_if<Region>()) {
    const bool nameless = *region == nullptr || (*region)->name.empty();
    return nameless ? "{…}" : "@" + (*region)->name;
  }
  if (const auto* list = attr.get_if<List>()) {
    std::string text;
    for (const Attr& item : *list) {
      if (text.size() > kMaxAttrInError) break;
      text += (text.empty() ? "" : ", ") + brief(item);
    }
    return "(" + text + ")";
  }
  Printer printer(PrintOptions{.locations = false, .constants = false});
  printer.attr(attr);
  return printer.take();
}

std::string brief(const Function& function, ValueId id) {
  if (id >= function.values.size()) return "%?";  // the verifier prints broken equations too
  return fmt::format("%{}:{}", function.values[id].name, to_string(function.type(id)));
}

}  // namespace

std::string print(const Module& module, const PrintOptions& options) {
  Printer printer(module, options);
  printer.module(module);
  return printer.take();
}

MarkedText print_marked(const Module& module, const PrintOptions& options) {
  Printer printer(module, options);
  printer.module(module);
  return printer.take_marked();
}

std::string print(const Attr& attr) {
  Printer printer(PrintOptions{.locations = false});
  printer.attr(attr);
  return printer.take();
}

Error located(Error error, const Location& location) {
  error.at(to_string(location));
  if (!location.library.empty()) error.note("through " + location.library);
  return error;
}

std::string print(const Function& function, const Eqn& eqn) {
  std::string text;
  for (const ValueId id : eqn.out) text += (text.empty() ? "" : ", ") + brief(function, id);
  if (!text.empty()) text += " = ";
  text += eqn.primitive;
  std::string attrs;
  for (const auto& [name, attr] : eqn.attrs) {
    attrs += fmt::format("{}{}={}", attrs.empty() ? "" : ", ", name,
                         excerpt(brief(attr), kMaxAttrInError));
  }
  if (!attrs.empty()) text += "[" + attrs + "]";
  for (const ValueId id : eqn.in) text += " " + brief(function, id);
  return text;
}

}  // namespace jaxport::front
