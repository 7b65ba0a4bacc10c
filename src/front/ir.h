// SPDX-License-Identifier: Apache-2.0
// Front IR: a jaxpr as typed, positional SSA data. Text form: .jir (front/text.h).
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "dim/dim.h"
#include "support/dtype.h"
#include "support/tensor.h"

namespace jaxport::front {

struct Type {
  DType dtype = DType::kF32;
  Dims shape;
  friend bool operator==(const Type&, const Type&) = default;
};
std::string to_string(const Type& type);  // "f32[B,4,8]"

struct Attr;
struct Function;
using List = std::vector<Attr>;
using Attrs = std::vector<std::pair<std::string, Attr>>;  // sorted by name
// A named tuple of JAX, such as GatherDimensionNumbers: its fields keep their order.
struct Record {
  std::string name;
  std::vector<std::pair<std::string, Attr>> fields;

  // Defined where Attr is complete: a pair of an incomplete type cannot be copied or destroyed.
  Record();
  Record(std::string record_name, std::vector<std::pair<std::string, Attr>> record_fields);
  Record(const Record&);
  Record(Record&&) noexcept;
  Record& operator=(const Record&);
  Record& operator=(Record&&) noexcept;
  ~Record();
};
struct Enum {
  std::string name;
};  // GatherScatterMode.CLIP -> "clip"
struct Opaque {
  std::string text;
};  // what we keep for the reader only (shardings, functions)
using Region = std::shared_ptr<const Function>;  // a nested jaxpr, closed over its constants
struct None {};

// One parameter of an equation: a typed tree. What it may hold becomes one by itself, so that lists
// are written as List{low, 0, "mode"}.
struct Attr {
  std::variant<None, bool, std::int64_t, double, std::string, DType, Dim, Enum, List, Record,
               Region, Tensor, Opaque>
      value;

  // NOLINTBEGIN(google-explicit-constructor)
  Attr(None = {}) {}
  template <std::integral T>
  Attr(T number) {
    if constexpr (std::same_as<T, bool>) {
      value = number;
    } else {
      value = static_cast<std::int64_t>(number);
    }
  }
  Attr(double number) : value(number) {}
  Attr(std::string text) : value(std::move(text)) {}
  Attr(const char* text) : value(std::string(text)) {}
  Attr(DType dtype) : value(dtype) {}
  Attr(Dim dim) : value(std::move(dim)) {}
  Attr(Enum choice) : value(std::move(choice)) {}
  Attr(List items) : value(std::move(items)) {}
  Attr(Record record) : value(std::move(record)) {}
  Attr(Region region) : value(std::move(region)) {}
  Attr(Tensor tensor) : value(std::move(tensor)) {}
  Attr(Opaque opaque) : value(std::move(opaque)) {}
  Attr(const Ints& numbers);  // as a list
  Attr(const Dims& sizes);    // as a list
  // NOLINTEND(google-explicit-constructor)

  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&value);
  }
  bool is_none() const { return std::holds_alternative<None>(value); }
};
// By content: tensors by bytes, regions up to names and locations, a static Dim as its integer.
bool operator==(const Attr& a, const Attr& b);
std::uint64_t hash(const Attr& attr);
std::uint64_t hash(const Attrs& attrs);
const Attr* find(const Attrs& attrs, std::string_view name);  // nullptr when absent
void set(Attrs& attrs, std::string_view name, Attr value);    // added when absent

using ValueId = std::uint32_t;

struct Value {
  Type type;
  std::string name;  // readable and unique in its function, without '%'; never empty
};

// Where an equation comes from. `scope` is JAX's name stack; `library` is the innermost frame in an
// installed package when that differs from the user's own line.
struct Location {
  std::string file, function, scope, library;
  int line = 0;
  friend bool operator==(const Location&, const Location&) = default;
};
using LocationId = std::uint32_t;      // index into Module::locations
constexpr LocationId kNoLocation = 0;  // locations[0] is empty
std::string to_string(
    const Location& location);  // "model.py:42 in Router.__call__", "" when unknown

struct Eqn {
  std::string primitive;  // JAX's name: "dot_general"
  std::vector<ValueId> in, out;
  Attrs attrs;
  LocationId location = kNoLocation;
};

// An equation that the importer could not take apart holds the reason beside its parameters:
// {problem = Problem(code = "E012", message = "…", help = "…")}.
constexpr std::string_view kProblem = "problem";

// A closed-over array. Scalars that JAX writes as literals are constants with an empty path.
struct Constant {
  ValueId value;
  Tensor tensor;
  std::string path;  // "blocks.3.attn.query.kernel" when known
};

// Names of a function that are taken, so that a fresh one is found at once. Names it made up
// ("x_1", "0") are known by their counter and take no memory.
struct NameTable {
  std::unordered_map<std::string, std::uint32_t> next_suffix;  // by name; "" counts plain numbers
  std::size_t value_count = 0;                                 // how many values are entered
  bool is_taken(const std::string& name) const;
  std::string fresh(std::string wanted);  // `wanted` if it is free; enters the result
};

struct Function {
  std::string name;
  std::vector<Value> values;  // by ValueId
  std::vector<ValueId> params;
  std::vector<Constant> constants;
  std::vector<Eqn> eqns;  // in order of definition
  std::vector<ValueId> results;
  std::vector<std::string> result_names;  // empty, or one for each result
  NameTable names;                        // kept by add_value

  const Type& type(ValueId id) const { return values[id].type; }
  // Adds a value; an empty or taken name becomes a fresh one: "x_1", "0".
  ValueId add_value(Type type, std::string wanted = "");
};

// The same program: equal but for names, value ids, paths and locations.
bool equivalent(const Function& a, const Function& b);

struct Module {
  std::shared_ptr<DimScope> dims = std::make_shared<DimScope>();
  std::vector<Location> locations{Location{}};
  std::vector<Function> functions;  // the first is the program; others exist in text tests only
  std::unordered_multimap<std::uint64_t, LocationId> location_ids;  // by hash; see add_location
  LocationId add_location(Location location);  // the id of an equal one when there is one
};

// Throws Error E030 when an operand is undefined or defined later, a name or id is used twice,
// a region's signature does not fit, or a constant's type differs from its value's.
void verify(const Module& module);

}  // namespace jaxport::front
