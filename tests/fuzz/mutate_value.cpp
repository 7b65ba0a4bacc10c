// SPDX-License-Identifier: Apache-2.0
// Mutations that put something behind a value: v becomes f(v), of the same type.
#include <array>
#include <functional>
#include <optional>

#include "common.h"
#include "edit.h"
#include "mutate.h"

namespace jaxport::fuzz {
namespace {

using front::Attr;
using front::Type;
using front::ValueId;

// Where something is inserted.
struct Place {
  Subject& subject;
  Inserter insert;
  ValueId value;

  Rng& rng() { return subject.rng; }
  // By value: the function's values move when one is added.
  Type type() { return insert.function().type(value); }
  ValueId scalar(double number) { return insert.scalar(number, type().dtype); }
  ValueId filled(double number) { return insert.broadcast(scalar(number), type().shape, {}); }
  ValueId same(std::string_view primitive, std::vector<ValueId> in) {
    return insert.emit(primitive, std::move(in), type());
  }
  ValueId test(std::string_view primitive, std::vector<ValueId> in) {
    return insert.emit(primitive, std::move(in), {DType::kBool, type().shape});
  }
  ValueId pick(ValueId which, ValueId if_false, ValueId if_true) {
    return same("select_n", {which, if_false, if_true});
  }
};

// What rules look at most: products, and what exponentials and roots are taken of, up to a sum.
std::vector<Target> key_values(const front::Function& function,
                               const std::vector<Target>& targets) {
  std::vector<bool> is_key(function.values.size(), false);
  for (auto eqn = function.eqns.rbegin(); eqn != function.eqns.rend(); ++eqn) {
    const bool is_below =
        is_among(eqn->primitive, {"add", "sub", "broadcast_in_dim", "reduce_max"}) &&
        is_key[eqn->out[0]];
    if (is_below || is_among(eqn->primitive, {"exp", "log", "rsqrt", "sqrt"})) {
      for (ValueId id : eqn->in) is_key[id] = true;
    }
    if (eqn->primitive == "dot_general") is_key[eqn->out[0]] = true;
  }
  std::vector<Target> keys = targets;
  std::erase_if(keys, [&](const Target& target) { return target.at == 0 || !is_key[target.id]; });
  return keys;
}

// Some of the uses of a value now see f(value) instead. What makes sense at key values alone is put
// there where there are any.
enum class Where : std::uint8_t { kAnywhere, kAtKeys };
bool wrap(Subject& subject, const std::function<std::optional<ValueId>(Place&)>& f,
          Where where = Where::kAnywhere) {
  const std::vector<Target> targets = float_values(subject.function);
  if (targets.empty()) return false;
  // Inner values rather than inputs.
  Target target = subject.rng.of(targets);
  if (target.at == 0) target = subject.rng.of(targets);
  const std::vector<Target> keys = key_values(subject.function, targets);
  if (!keys.empty() && (where == Where::kAtKeys || subject.rng.coin()))
    target = subject.rng.of(keys);
  Place place{subject, Inserter(subject.function, target.at), target.id};
  const std::size_t before = subject.function.eqns.size();
  const auto changed = f(place);
  if (!changed) return false;
  const std::size_t begin = target.at + (subject.function.eqns.size() - before);
  if (subject.rng.one_in(4)) {  // one use alone
    std::vector<std::pair<std::size_t, std::size_t>> uses;
    for (std::size_t i = begin; i < subject.function.eqns.size(); ++i) {
      for (std::size_t k = 0; k < subject.function.eqns[i].in.size(); ++k) {
        if (subject.function.eqns[i].in[k] == target.id) uses.emplace_back(i, k);
      }
    }
    if (!uses.empty()) {
      const auto [eqn, operand] = subject.rng.of(uses);
      subject.function.eqns[eqn].in[operand] = *changed;
      return true;
    }
  }
  replace_uses(subject.function, target.id, *changed, begin);
  return true;
}

// A literal, an array of constants, or an operand: a scalar, one number for each row, each column
// or each element, or a value that is there already.
ValueId operand(Place& place, DType dtype) {
  Rng& rng = place.rng();
  front::Function& function = place.subject.function;
  const Dims shape = place.type().shape;
  if (rng.coin()) return place.insert.scalar(hostile_literal(rng), dtype);
  if (place.subject.is_region || rng.one_in(4)) {
    std::vector<ValueId> fitting;
    for (const Target& target : float_values(function)) {
      const Type& type = function.type(target.id);
      if (target.at <= place.insert.at() && type.dtype == dtype &&
          (type.shape.empty() || type.shape == shape)) {
        fitting.push_back(target.id);
      }
    }
    if (!fitting.empty()) return rng.of(fitting);
    return place.insert.scalar(hostile_literal(rng), dtype);
  }
  if (shape.empty() || rng.one_in(4)) return add_param(function, {dtype, {}});
  // Some of the axes.
  Dims kept;
  Ints dims;
  const std::size_t kind = rng.below(4);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool is_last = i + 1 == shape.size();
    const bool keep = kind == 0 ? is_last : kind == 1 ? !is_last : kind == 2 || rng.coin();
    if (!keep) continue;
    kept.push_back(shape[i]);
    dims.push_back(static_cast<std::int64_t>(i));
  }
  return place.insert.broadcast(add_param(function, {dtype, kept}), shape, dims);
}

bool factor(Subject& subject) {
  return wrap(subject, [](Place& p) -> std::optional<ValueId> {
    const ValueId by = operand(p, p.type().dtype);
    if (p.rng().one_in(4)) return p.same("div", {p.value, by});
    return p.rng().coin() ? p.same("mul", {p.value, by}) : p.same("mul", {by, p.value});
  });
}

bool term(Subject& subject) {
  return wrap(subject, [](Place& p) -> std::optional<ValueId> {
    const ValueId by = operand(p, p.type().dtype);
    if (p.rng().one_in(3)) return p.same("sub", {p.value, by});
    if (p.rng().one_in(6)) return p.same("sub", {by, p.value});
    return p.same("add", {p.value, by});
  });
}

bool clamp(Subject& subject) {
  return wrap(subject, [](Place& p) -> std::optional<ValueId> {
    const double bound = hostile_literal(p.rng());
    const ValueId limit = p.scalar(bound);
    static constexpr std::string_view kTests[] = {"lt", "le", "gt", "ge"};
    switch (p.rng().below(4)) {
      case 0:
        return p.same("max", {p.value, limit});
      case 1:
        return p.same("min", {p.value, limit});
      case 2:
        return p.same("clamp", {limit, p.value, p.scalar(hostile_literal(p.rng()))});
      default: {
        const ValueId test = p.test(p.rng().of(kTests), {p.value, limit});
        const ValueId other = p.filled(p.rng().coin() ? bound : hostile_literal(p.rng()));
        return p.rng().coin() ? p.pick(test, p.value, other) : p.pick(test, other, p.value);
      }
    }
  });
}

// max(v - c, 0), in the two spellings, and max(v - c, 0) + d, which has a root: idle for some
// numbers alone.
bool shifted_clamp(Subject& subject) {
  const auto clamped = [](Place& p, ValueId shifted) {
    if (p.rng().coin()) return p.same("max", {shifted, p.scalar(0)});
    const ValueId is_low = p.test("lt", {shifted, p.scalar(0)});
    return p.pick(is_low, shifted, p.filled(0));
  };
  const auto change = [&](Place& p) -> std::optional<ValueId> {
    const ValueId shifted = p.same("sub", {p.value, p.scalar(hostile_literal(p.rng()))});
    const ValueId result = clamped(p, shifted);
    if (p.rng().coin()) return result;
    return p.same("add", {result, p.scalar(hostile_literal(p.rng()))});
  };
  return wrap(subject, change, Where::kAtKeys);
}

bool round_trip(Subject& subject) {
  return wrap(subject, [](Place& p) -> std::optional<ValueId> {
    static constexpr DType kThere[] = {DType::kBool, DType::kBool, DType::kI32, DType::kF16,
                                       DType::kBF16};
    const DType back = p.type().dtype;
    const DType there = p.rng().of(kThere);
    if (there == back) return std::nullopt;
    return p.insert.convert(p.insert.convert(p.value, there), back);
  });
}

// A bool for each element: of positions, of an input, of the value itself.
std::optional<ValueId> mask_of(Place& p) {
  const Dims shape = p.type().shape;
  const bool has_plane = shape.size() >= 2;
  if (has_plane && (p.subject.is_region || p.rng().one_in(3))) {
    std::array<ValueId, 2> positions{};
    const std::size_t first = p.rng().below(shape.size() - 1);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t axis = i == 0 ? first : shape.size() - 1;
      positions[i] = p.insert.emit("iota", {}, {DType::kI32, shape},
                                   {{"dimension", Attr{static_cast<std::int64_t>(axis)}},
                                    {"dtype", Attr{DType::kI32}},
                                    {"shape", list(shape)},
                                    {"sharding", Attr{front::None{}}}});
    }
    static constexpr std::string_view kTests[] = {"ge", "gt", "le", "lt", "ne"};
    return p.test(p.rng().of(kTests), {positions[0], positions[1]});
  }
  if (p.subject.is_region) return std::nullopt;
  Dims kept;
  Ints dims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (p.rng().one_in(4)) continue;
    kept.push_back(shape[i]);
    dims.push_back(static_cast<std::int64_t>(i));
  }
  const ValueId input = add_param(p.subject.function, {DType::kBool, kept});
  return p.insert.broadcast(input, shape, dims);
}

