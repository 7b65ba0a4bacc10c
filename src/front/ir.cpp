// SPDX-License-Identifier: Apache-2.0
#include "front/ir.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "jaxport/error.h"
#include "support/hash.h"

namespace jaxport::front {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::optional<std::int64_t> as_int(const Attr& attr) {
  if (const auto* value = attr.get_if<std::int64_t>()) return *value;
  if (const auto* dim = attr.get_if<Dim>(); dim != nullptr && dim->is_static()) return dim->value();
  return std::nullopt;
}

// NaNs count as one value; 0.0 and -0.0 are two.
std::uint64_t bits_of(double value) {
  return std::isnan(value) ? 0x7ff8000000000000ull : std::bit_cast<std::uint64_t>(value);
}

bool same(None, None) { return true; }
bool same(double a, double b) { return bits_of(a) == bits_of(b); }
bool same(const Enum& a, const Enum& b) { return a.name == b.name; }
bool same(const Opaque& a, const Opaque& b) { return a.text == b.text; }
bool same(const Record& a, const Record& b) { return a.name == b.name && a.fields == b.fields; }
bool same(const Tensor& a, const Tensor& b) { return same_bytes(a, b); }
bool same(const Region& a, const Region& b) { return a == b || equivalent(*a, *b); }
template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}

std::uint64_t hash_region(const Function& function);

std::uint64_t hash_type(const Type& type) {
  std::uint64_t result = static_cast<std::uint64_t>(type.dtype);
  for (const Dim& dim : type.shape) result = mix(result, dim.hash());
  return result;
}

std::uint64_t hash_fields(const std::vector<std::pair<std::string, Attr>>& fields) {
  std::uint64_t result = fields.size();
  for (const auto& [name, value] : fields) result = mix(hash_text(name, result), hash(value));
  return result;
}

std::uint64_t hash_list(const List& list) {
  std::uint64_t result = list.size();
  for (const Attr& item : list) result = mix(result, hash(item));
  return result;
}

// Numbers values by definition, so that ids and names do not count.
class Numbering {
 public:
  explicit Numbering(std::size_t values) : numbers_(values) {}
  void define(ValueId id) { numbers_[id] = ++last_; }
  std::uint32_t operator[](ValueId id) const { return numbers_[id]; }

 private:
  std::vector<std::uint32_t> numbers_;
  std::uint32_t last_ = 0;
};

std::uint64_t hash_region(const Function& function) {
  Numbering numbers(function.values.size());
  std::uint64_t result = function.params.size();
  for (const ValueId id : function.params) {
    numbers.define(id);
    result = mix(result, hash_type(function.type(id)));
  }
  for (const Constant& constant : function.constants) {
    numbers.define(constant.value);
    result = mix(result, content_hash(constant.tensor));
  }
  for (const Eqn& eqn : function.eqns) {
    result = mix(hash_text(eqn.primitive, result), hash(eqn.attrs));
    for (const ValueId id : eqn.in) result = mix(result, numbers[id]);
    for (const ValueId id : eqn.out) numbers.define(id);
  }
  for (const ValueId id : function.results) result = mix(result, numbers[id]);
  return result;
}

// Compares two functions while it numbers the values of both.
class Comparison {
 public:
  Comparison(const Function& a, const Function& b)
      : a_(a), b_(b), in_a_(a.values.size()), in_b_(b.values.size()) {}

  bool run() {
    return define(a_.params, b_.params) &&
           std::ranges::equal(a_.constants, b_.constants,
                              [this](const Constant& a, const Constant& b) {
                                return define({a.value}, {b.value}) &&
                                       same_bytes(a.tensor, b.tensor);
                              }) &&
           std::ranges::equal(a_.eqns, b_.eqns,
                              [this](const Eqn& a, const Eqn& b) { return same_eqn(a, b); }) &&
           same_uses(a_.results, b_.results);
  }

 private:
  bool define(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
    return std::ranges::equal(a, b, [this](ValueId x, ValueId y) {
      in_a_.define(x);
      in_b_.define(y);
      return a_.type(x) == b_.type(y);
    });
  }
  bool same_uses(const std::vector<ValueId>& a, const std::vector<ValueId>& b) const {
    return std::ranges::equal(a, b, [this](ValueId x, ValueId y) { return in_a_[x] == in_b_[y]; });
  }
  bool same_eqn(const Eqn& a, const Eqn& b) {
    return a.primitive == b.primitive && same_uses(a.in, b.in) && a.attrs == b.attrs &&
           define(a.out, b.out);
  }

  const Function &a_, &b_;
  Numbering in_a_, in_b_;
};

// "x" is followed by "x_1"; plain numbers start at "0".
std::uint32_t first_suffix(bool has_base) { return has_base ? 1 : 0; }

std::uint64_t hash_location(const Location& location) {
  std::uint64_t result = static_cast<std::uint64_t>(location.line);
  for (const std::string* text :
       {&location.file, &location.function, &location.scope, &location.library}) {
    result = hash_text(*text, result);
  }
  return result;
}

}  // namespace

Attr::Attr(const Ints& numbers) : value(List(numbers.begin(), numbers.end())) {}
Attr::Attr(const Dims& sizes) : value(List(sizes.begin(), sizes.end())) {}

