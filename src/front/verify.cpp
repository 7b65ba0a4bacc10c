// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "front/ir.h"
#include "front/text.h"
#include "jaxport/error.h"
#include "support/hash_index.h"

namespace jaxport::front {
namespace {

using Types = std::vector<Type>;

bool may_be_equal(const Type& a, const Type& b) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    if (equal(a.shape[i], b.shape[i]) == Truth::kNo) return false;
  }
  return true;
}

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

// Checks one function; regions get a verifier of their own.
class Verifier {
 public:
  Verifier(const Module& module, const Function& function)
      : module_(module), function_(function), defined_(function.values.size()) {}

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
    check_signatures(eqn);
  }

  void check_regions(const Attr& attr) const {
    if (const auto* region = attr.get_if<Region>()) {
      if (*region == nullptr) fail("a nested function is missing");
      Verifier(module_, **region).run();
    } else if (const auto* list = attr.get_if<List>()) {
      for (const Attr& item : *list) check_regions(item);
    } else if (const auto* record = attr.get_if<Record>()) {
      for (const auto& [name, field] : record->fields) check_regions(field);
    }
  }

  void check_signatures(const Eqn& eqn) const {
    const Types in = types_of(function_, eqn.in), out = types_of(function_, eqn.out);
    if (eqn.primitive == "scan") return check_scan(eqn, in, out);
    if (eqn.primitive == "while") return check_while(eqn, in, out);
    if (eqn.primitive == "cond") return check_cond(eqn, in, out);
    static constexpr std::string_view kCalls[] = {
        "call", "checkpoint", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call",
        "jit",  "pjit",       "remat2"};
    for (const std::string_view call : kCalls) {
      if (eqn.primitive != call) continue;
      check_signature(find(eqn.attrs, "jaxpr"), "jaxpr", in, out);
      check_signature(find(eqn.attrs, "call_jaxpr"), "call_jaxpr", in, out);
    }
  }

  void check_signature(const Attr* attr, std::string_view name, const Types& in,
                       const Types& out) const {
    if (attr == nullptr || attr->get_if<Region>() == nullptr) return;
    const Function& region = **attr->get_if<Region>();
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
    const Attr* branches = find(eqn.attrs, "branches");
    if (branches == nullptr || branches->get_if<List>() == nullptr) return;
    if (in.empty()) fail("cond needs an index as its first operand");
    for (const Attr& branch : *branches->get_if<List>()) {
      check_signature(&branch, "branches", slice(in, 1, in.size() - 1), out);
    }
  }

  // Counts such as num_consts; nullopt when this version of JAX does not give them.
  std::optional<std::size_t> count(const Eqn& eqn, std::string_view name, std::size_t limit) const {
    if (find(eqn.attrs, name) == nullptr) return std::nullopt;
    const std::int64_t value = get_int(eqn, name);
    if (value < 0 || static_cast<std::size_t>(value) > limit) {
      fail(fmt::format("{} = {} does not fit {} operands", name, value, limit));
    }
    return static_cast<std::size_t>(value);
  }

  void check_while(const Eqn& eqn, const Types& in, const Types& out) const {
    const auto cond_consts = count(eqn, "cond_nconsts", in.size());
    const auto body_consts = count(eqn, "body_nconsts", in.size());
    if (!cond_consts || !body_consts) return;
    const std::size_t consts = *cond_consts + *body_consts;
    if (consts > in.size()) fail("more constants than operands");
    const Types carry = slice(in, consts, in.size() - consts);
    check_types("results", out, carry);
    check_signature(find(eqn.attrs, "cond_jaxpr"), "cond_jaxpr",
                    concat(slice(in, 0, *cond_consts), carry), {condition_type(eqn, carry)});
    check_signature(find(eqn.attrs, "body_jaxpr"), "body_jaxpr",
                    concat(slice(in, *cond_consts, *body_consts), carry), carry);
  }

  // A scalar, or under vmap one bool for each element of the batch, whose dims lead every carry.
  Type condition_type(const Eqn& eqn, const Types& carry) const {
    const Attr* attr = find(eqn.attrs, "cond_jaxpr");
    const Region* region = attr == nullptr ? nullptr : attr->get_if<Region>();
    if (region == nullptr || (*region)->results.size() != 1) return {DType::kBool, {}};
    const Dims& batch = (*region)->type((*region)->results[0]).shape;
    for (const Type& type : carry) {
      const bool leads = batch.size() <= type.shape.size() &&
                         std::equal(batch.begin(), batch.end(), type.shape.begin());
      if (!leads) return {DType::kBool, {}};
    }
    return {DType::kBool, batch};
  }

  // Without their leading axis: what one step of a scan sees.
  Types steps(Types types) const {
    for (Type& type : types) {
      if (type.shape.empty()) fail("a scalar is scanned over");
      type.shape.erase(type.shape.begin());
    }
    return types;
  }

  void check_scan(const Eqn& eqn, const Types& in, const Types& out) const {
    const auto consts = count(eqn, "num_consts", in.size());
    const auto carry = count(eqn, "num_carry", out.size());
    if (!consts || !carry) return;
    const std::size_t before_xs = *consts + *carry;
    if (before_xs > in.size()) fail("more constants and carries than operands");
    check_signature(
        find(eqn.attrs, "jaxpr"), "jaxpr",
        concat(slice(in, 0, before_xs), steps(slice(in, before_xs, in.size() - before_xs))),
        concat(slice(out, 0, *carry), steps(slice(out, *carry, out.size() - *carry))));
  }

  const Module& module_;
  const Function& function_;
  std::vector<bool> defined_;
  const Eqn* eqn_ = nullptr;
};

}  // namespace

void verify(const Module& module) {
  for (const Function& function : module.functions) Verifier(module, function).run();
}

}  // namespace jaxport::front