std::optional<ValueId> masked(Place& p, double number) {
  const auto keep = mask_of(p);
  if (!keep) return std::nullopt;
  const ValueId fill = p.filled(number);
  if (p.rng().one_in(3)) {  // added
    const ValueId added = p.pick(*keep, fill, p.filled(0));
    return p.same("add", {p.value, added});
  }
  return p.rng().one_in(6) ? p.pick(*keep, p.value, fill) : p.pick(*keep, fill, p.value);
}

bool mask(Subject& subject) {
  return wrap(subject, [](Place& p) { return masked(p, fill_literal(p.rng())); });
}

// Two masks, or a mask and a term: rows that both mask show which of them is the lower.
bool masks(Subject& subject) {
  const auto change = [](Place& p) -> std::optional<ValueId> {
    static constexpr double kLow[] = {-1e4, -1e9, -1e15, -1e30, -3.4028234663852886e38};
    const bool has_term = p.rng().one_in(4);
    const int term = has_term ? static_cast<int>(p.rng().below(2)) : -1;
    for (int i = 0; i < 2; ++i) {
      const auto next = i == term ? p.same("add", {p.value, operand(p, p.type().dtype)})
                                  : masked(p, p.rng().of(kLow));
      if (!next) return std::nullopt;
      p.value = *next;
    }
    return p.value;
  };
  return wrap(subject, change, Where::kAtKeys);
}

