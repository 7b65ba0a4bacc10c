// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <unordered_set>

#include "front/infer.h"
#include "front/parameters.h"
#include "front/params.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "support/hash_index.h"

namespace jaxport::front {
namespace {

using Types = std::vector<Type>;

std::string to_string(const Types& types) {
  std::string text;
  for (const Type& type : types) {
    if (!text.empty()) text += ", ";
    text += front::to_string(type);
  }
  return "(" + text + ")";
}

Types types_of(const Function& function, const std::vector<ValueId>& ids) {
  Types types;
  for (const ValueId id : ids) types.push_back(function.type(id));
  return types;
}

Types concat(Types a, const Types& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Types slice(const Types& types, std::size_t first, std::size_t count) {
  return {types.begin() + static_cast<std::ptrdiff_t>(first),
          types.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

// Functions that many equations call are checked once: thirty levels of f(f(x)) are 2^30 calls.
using Checked = std::unordered_set<const Function*>;

// Checks one function; regions get a verifier of their own.
class Verifier {
 public:
  Verifier(const Module& module, const Function& function, Checked& checked)
      : module_(module), function_(function), checked_(checked), defined_(function.values.size()) {}

  void run() {
    check_names();
    for (const ValueId id : function_.params) define(id);
    for (const Constant& constant : function_.constants) check_constant(constant);
    for (const Eqn& eqn : function_.eqns) check_eqn(eqn);
    eqn_ = nullptr;
    for (const ValueId id : function_.results) check_use(id);
    const std::size_t names = function_.result_names.size();
    if (names != 0 && names != function_.results.size()) {
      fail(fmt::format("{} names for {} results", names, function_.results.size()));
    }
  }

  // Of a program: inputs and results of a model share one set of names.
  void check_border() const {
    TextSet taken;
    for (const ValueId id : function_.params) taken.insert(function_.values[id].name);
    for (const std::string& name : function_.result_names) {
      if (!taken.insert(name)) fail(fmt::format("two inputs or results are named %{}", name));
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const bool has_location = eqn_ != nullptr && eqn_->location < module_.locations.size();
    throw Error("E030", fmt::format("function '{}' is malformed: {}", function_.name, what))
        .at(has_location ? to_string(module_.locations[eqn_->location]) : "")
        .equation(eqn_ != nullptr ? print(function_, *eqn_) : "");
  }

  void check_names() const {
    TextSet taken;
    for (const Value& value : function_.values) {
      if (value.name.empty()) fail("a value has no name");
      if (!taken.insert(value.name)) fail(fmt::format("two values are named %{}", value.name));
    }
  }

  void define(ValueId id) {
    if (id >= function_.values.size()) fail(fmt::format("value {} does not exist", id));
    if (defined_[id]) fail(fmt::format("%{} is defined twice", function_.values[id].name));
    defined_[id] = true;
  }

  void check_use(ValueId id) const {
    if (id >= function_.values.size()) fail(fmt::format("value {} does not exist", id));
    if (!defined_[id]) {
      fail(fmt::format("%{} is used before it is defined", function_.values[id].name));
    }
  }

  void check_constant(const Constant& constant) {
    define(constant.value);
    Type type{.dtype = constant.tensor.dtype, .shape = {}};
    for (const std::int64_t size : constant.tensor.shape) type.shape.emplace_back(size);
    const Value& value = function_.values[constant.value];
    if (type != value.type) {
      fail(fmt::format("constant %{} of type {} holds a {}", value.name,
                       front::to_string(value.type), front::to_string(type)));
    }
  }

  void check_eqn(const Eqn& eqn) {
    eqn_ = &eqn;
    if (eqn.primitive.empty()) fail("an equation has no primitive");
    if (eqn.location >= module_.locations.size()) fail("an equation has an unknown location");
    for (const ValueId id : eqn.in) check_use(id);
    for (const ValueId id : eqn.out) define(id);
    for (std::size_t i = 1; i < eqn.attrs.size(); ++i) {
      if (eqn.attrs[i - 1].first >= eqn.attrs[i].first) {
        fail(fmt::format("parameter '{}' is out of order or given twice", eqn.attrs[i].first));
      }
    }
    for (const auto& [name, attr] : eqn.attrs) check_regions(attr);
    try {
      check_signatures(eqn);
    } catch (Error& error) {  // E031 of a parameter does not know where it is
      if (!error.equation().empty()) throw;
      throw located(std::move(error), module_.locations[eqn.location])
          .equation(print(function_, eqn));
    }
  }

  void check_regions(const Attr& attr) {
    if (const auto* region = attr.get_if<Region>()) {
      if (*region == nullptr) fail("a nested function is missing");
      if (checked_.insert(region->get()).second) Verifier(module_, **region, checked_).run();
    } else if (const auto* list = attr.get_if<List>()) {
      for (const Attr& item : *list) check_regions(item);
    } else if (const auto* record = attr.get_if<Record>()) {
      for (const auto& [name, field] : record->fields) check_regions(field);
    }
  }

  void check_signatures(const Eqn& eqn) const {
    if (find(eqn.attrs, kProblem) != nullptr) return;  // its operands may be packed
    check_parameters(eqn);
    if (eqn.primitive == "scan") return check_scan(eqn, in(eqn), out(eqn));
    if (eqn.primitive == "while") return check_while(eqn, in(eqn), out(eqn));
    if (eqn.primitive == "cond") return check_cond(eqn, in(eqn), out(eqn));
    if (const CallRow* call = find_call(eqn.primitive)) {
      const Region& callee = get_region(eqn, call->region);
      return check_signature(*callee, call->region, in(eqn), out(eqn));
    }
    front::check_types(function_, eqn);
  }

  Types in(const Eqn& eqn) const { return types_of(function_, eqn.in); }
  Types out(const Eqn& eqn) const { return types_of(function_, eqn.out); }

  void check_signature(const Function& region, std::string_view name, const Types& in,
                       const Types& out) const {
    check_types(fmt::format("operands of '{}'", name), types_of(region, region.params), in);
    check_types(fmt::format("results of '{}'", name), types_of(region, region.results), out);
  }

  void check_types(const std::string& what, const Types& actual, const Types& expected) const {
    if (std::equal(actual.begin(), actual.end(), expected.begin(), expected.end(), may_be_equal)) {
      return;
    }
    fail(fmt::format("the {} are {} instead of {}", what, to_string(actual), to_string(expected)));
  }

  void check_cond(const Eqn& eqn, const Types& in, const Types& out) const {
    const bool has_index = !in.empty() && in[0].shape.empty() &&
                           (is_integer(in[0].dtype) || in[0].dtype == DType::kBool);
    if (!has_index) fail("cond needs an index as its first operand");
    for (const Region& branch : CondParams::read(eqn).branches) {
      check_signature(*branch, "branches", slice(in, 1, in.size() - 1), out);
    }
  }

  void check_while(const Eqn& eqn, const Types& in, const Types& out) const {
    const WhileParams loop = WhileParams::read(eqn);
    if (loop.consts() > in.size()) fail("more constants than operands");
    const Types carry = slice(in, loop.consts(), in.size() - loop.consts());
    check_types("results", out, carry);
    check_signature(*loop.cond, "cond_jaxpr", concat(slice(in, 0, loop.cond_consts), carry),
                    {condition_type(*loop.cond, carry)});
    check_signature(*loop.body, "body_jaxpr",
                    concat(slice(in, loop.cond_consts, loop.body_consts), carry), carry);
  }

  // A scalar, or under vmap one bool for each element of the batch, whose dims lead every carry.
  static Type condition_type(const Function& cond, const Types& carry) {
    if (cond.results.size() != 1) return {DType::kBool, {}};
    const Dims& batch = cond.type(cond.results[0]).shape;
    for (const Type& type : carry) {
      const bool leads = batch.size() <= type.shape.size() &&
                         std::equal(batch.begin(), batch.end(), type.shape.begin());
      if (!leads) return {DType::kBool, {}};
    }
    return {DType::kBool, batch};
  }

  // Without their leading axis: what one step of a scan sees.
  Types steps(Types types, const Dim& length) const {
    for (Type& type : types) {
      if (type.shape.empty()) fail("a scalar is scanned over");
      if (!may_always_be_equal(type.shape[0], length)) {
        fail(fmt::format("a scan of length {} goes over {}", length.str(), front::to_string(type)));
      }
      type.shape.erase(type.shape.begin());
    }
    return types;
  }

  void check_scan(const Eqn& eqn, const Types& in, const Types& out) const {
    const ScanParams scan = ScanParams::read(eqn);
    if (scan.first_x() > in.size()) fail("more constants and carries than operands");
    if (scan.carries > out.size()) fail("more carries than results");
    const std::size_t xs = in.size() - scan.first_x(), ys = out.size() - scan.carries;
    check_signature(
        *scan.body, "jaxpr",
        concat(slice(in, 0, scan.first_x()), steps(slice(in, scan.first_x(), xs), scan.length)),
        concat(slice(out, 0, scan.carries), steps(slice(out, scan.carries, ys), scan.length)));
  }

  const Module& module_;
  const Function& function_;
  Checked& checked_;
  std::vector<bool> defined_;
  const Eqn* eqn_ = nullptr;
};

}  // namespace

void verify(const Module& module) {
  Checked checked;
  for (const Function& function : module.functions) {
    Verifier verifier(module, function, checked);
    verifier.run();
    verifier.check_border();
  }
}

}  // namespace jaxport::front
