// SPDX-License-Identifier: Apache-2.0
#include "explore/flow.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace jaxport::explore {
namespace {

using front::LocationId;
using Ids = std::vector<LocationId>;

// "blocks.3.attn" of "blocks.3.attn.kernel".
std::string owner(std::string_view path) {
  const auto dot = path.rfind('.');
  return std::string(path.substr(0, dot == std::string_view::npos ? 0 : dot));
}

std::string common_part(std::string_view a, std::string_view b) {
  std::size_t end = 0;
  for (std::size_t i = 0; i <= std::min(a.size(), b.size()); ++i) {
    const bool a_ends = i == a.size() || a[i] == '.', b_ends = i == b.size() || b[i] == '.';
    if (a_ends && b_ends) end = i;
    if (i == std::min(a.size(), b.size()) || a[i] != b[i]) break;
  }
  return std::string(a.substr(0, end));
}

class Collector {
 public:
  Collector(const front::Module& module, std::vector<Equation>& equations)
      : module_(module), equations_(equations) {}

  void function(const front::Function& function, LocationId around) {
    std::vector<LocationId> maker(function.values.size(), front::kNoLocation);
    std::vector<std::string> weight(function.values.size());  // of what only a weight decides
    for (const front::Constant& constant : function.constants) {
      weight[constant.value] = owner(constant.path);
    }
    for (const front::Eqn& eqn : function.eqns) {
      equation(eqn, around, maker, weight);
      for (const auto& [name, attr] : eqn.attrs) regions(attr, eqn.location);
    }
    for (front::ValueId id : function.results) connect(maker[id], around);
    fill_gaps(function);
  }

 private:
  void equation(const front::Eqn& eqn, LocationId around, std::vector<LocationId>& maker,
                std::vector<std::string>& weight) {
    Equation& to = equations_[eqn.location];
    to.primitive = eqn.primitive;
    to.around = around;
    std::optional<std::string> owned;  // by all weights that it reads: a call has those of a block
    for (front::ValueId id : eqn.in) {
      connect(maker[id], eqn.location);
      if (!weight[id].empty()) owned = owned ? common_part(*owned, weight[id]) : weight[id];
    }
    to.layer = owned.value_or("");
    const bool is_weight = eqn.in.size() == 1 && eqn.out.size() == 1 && !to.layer.empty();
    for (front::ValueId id : eqn.out) {
      maker[id] = eqn.location;
      if (is_weight) weight[id] = to.layer;
    }
  }

  void connect(LocationId from, LocationId to) {
    if (from == front::kNoLocation || to == front::kNoLocation) return;
    equations_[from].after.push_back(to);
    equations_[to].before.push_back(from);
  }

  void regions(const front::Attr& attr, LocationId around) {
    if (const auto* region = attr.get_if<front::Region>()) function(**region, around);
    if (const auto* list = attr.get_if<front::List>()) {
      for (const front::Attr& item : *list) regions(item, around);
    }
  }

  // What has no weight of its own is named by JAX's scopes, else by what stands around it.
  void fill_gaps(const front::Function& function) {
    std::string last;
    std::vector<std::size_t> gap;
    const auto close = [&](const std::string& next) {
      const std::string around = common_part(last, next);
      for (std::size_t i : gap) {
        const std::string joined = joined_layer(function.eqns[i].location);
        layer(function, i) = joined.size() > around.size() ? joined : around;
      }
      gap.clear();
    };
    for (std::size_t i = 0; i < function.eqns.size(); ++i) {
      std::string& own = layer(function, i);
      if (own.empty()) own = scope_of(function.eqns[i].location);
      if (own.empty()) {
        gap.push_back(i);
      } else {
        close(own);
        last = own;
      }
    }
    close("");
  }

  // What the layers of several operands have in common: that of the block which a residual
  // connection ends.
  std::string joined_layer(LocationId id) const {
    std::optional<std::string> joined;
    std::size_t operands = 0;
    for (LocationId operand : equations_[id].before) {
      const std::string& own = equations_[operand].layer;
      if (own.empty()) continue;
      joined = joined ? common_part(*joined, own) : own;
      ++operands;
    }
    return operands > 1 ? *joined : "";
  }

  std::string& layer(const front::Function& function, std::size_t i) {
    return equations_[function.eqns[i].location].layer;
  }

  // JAX's name stack as a path; what a transformation adds, such as vmap(…), is no layer.
  std::string scope_of(LocationId id) const {
    std::string scope = module_.locations[id].scope;
    if (scope.find_first_of("(),>") != std::string::npos) return "";
    std::ranges::replace(scope, '/', '.');
    return scope;
  }

  const front::Module& module_;
  std::vector<Equation>& equations_;
};

// The nearest equations in one direction that have nodes.
Ids nearest(const std::vector<Equation>& equations, const std::set<LocationId>& alive,
            LocationId from, Ids Equation::*direction) {
  Ids found, waiting{from};
  std::set<LocationId> seen{from};
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    for (LocationId next : equations[waiting[i]].*direction) {
      if (!seen.insert(next).second) continue;
      (alive.contains(next) ? found : waiting).push_back(next);
    }
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

std::vector<Equation> equations_of(const front::Module& flattened) {
  std::vector<Equation> equations(flattened.locations.size());
  Collector(flattened, equations).function(flattened.functions.at(0), front::kNoLocation);
  return equations;
}

std::vector<Ids> standing_for(const std::vector<Equation>& equations,
                              const std::set<LocationId>& alive) {
  std::vector<Ids> result(equations.size());
  for (LocationId id = 1; id < equations.size(); ++id) {
    if (alive.contains(id)) {
      result[id] = {id};
      continue;
    }
    result[id] = nearest(equations, alive, id, &Equation::after);
    if (result[id].empty()) result[id] = nearest(equations, alive, id, &Equation::before);
  }
  return result;
}

}  // namespace jaxport::explore