// x where it is a number, or finite; 0 elsewhere
bool number_guard(Subject& subject) {
  return wrap(subject, [](Place& p) -> std::optional<ValueId> {
    const ValueId other = p.filled(p.rng().one_in(3) ? hostile_literal(p.rng()) : 0);
    if (p.rng().coin()) return p.pick(p.test("ne", {p.value, p.value}), p.value, other);
    return p.pick(p.test("is_finite", {p.value}), other, p.value);
  });
}

bool function_of(Subject& subject) {
  return wrap(subject, [](Place& p) -> std::optional<ValueId> {
    static constexpr std::string_view kNames[] = {"neg", "abs",  "tanh",  "logistic", "sqrt",
                                                  "exp", "sign", "log1p", "floor",    "square"};
    return p.same(p.rng().of(kNames), {p.value});
  });
}

// There and back again: a value along other axes, or with a unit dim.
bool relayout(Subject& subject) {
  return wrap(subject, [](Place& p) -> std::optional<ValueId> {
    const Type type = p.type();
    Dims wider = type.shape;
    const std::size_t at = p.rng().below(wider.size() + 1);
    wider.insert(wider.begin() + static_cast<std::ptrdiff_t>(at), Dim(1));
    const auto reshape = [&](ValueId id, const Dims& shape) {
      return p.insert.emit("reshape", {id}, {type.dtype, shape},
                           {{"dimensions", Attr{front::None{}}}, {"new_sizes", list(shape)}});
    };
    if (p.rng().coin()) return reshape(reshape(p.value, wider), type.shape);
    // Two axes of one size change places.
    for (std::size_t i = 0; i < type.shape.size(); ++i) {
      for (std::size_t j = i + 1; j < type.shape.size(); ++j) {
        if (!(type.shape[i] == type.shape[j])) continue;
        Ints permutation;
        for (std::size_t k = 0; k < type.shape.size(); ++k) {
          permutation.push_back(static_cast<std::int64_t>(k == i ? j : k == j ? i : k));
        }
        return p.insert.emit("transpose", {p.value}, type, {{"permutation", list(permutation)}});
      }
    }
    return std::nullopt;
  });
}

// Mean, maximum or sum along some axis, at every element again.
bool reduction(Subject& subject) {
  return wrap(subject, [](Place& p) -> std::optional<ValueId> {
    const Type type = p.type();
    if (type.shape.empty()) return std::nullopt;
    const std::size_t axis = p.rng().below(type.shape.size());
    Dims kept;
    Ints dims;
    for (std::size_t i = 0; i < type.shape.size(); ++i) {
      if (i == axis) continue;
      kept.push_back(type.shape[i]);
      dims.push_back(static_cast<std::int64_t>(i));
    }
    static constexpr std::string_view kNames[] = {"reduce_max", "reduce_sum", "reduce_min"};
    const ValueId reduced = p.insert.emit(p.rng().of(kNames), {p.value}, {type.dtype, kept},
                                          {{"axes", list(Ints{static_cast<std::int64_t>(axis)})}});
    const ValueId back = p.insert.broadcast(reduced, type.shape, dims);
    return p.rng().coin() ? p.same("sub", {p.value, back}) : p.same("div", {p.value, back});
  });
}

}  // namespace

std::vector<Mutation> value_mutations() {
  return {{"factor", 10, factor},
          {"term", 10, term},
          {"clamp", 10, clamp},
          {"round trip", 6, round_trip},
          {"mask", 6, mask},
          {"masks", 7, masks},
          {"number guard", 3, number_guard},
          {"function", 4, function_of},
          {"relayout", 4, relayout},
          {"reduction", 2, reduction},
          {"shifted clamp", 6, shifted_clamp}};
}

}  // namespace jaxport::fuzz
