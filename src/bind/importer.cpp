// SPDX-License-Identifier: Apache-2.0
#include "bind/importer.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "bind/arrays.h"
#include "bind/locations.h"
#include "bind/objects.h"
#include "bind/params.h"
#include "bind/types.h"
#include "front/parameters.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "support/watch.h"

namespace jaxport::bind {
namespace {

// What the name of a primitive is in front IR, and how its parameters get their one spelling.
struct Primitive {
  std::string name;
  nb::object rewrite;  // callable: an equation -> its parameters; invalid when they stay
  const front::Signature* signature = nullptr;  // nullptr: nothing is known of its parameters
  bool is_alias = false;                        // the result is the operand
  bool is_decomposed = false;  // front IR has the jaxpr of a decomposition in its place
  bool takes_packed = false;   // works on packed elements as on any others
};

// A function under construction: where its variables and literals live.
struct Scope {
  front::Function function;
  std::unordered_map<PyObject*, front::ValueId> variables;
  std::map<std::tuple<DType, std::uint64_t, std::uint64_t>, front::ValueId> literals;
};

struct Signature {
  std::string name;
  std::vector<std::string> input_names, output_names;
};

// Why there is no decomposition; the compiler knows what else is missing.
front::Attr problem(std::string code, std::string message, std::string help) {
  return front::Record("Problem", {{"code", front::Attr{std::move(code)}},
                                   {"message", front::Attr{std::move(message)}},
                                   {"help", front::Attr{std::move(help)}}});
}

class Importer {
 public:
  Importer(const ImportRequest& request, front::Module& module)
      : module_(module),
        reader_(request.reader),
        path_of_(request.path_of),
        kinds_(reader_),
        types_(reader_, kinds_, *module.dims),
        locations_(reader_, module),
        params_(reader_, kinds_, types_, [this](nb::handle jaxpr) { return region(jaxpr); }),
        parts_(reader_.attr("parts")),
        array_(reader_.attr("array")),
        scalar_(reader_.attr("scalar")),
        decomposition_(reader_.attr("decomposition")),
        renamed_(reader_.attr("renamed")),
        leave_out_(reader_.attr("leave_out")),
        rewrites_(reader_.attr("rewrites")) {}

  front::Function function(nb::handle jaxpr, Signature signature);

 private:
  front::Region region(nb::handle jaxpr);
  void add_equation(Scope& scope, nb::handle eqn);
  void add_alias(Scope& scope, nb::handle eqn);
  bool needs_decomposition(const Primitive& of, nb::handle eqn);
  void add_body(front::Eqn& to, const Primitive& of, nb::handle eqn);
  front::Attrs decomposed(const Primitive& of, nb::handle jaxpr);
  const Primitive& primitive(nb::handle object);
  front::Attrs attrs_of(const Primitive& primitive, nb::handle eqn);
  front::Attrs attrs_if_any(const Primitive& primitive, nb::handle eqn);

  front::ValueId define(Scope& scope, nb::handle variable, std::string name = "");
  front::ValueId operand(Scope& scope, nb::handle atom);
  front::ValueId literal(Scope& scope, nb::handle atom);
  void add_constant(Scope& scope, nb::handle variable, nb::handle value);
  front::ValueId add_array(Scope& scope, const nb::object& array, DType dtype, std::string path);