Record::Record() = default;
Record::Record(std::string record_name, std::vector<std::pair<std::string, Attr>> record_fields)
    : name(std::move(record_name)), fields(std::move(record_fields)) {}
Record::Record(const Record&) = default;
Record::Record(Record&&) noexcept = default;
Record& Record::operator=(const Record&) = default;
Record& Record::operator=(Record&&) noexcept = default;
Record::~Record() = default;

std::string to_string(const Type& type) {
  std::string text(name_of(type.dtype));
  text += '[';
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    if (i > 0) text += ',';
    text += type.shape[i].str();
  }
  return text + ']';
}

std::string to_string(const Location& location) {
  if (location.file.empty()) return location.function;
  std::string text = fmt::format("{}:{}", location.file, location.line);
  if (!location.function.empty()) text += " in " + location.function;
  return text;
}

bool operator==(const Attr& a, const Attr& b) {
  const std::optional<std::int64_t> int_a = as_int(a), int_b = as_int(b);
  if (int_a || int_b) return int_a == int_b;
  return std::visit(
      [](const auto& x, const auto& y) {
        if constexpr (std::is_same_v<decltype(x), decltype(y)>) {
          return same(x, y);
        } else {
          return false;
        }
      },
      a.value, b.value);
}

std::uint64_t hash(const Attr& attr) {
  if (const auto value = as_int(attr)) return mix(2, static_cast<std::uint64_t>(*value));
  const std::uint64_t content = std::visit(
      Overloaded{
          [](None) -> std::uint64_t { return 0; },
          [](bool value) -> std::uint64_t { return value; },
          [](std::int64_t value) { return static_cast<std::uint64_t>(value); },
          [](double value) { return bits_of(value); },
          [](const std::string& value) { return hash_text(value); },
          [](DType value) { return static_cast<std::uint64_t>(value); },
          [](const Dim& value) { return value.hash(); },
          [](const Enum& value) { return hash_text(value.name); },
          [](const List& value) { return hash_list(value); },
          [](const Record& value) { return hash_text(value.name, hash_fields(value.fields)); },
          [](const Region& value) { return hash_region(*value); },
          [](const Tensor& value) { return content_hash(value); },
          [](const Opaque& value) { return hash_text(value.text); },
      },
      attr.value);
  return mix(attr.value.index() + 16, content);
}

std::uint64_t hash(const Attrs& attrs) { return hash_fields(attrs); }

const Attr* find(const Attrs& attrs, std::string_view name) {
  const auto found = std::ranges::lower_bound(
      attrs, name, {}, [](const auto& entry) { return std::string_view(entry.first); });
  return found != attrs.end() && found->first == name ? &found->second : nullptr;
}

void set(Attrs& attrs, std::string_view name, Attr value) {
  const auto place = std::ranges::lower_bound(
      attrs, name, {}, [](const auto& entry) { return std::string_view(entry.first); });
  if (place != attrs.end() && place->first == name) {
    place->second = std::move(value);
  } else {
    attrs.emplace(place, name, std::move(value));
  }
}

bool equivalent(const Function& a, const Function& b) { return Comparison(a, b).run(); }

bool NameTable::is_taken(const std::string& name) const {
  if (next_suffix.contains(name)) return true;
  // Made-up names are "<base>_<suffix>" and "<suffix>".
  const std::size_t underscore = name.rfind('_');
  const bool has_base = underscore != std::string::npos && underscore > 0;
  const auto base = next_suffix.find(has_base ? name.substr(0, underscore) : "");
  if (base == next_suffix.end()) return false;
  const std::string_view digits = std::string_view(name).substr(has_base ? underscore + 1 : 0);
  std::uint32_t suffix = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), suffix);
  return suffix >= first_suffix(has_base) && suffix < base->second &&
         digits == fmt::format("{}", suffix);
}

std::string NameTable::fresh(std::string wanted) {
  if (!wanted.empty() && !is_taken(wanted)) {
    next_suffix.emplace(wanted, first_suffix(true));
    return wanted;
  }
  std::uint32_t& suffix =
      next_suffix.try_emplace(wanted, first_suffix(!wanted.empty())).first->second;
  std::string made_up;
  do {
    made_up = wanted.empty() ? fmt::format("{}", suffix) : fmt::format("{}_{}", wanted, suffix);
    ++suffix;
  } while (next_suffix.contains(made_up));
  return made_up;
}

ValueId Function::add_value(Type type, std::string wanted) {
  // Values that were added without this function count too.
  for (; names.value_count < values.size(); ++names.value_count) {
    names.next_suffix.try_emplace(values[names.value_count].name, first_suffix(true));
  }
  values.push_back({.type = std::move(type), .name = names.fresh(std::move(wanted))});
  names.value_count = values.size();
  return static_cast<ValueId>(values.size() - 1);
}

LocationId Module::add_location(Location location) {
  if (location == Location{}) return kNoLocation;
  const std::uint64_t key = hash_location(location);
  for (auto [it, end] = location_ids.equal_range(key); it != end; ++it) {
    if (locations[it->second] == location) return it->second;
  }
  const auto id = static_cast<LocationId>(locations.size());
  locations.push_back(std::move(location));
  location_ids.emplace(key, id);
  return id;
}

}  // namespace jaxport::front
