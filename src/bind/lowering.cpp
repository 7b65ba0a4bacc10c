// SPDX-License-Identifier: Apache-2.0
#include "bind/lowering.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.h"
#include "bind/errors.h"
#include "bind/objects.h"
#include "jaxport/error.h"

namespace jaxport::bind {
namespace {

using lower::Ctx;
using onnx::Value;

nb::object to_python(const Dim& dim) {
  return dim.is_static() ? nb::cast(dim.value()) : nb::cast(dim.str());
}

nb::object to_python(const front::Attr& attr) {
  if (const auto* value = attr.get_if<bool>()) return nb::cast(*value);
  if (const auto* value = attr.get_if<std::int64_t>()) return nb::cast(*value);
  if (const auto* value = attr.get_if<double>()) return nb::cast(*value);
  if (const auto* value = attr.get_if<std::string>()) return nb::cast(*value);
  if (const auto* value = attr.get_if<front::Enum>()) return nb::cast(value->name);
  if (const auto* value = attr.get_if<Dim>()) return to_python(*value);
  if (const auto* value = attr.get_if<DType>()) return nb::cast(std::string(name_of(*value)));
  if (const auto* list = attr.get_if<front::List>()) {
    nb::list items;
    for (const front::Attr& item : *list) items.append(to_python(item));
    return nb::tuple(items);
  }
  return nb::none();
}

nb::dict params_of(const Ctx& c) {
  nb::dict result;
  for (const auto& [name, attr] : c.eqn().attrs) result[name.c_str()] = to_python(attr);
  return result;
}

nb::list shape_of(const Dims& shape) {
  nb::list sizes;
  for (const Dim& dim : shape) sizes.append(to_python(dim));
  return sizes;
}

// Error E014 for what ONNX's 64 bits do not hold.
std::int64_t attribute_integer(const std::string& name, nb::handle value) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0) {
    throw Error("E014", fmt::format("attribute '{}' is {}, which 64 bits do not hold", name,
                                    text_of(nb::str(value))));
  }
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

onnx::Arg to_arg(const std::string& name, nb::handle value) {
  if (PyBool_Check(value.ptr())) return {name, value.ptr() == Py_True ? 1 : 0};
  if (PyLong_Check(value.ptr())) return {name, attribute_integer(name, value)};
  if (PyFloat_Check(value.ptr())) return {name, nb::cast<double>(value)};
  if (PyUnicode_Check(value.ptr())) return {name, text_of(value)};
  if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) {
    std::vector<std::int64_t> items;
    for_each_item(value, [&](nb::handle item) { items.push_back(attribute_integer(name, item)); });
    return {name, std::move(items)};
  }
  throw Error("E014", fmt::format("attribute '{}' is a {}, which no ONNX attribute is", name,
                                  class_name(value)))
      .help("give a number, a string or a list of integers");
}

lower::Values to_values(const std::vector<std::optional<Value>>& values) {
  lower::Values result;
  for (const auto& value : values) result.push_back(value.value_or(Value{}));
  return result;
}

std::vector<Value> call(Ctx& c, const std::string& op,
                        const std::vector<std::optional<Value>>& operands,
                        const nb::dict& attributes, std::size_t outputs) {
  onnx::Args args;
  for (auto [name, value] : attributes) args.push_back(to_arg(text_of(name), value));
  return c.op.call_n(op, to_values(operands), outputs, std::move(args));
}

Value constant(Ctx& c, const nb::object& array) {
  const std::string name = text_of(nb::object(array.attr("dtype").attr("name")));
  const auto dtype = dtype_from_numpy(name);
  if (!dtype) throw Error("E014", fmt::format("ONNX has no element type '{}'", name));
  return c.constant(view_of(array, *dtype));
}

lower::Values run(const nb::object& function, Ctx& c) {
  try {
    const nb::object results = function(nb::cast(&c, nb::rv_policy::reference));
    std::vector<std::optional<Value>> values;
    if (!nb::try_cast(results, values)) {
      throw Error("E014", fmt::format("the lowering gives {}, which is no value of the model",
                                      text_of(nb::repr(results))))
          .help("return what c.op.Name(…) or c.constant(…) gives, or a list of these");
    }
    return to_values(values);
  } catch (const nb::python_error& raised) {
    rethrow_conversion_error(raised);
    throw;
  }
}

}  // namespace

lower::UserLowerings user_lowerings(const nb::dict& functions) {
  lower::UserLowerings result;
  for (auto [name, function] : functions) {
    result.emplace(text_of(name), [function = nb::borrow(function)](Ctx& c) {
      nb::gil_scoped_acquire lock;
      return run(function, c);
    });
  }
  return result;
}

void define_lowering(nb::module_& m) {
  nb::class_<Value>(m, "Value", "A value of the model under construction.")
      .def_prop_ro(
          "dtype", [](const Value& v) { return std::string(name_of(v.dtype())); },
          "The element type: f32, i64, …")
      .def_prop_ro(
          "shape", [](const Value& v) { return shape_of(v.shape()); },
          "Sizes: integers, or expressions as text.");
  nb::class_<Ctx>(m, "Lowering", "An equation that a lowering turns into nodes.")
      .def_prop_ro(
          "operands", [](const Ctx& c) { return c.operands(); }, "The operands, in order.")
      .def_prop_ro("params", &params_of, "The parameters of the equation.")
      .def_prop_ro(
          "opset", [](const Ctx& c) { return c.op.opset(); }, "The opset of the model.")
      .def("call", &call, nb::arg("op"), nb::arg("operands"), nb::arg("attributes"),
           nb::arg("outputs"), "Adds a node; None is an absent operand.")
      .def("constant", &constant, nb::arg("array"), "A C-contiguous numpy array as a value.");
}

}  // namespace jaxport::bind