  front::Module& module_;
  nb::object reader_, path_of_;
  Kinds kinds_;
  Types types_;
  Locations locations_;
  Params params_;
  nb::object parts_, array_, scalar_, decomposition_, renamed_, leave_out_, rewrites_;
  nb::object primitive_attr_ = interned("primitive"), params_attr_ = interned("params"),
             invars_attr_ = interned("invars"), outvars_attr_ = interned("outvars"),
             source_info_attr_ = interned("source_info"), aval_attr_ = interned("aval"),
             val_attr_ = interned("val"), name_attr_ = interned("name"),
             dtype_attr_ = interned("dtype");
  // Inside a decomposition no equation has a place of its own: it keeps that of the equation it
  // stands for. JAX shares jaxprs of its own functions, so the two sides have regions of their own.
  int decomposition_depth_ = 0;
  ByIdentity<front::Region> regions_, decomposed_regions_;
  ByIdentity<Primitive> primitives_;
};

front::Function Importer::function(nb::handle jaxpr, Signature signature) {
  const nb::object parts = parts_(jaxpr);  // (name, constvars, consts, invars, eqns, outvars)
  Scope scope;
  scope.function.name = signature.name.empty() ? text_of(parts[0]) : std::move(signature.name);
  const nb::object consts = parts[2];
  std::size_t index = 0;
  for_each_item(parts[3], [&](nb::handle variable) {
    std::string name =
        index < signature.input_names.size() ? signature.input_names[index] : std::string();
    scope.function.params.push_back(define(scope, variable, std::move(name)));
    ++index;
  });
  Py_ssize_t position = 0;
  for_each_item(parts[1], [&](nb::handle variable) {
    add_constant(scope, variable, nb::object(consts[position++]));
  });
  for_each_item(parts[4], [&](nb::handle eqn) { add_equation(scope, eqn); });
  for_each_item(parts[5],
                [&](nb::handle atom) { scope.function.results.push_back(operand(scope, atom)); });
  scope.function.result_names = std::move(signature.output_names);
  return std::move(scope.function);
}

front::Region Importer::region(nb::handle jaxpr) {
  const Nested level;
  ByIdentity<front::Region>& known = decomposition_depth_ > 0 ? decomposed_regions_ : regions_;
  if (const front::Region* found = known.find(jaxpr)) return *found;
  return known.add(jaxpr, std::make_shared<const front::Function>(function(jaxpr, {})));
}

void Importer::add_equation(Scope& scope, nb::handle eqn) {
  watch().add_equation();
  const Primitive& of = primitive(attribute(eqn, primitive_attr_));
  if (of.is_alias) return add_alias(scope, eqn);
  // What gives no result was traced for its effect, which no model can have.
  if (nb::len(attribute(eqn, outvars_attr_)) == 0) {
    leave_out_(eqn);
    return;
  }
  front::Eqn result;
  if (decomposition_depth_ == 0) result.location = locations_.of(attribute(eqn, source_info_attr_));
  try {
    for_each_item(attribute(eqn, invars_attr_),
                  [&](nb::handle atom) { result.in.push_back(operand(scope, atom)); });
    for_each_item(attribute(eqn, outvars_attr_),
                  [&](nb::handle variable) { result.out.push_back(define(scope, variable)); });
    add_body(result, of, eqn);
  } catch (Error& error) {
    // The innermost equation of the user's own: inside a decomposition none has a place.
    if (result.location == front::kNoLocation || !error.source().empty()) throw;
    error.equation(front::print(scope.function, {of.name, result.in, result.out, {}, {}}));
    throw Error(front::located(std::move(error), module_.locations[result.location]));
  }
  scope.function.eqns.push_back(std::move(result));
}

// The primitive and its parameters, or its decomposition as a call.
void Importer::add_body(front::Eqn& to, const Primitive& of, nb::handle eqn) {
  constexpr int kDeepest = 50;
  if (of.signature != nullptr) params_.check_names(*of.signature, attribute(eqn, params_attr_));
  const nb::object body = needs_decomposition(of, eqn) ? decomposition_(eqn) : nb::none();
  to.primitive = of.name;
  if (body.is_none()) {
    to.attrs = attrs_of(of, eqn);
  } else if (nb::isinstance<nb::tuple>(body)) {  // (code, message, help)
    const auto text = [&](int i) { return text_of(nb::object(body[i])); };
    to.attrs = attrs_if_any(of, eqn);
    front::set(to.attrs, front::kProblem, problem(text(0), text(1), text(2)));
  } else if (decomposition_depth_ == kDeepest) {
    front::set(
        to.attrs, front::kProblem,
        problem("E077", fmt::format("the decomposition of primitive '{}' uses itself", of.name),
                "see jaxport.register_decomposition"));
  } else {
    to.primitive = "jit";
    to.attrs = decomposed(of, body);
  }
}

void Importer::add_alias(Scope& scope, nb::handle eqn) {
  const nb::object in = attribute(eqn, invars_attr_)[0], out = attribute(eqn, outvars_attr_)[0];
  scope.variables[out.ptr()] = operand(scope, in);
}

// Random keys and complex numbers have a last axis in front IR that the equation does not know of.
bool Importer::needs_decomposition(const Primitive& of, nb::handle eqn) {
  if (of.is_decomposed) return true;
  if (of.takes_packed || !types_.has_packed()) return false;
  bool found = false;
  for (const nb::object& side : {invars_attr_, outvars_attr_}) {
    for_each_item(attribute(eqn, side), [&](nb::handle atom) {
      found = found || types_.is_packed(attribute(atom, aval_attr_));
    });
  }
  return found;
}

front::Attrs Importer::decomposed(const Primitive& of, nb::handle jaxpr) {
  ++decomposition_depth_;
  front::Region body = region(jaxpr);
  --decomposition_depth_;
  return {{"jaxpr", front::Attr{std::move(body)}}, {"name", front::Attr{of.name}}};
}

const Primitive& Importer::primitive(nb::handle object) {
  if (const Primitive* found = primitives_.find(object)) return *found;
  const nb::object name = attribute(object, name_attr_);
  Primitive result;
  result.name = text_of(nb::object(renamed_.attr("get")(name, name)));
  if (nb::object rewrite = rewrites_.attr("get")(result.name.c_str()); !rewrite.is_none()) {
    result.rewrite = std::move(rewrite);
  }
  const auto is_in = [&](const char* table) {
    return nb::cast<bool>(reader_.attr(table).attr("__contains__")(result.name.c_str()));
  };
  result.signature = front::find_signature(result.name);
  result.is_alias = is_in("aliases");
  result.is_decomposed = is_in("decomposed");
  result.takes_packed = is_in("takes_packed");
  return primitives_.add(object, std::move(result));
}

front::Attrs Importer::attrs_of(const Primitive& primitive, nb::handle eqn) {
  if (!primitive.rewrite.is_valid()) return params_.attrs(attribute(eqn, params_attr_));
  return params_.attrs(nb::object(primitive.rewrite(eqn)));
}

// Of an equation that has a problem already: its parameters may have another one.
front::Attrs Importer::attrs_if_any(const Primitive& primitive, nb::handle eqn) {
  try {
    return attrs_of(primitive, eqn);
  } catch (const Error&) {
    return {};
  }
}

front::ValueId Importer::define(Scope& scope, nb::handle variable, std::string name) {
  const front::Type& type = types_.type(attribute(variable, aval_attr_));
  const front::ValueId id = scope.function.add_value(type, std::move(name));
  scope.variables[variable.ptr()] = id;
  return id;
}

front::ValueId Importer::operand(Scope& scope, nb::handle atom) {
  if (auto found = scope.variables.find(atom.ptr()); found != scope.variables.end()) {
    return found->second;
  }
  return literal(scope, atom);
}

// Equal literals of a function are one constant.
front::ValueId Importer::literal(Scope& scope, nb::handle atom) {
  const front::Type& type = types_.type(attribute(atom, aval_attr_));
  const nb::object value = attribute(atom, val_attr_);
  if (!type.shape.empty()) {
    const nb::object dtype = attribute(attribute(atom, aval_attr_), dtype_attr_);
    return add_array(scope, array_(value, dtype), type.dtype, "");
  }
  Tensor tensor = scalar_of(scalar_(value), type.dtype);
  std::uint64_t bits[2] = {0, 0};
  std::memcpy(bits, tensor.data.get(), tensor.nbytes());
  auto [entry, is_new] = scope.literals.try_emplace({type.dtype, bits[0], bits[1]}, 0);
  if (is_new) {
    entry->second = scope.function.add_value(type);
    scope.function.constants.push_back({entry->second, std::move(tensor), ""});
  }
  return entry->second;
}

void Importer::add_constant(Scope& scope, nb::handle variable, nb::handle value) {
  const nb::object aval = attribute(variable, aval_attr_);
  const DType dtype = types_.type(aval).dtype;
  const nb::object array = array_(value, attribute(aval, dtype_attr_));
  scope.variables[variable.ptr()] =
      add_array(scope, array, dtype, text_of(nb::object(path_of_(value))));
}

front::ValueId Importer::add_array(Scope& scope, const nb::object& array, DType dtype,
                                   std::string path) {
  Tensor tensor = view_of(array, dtype);
  front::Type type{dtype, Dims(tensor.shape.begin(), tensor.shape.end())};
  const front::ValueId id = scope.function.add_value(std::move(type));
  scope.function.constants.push_back({id, std::move(tensor), std::move(path)});
  return id;
}

void say_size(const front::Function& function) {
  if (!watch().hears("import")) return;
  std::size_t bytes = 0;
  for (const front::Constant& constant : function.constants) bytes += constant.tensor.nbytes();
  watch().say("import", fmt::format("{} equations, {} constants of {} bytes", function.eqns.size(),
                                    function.constants.size(), bytes));
}

}  // namespace

front::Module import_jaxpr(const ImportRequest& request) {
  watch().enter("import");
  front::Module module;
  Importer importer(request, module);
  module.functions.push_back(
      importer.function(request.jaxpr, {request.name, request.input_names, request.output_names}));
  for (const std::string& constraint : request.constraints) module.dims->add_constraint(constraint);
  say_size(module.functions[0]);
  return module;
}

}  // namespace jaxport::bind
