// SPDX-License-Identifier: Apache-2.0
#include "front/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

#include "front/params.h"
#include "support/hash.h"

namespace jaxport::front {
namespace {

constexpr std::size_t kLeastEquations = 8;
constexpr std::size_t kMostRuns = 8;  // in one function

// --- names

// "blocks.3.attn" -> "blocks", "params.Block_0" -> "Block": the last part that is no mere number.
std::string name_from_path(std::string_view path) {
  while (!path.empty()) {
    const std::size_t dot = path.rfind('.');
    std::string part(dot == std::string_view::npos ? path : path.substr(dot + 1));
    while (!part.empty() && std::isdigit(static_cast<unsigned char>(part.back())) != 0) {
      part.pop_back();
    }
    while (part.ends_with('_')) part.pop_back();
    std::ranges::replace_if(
        part, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    if (!part.empty()) return part;
    path = path.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return "repeated";
}

// What all paths start with, up to a dot.
std::string common_owner(const std::vector<std::string>& paths) {
  if (paths.empty()) return "";
  std::string_view common = paths[0];
  common = common.substr(0, common.rfind('.'));
  const auto is_shared = [&](std::string_view prefix) {
    return std::ranges::all_of(paths, [&](std::string_view path) {
      return path.starts_with(prefix) &&
             (path.size() == prefix.size() || path[prefix.size()] == '.');
    });
  };
  while (!common.empty() && !is_shared(common)) {
    const std::size_t dot = common.rfind('.');
    common = common.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return std::string(common);
}

void mark(Eqn& call, std::string_view name) {
  set(call.attrs, "name", fmt::format("onnx_function:custom:{}:shares", name));
}

// --- calls

std::size_t equation_count(const Function& function) {
  std::size_t count = 0;
  for (const Eqn& eqn : function.eqns) {
    const CallRow* call = find_call(eqn.primitive);
    count += call ? equation_count(*get_region(eqn, call->region)) : 1;
  }
  return count;
}

bool is_scalar(const Constant& constant) { return constant.tensor.shape.empty(); }

// A body whose constants, but for scalars, are parameters behind its own.
struct Lifted {
  Region body;
  std::vector<Constant> constants;
};

Lifted lifted(const Function& function) {
  Function body = function;
  Lifted result;
  for (Constant& constant : std::exchange(body.constants, {})) {
    if (is_scalar(constant)) {
      body.constants.push_back(std::move(constant));
    } else {
      body.params.push_back(constant.value);
      result.constants.push_back(std::move(constant));
    }
  }
  result.body = std::make_shared<const Function>(std::move(body));
  return result;
}

// The name of the jitted function as that of an ONNX function.
std::string call_name(const Eqn& call) {
  const Attr* name = find(call.attrs, "name");
  const auto* text = name ? name->get_if<std::string>() : nullptr;
  return name_from_path(text ? *text : "");
}

struct Call {
  std::size_t eqn;
  Lifted lifted;
};

std::vector<std::vector<Call>> equal_calls(const Function& function) {
  std::vector<std::vector<Call>> groups;
  for (std::size_t i = 0; i < function.eqns.size(); ++i) {
    const Eqn& eqn = function.eqns[i];
    if (eqn.primitive != "jit" || function_mark(eqn)) continue;
    const Region& body = get_region(eqn, "jaxpr");
    if (equation_count(*body) < kLeastEquations) continue;
    Call call{i, lifted(*body)};
    auto group = std::ranges::find_if(groups, [&](const std::vector<Call>& members) {
      return equivalent(*members[0].lifted.body, *call.lifted.body);
    });
    if (group == groups.end()) group = groups.emplace(groups.end());
    group->push_back(std::move(call));
  }
  return groups;
}

void mark_equal_calls(Function& function) {
  for (std::vector<Call>& group : equal_calls(function)) {
    if (group.size() < 2) continue;
    const std::string name = call_name(function.eqns[group[0].eqn]);
    for (Call& call : group) {
      Eqn& eqn = function.eqns[call.eqn];
      const Function& body = *call.lifted.body;
      for (Constant& constant : call.lifted.constants) {
        constant.value = function.add_value(body.type(constant.value));
        eqn.in.push_back(constant.value);
        function.constants.push_back(std::move(constant));
      }
      set(eqn.attrs, "jaxpr", call.lifted.body);
      mark(eqn, name);
    }
  }
}

// --- stretches of equations

std::uint64_t hash_types(const Function& function, const std::vector<ValueId>& values) {
  std::uint64_t hash = values.size();
  for (ValueId id : values) {
    hash = mix(hash, static_cast<std::uint64_t>(function.type(id).dtype));
    for (const Dim& size : function.type(id).shape) hash = mix(hash, size.hash());
  }
  return hash;
}

struct Run {
  std::size_t first = 0, period = 0, count = 0;
  std::size_t saved() const { return (count - 1) * period; }
};

class Stretches {
 public:
  explicit Stretches(Function& function)
      : function_(function),
        producer_(function.values.size(), kNone),
        last_use_(function.values.size(), 0),
        constant_(function.values.size(), nullptr) {
    const std::size_t end = function.eqns.size();
    for (std::size_t i = 0; i < end; ++i) {
      const Eqn& eqn = function.eqns[i];
      for (ValueId id : eqn.in) last_use_[id] = i;
      for (ValueId id : eqn.out) producer_[id] = i;
      tokens_.push_back(
          hash_text(eqn.primitive, mix(hash(eqn.attrs), hash_types(function, eqn.in))));
    }
    for (ValueId id : function.results) last_use_[id] = end;
    for (const Constant& constant : function.constants) constant_[constant.value] = &constant;
  }

  // Makes calls of the stretches that save the most equations. False when there are none.
  bool outline() {
    const std::vector<Run> found = runs();
    return std::ranges::any_of(found, [this](const Run& run) { return outline(cut(run)); });
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Piece {
    Region body;
    std::vector<ValueId> in, out;  // of the function around it
    std::vector<std::string> paths;
  };

  // Distances between an equation and the next equal one, the most frequent first.
  std::vector<std::size_t> periods() const {
    constexpr std::size_t kMostPeriods = 64;
    std::map<std::size_t, std::size_t> votes;
    std::unordered_map<std::uint64_t, std::size_t> latest;  // looked up, never walked
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const auto [entry, is_new] = latest.try_emplace(tokens_[i], i);
      if (!is_new && i - entry->second >= kLeastEquations) ++votes[i - entry->second];
      entry->second = i;
    }
    std::vector<std::pair<std::size_t, std::size_t>> ordered(votes.begin(), votes.end());
    std::ranges::stable_sort(ordered, std::greater{}, [](const auto& vote) { return vote.second; });
    std::vector<std::size_t> result;
    for (const auto& [period, count] : ordered) result.push_back(period);
    result.resize(std::min(result.size(), kMostPeriods));
    return result;
  }

  // How many equations from `first` on are equal to those one period later.
  std::size_t matches(std::size_t first, std::size_t period) const {
    std::size_t length = 0;
    while (first + length + period < tokens_.size() &&
           tokens_[first + length] == tokens_[first + length + period]) {
      ++length;
    }
    return length;
  }

  // Not itself a repetition, as eight equal calls in a row are.
  bool is_primitive(std::size_t first, std::size_t period) const {
    for (std::size_t part = 1; part <= period / 2; ++part) {
      if (period % part == 0 && matches(first, part) >= period - part) return false;
    }
    return true;
  }

  // What looks like a repetition, the largest first.
  std::vector<Run> runs() const {
    constexpr std::size_t kMostTries = 8;
    std::vector<Run> found;
    for (std::size_t period : periods()) {
      for (std::size_t i = 0; i + period < tokens_.size();) {
        const std::size_t length = matches(i, period);
        const Run run{i, period, (length + period) / period};
        if (run.count >= 2 && is_primitive(i, period)) found.push_back(run);
        i += length + 1;
      }
    }
    std::ranges::stable_sort(found, std::greater{}, &Run::saved);
    found.resize(std::min(found.size(), kMostTries), Run{});
    return found;
  }

  bool outline(const Run& run) {
    std::vector<Piece> pieces;
    for (std::size_t k = 0; k < run.count; ++k) {
      pieces.push_back(piece(run.first + k * run.period, run.period));
    }
    const auto [first, last] = equal_pieces(pieces);
    if (last - first < 2) return false;
    replace(std::span(pieces).subspan(first, last - first), run.first + first * run.period,
            run.period);
    return true;
  }

  // The same run from another equation on: where the fewest values cross, and of such cuts where
  // the weights between two have most of their paths in common.
  Run cut(const Run& run) const {
    const std::size_t end = run.first + run.period + matches(run.first, run.period);
    Run best = run;
    std::optional<Border> cheapest;
    for (std::size_t shift = 0; shift < run.period; ++shift) {
      const Run other{run.first + shift, run.period, (end - run.first - shift) / run.period};
      if (other.count < 2) break;
      const Border border = border_of(other.first + run.period, run.period);
      if (cheapest && !(border < *cheapest)) continue;
      cheapest = border;
      best = other;
    }
    return best;
  }

  bool is_inside(ValueId id, std::size_t first, std::size_t count) const {
    return producer_[id] != kNone && producer_[id] >= first && producer_[id] < first + count;
  }

  struct Border {
    std::size_t crossings;
    std::ptrdiff_t owner;  // minus the length of what the paths have in common
    friend auto operator<=>(const Border&, const Border&) = default;
  };

  Border border_of(std::size_t first, std::size_t count) const {
    std::set<ValueId> in;
    std::vector<std::string> paths;
    std::size_t out = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      for (ValueId id : function_.eqns[i].in) {
        const Constant* constant = constant_[id];
        if (!constant && !is_inside(id, first, count)) in.insert(id);
        if (constant && !constant->path.empty()) paths.push_back(constant->path);
      }
      for (ValueId id : function_.eqns[i].out) out += last_use_[id] >= first + count;
    }
    return {in.size() + out, -std::ssize(common_owner(paths))};
  }

  Piece piece(std::size_t first, std::size_t count) const {
    Piece result;
    Function body;
    std::unordered_map<ValueId, ValueId> inner;
    const auto operand = [&](ValueId id) {
      const auto [entry, is_new] = inner.try_emplace(id);
      if (!is_new) return entry->second;
      entry->second = body.add_value(function_.type(id));
      const Constant* constant = constant_[id];
      if (constant && is_scalar(*constant)) {
        body.constants.push_back({entry->second, constant->tensor, constant->path});
        return entry->second;
      }
      body.params.push_back(entry->second);
      result.in.push_back(id);
      if (constant && !constant->path.empty()) result.paths.push_back(constant->path);
      return entry->second;
    };
    for (std::size_t i = first; i < first + count; ++i) {
      Eqn eqn = function_.eqns[i];
      for (ValueId& id : eqn.in) id = operand(id);
      for (ValueId& id : eqn.out) {
        const ValueId own = body.add_value(function_.type(id));
        inner.emplace(id, own);
        if (last_use_[id] >= first + count) {
          body.results.push_back(own);
          result.out.push_back(id);
        }
        id = own;
      }
      body.eqns.push_back(std::move(eqn));
    }
    body.name = name_from_path(common_owner(result.paths));
    result.body = std::make_shared<const Function>(std::move(body));
    return result;
  }

  // The longest sequence of equal pieces: the first and the one behind the last.
  static std::pair<std::size_t, std::size_t> equal_pieces(const std::vector<Piece>& pieces) {
    std::pair<std::size_t, std::size_t> best{0, 0};
    for (std::size_t first = 0; first < pieces.size();) {
      std::size_t last = first + 1;
      while (last < pieces.size() && equivalent(*pieces[first].body, *pieces[last].body)) ++last;
      if (last - first > best.second - best.first) best = {first, last};
      first = last;
    }
    return best;
  }

  void replace(std::span<const Piece> pieces, std::size_t first, std::size_t period) {
    std::vector<Eqn> calls;
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      Eqn call{"jit", pieces[k].in, pieces[k].out, {}, function_.eqns[first + k * period].location};
      set(call.attrs, "jaxpr", pieces[k].body);
      mark(call, pieces[0].body->name);
      calls.push_back(std::move(call));
    }
    auto& eqns = function_.eqns;
    const auto from = eqns.begin() + static_cast<std::ptrdiff_t>(first);
    const auto to = from + static_cast<std::ptrdiff_t>(pieces.size() * period);
    eqns.insert(eqns.erase(from, to), calls.begin(), calls.end());
  }

  Function& function_;
  std::vector<std::size_t> producer_, last_use_;  // by value: equations
  std::vector<const Constant*> constant_;         // by value
  std::vector<std::uint64_t> tokens_;             // by equation
};

}  // namespace

Function with_repeats_marked(Function function) {
  for (Eqn& eqn : function.eqns) {
    if (eqn.primitive != "jit" || function_mark(eqn)) continue;
    const Region& body = get_region(eqn, "jaxpr");
    if (equation_count(*body) < 2 * kLeastEquations) continue;
    set(eqn.attrs, "jaxpr", std::make_shared<const Function>(with_repeats_marked(*body)));
  }
  mark_equal_calls(function);
  for (std::size_t i = 0; i < kMostRuns && Stretches(function).outline(); ++i) {
  }
  return function;
}

}  // namespace jaxport::front
