// SPDX-License-Identifier: Apache-2.0
#include "compile/missing.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <ranges>
#include <set>

#include "axis/graph/pointwise.h"
#include "axis/translate/translate.h"
#include "front/text.h"
#include "onnx/schema.h"

namespace jaxport::compile {
namespace {

using front::Eqn;
using front::Function;

struct Place {
  const Function& function;
  const Eqn& eqn;
  front::LocationId location;  // of the call around it where the equation has none
};

// Visits the equations that a result depends on, regions after the equation they belong to, each
// function once.
class Walk {
 public:
  explicit Walk(std::function<void(const Place&)> visit) : visit_(std::move(visit)) {}

  void function(const Function& function, front::LocationId outer) {
    if (!seen_.insert(&function).second) return;
    for (const Eqn* eqn : live(function)) {
      const front::LocationId here = eqn->location == front::kNoLocation ? outer : eqn->location;
      visit_({function, *eqn, here});
      for (const auto& [name, attr] : eqn->attrs) regions(attr, here);
    }
  }

 private:
  static std::vector<const Eqn*> live(const Function& function) {
    std::vector<bool> is_used(function.values.size(), false);
    for (front::ValueId id : function.results) is_used[id] = true;
    std::vector<const Eqn*> result;
    for (const Eqn& eqn : function.eqns | std::views::reverse) {
      if (std::ranges::none_of(eqn.out, [&](front::ValueId id) { return is_used[id]; })) continue;
      for (front::ValueId id : eqn.in) is_used[id] = true;
      result.push_back(&eqn);
    }
    std::ranges::reverse(result);
    return result;
  }

  void regions(const front::Attr& attr, front::LocationId here) {
    if (const auto* region = attr.get_if<front::Region>()) return function(**region, here);
    if (const auto* list = attr.get_if<front::List>()) {
      for (const front::Attr& item : *list) regions(item, here);
    }
  }

  std::function<void(const Place&)> visit_;
  std::set<const Function*> seen_;
};

const front::Record* problem_of(const Eqn& eqn) {
  const bool may_be = eqn.attrs.size() == 1 && eqn.attrs[0].first == kProblem;
  return may_be ? eqn.attrs[0].second.get_if<front::Record>() : nullptr;
}

// A pointwise primitive without a lowering at any opset: the axis graph spells it with others.
bool is_respelled(std::string_view name) {
  return axis::find_pointwise(name) != nullptr &&
         lower::find_row(name, onnx::kNewestOpset) == nullptr;
}

std::string field(const front::Record& record, std::size_t i) {
  const auto* text =
      i < record.fields.size() ? record.fields[i].second.get_if<std::string>() : nullptr;
  return text != nullptr ? *text : std::string();
}

}  // namespace

void refuse_problems(const front::Module& module) {
  Walk walk([&](const Place& place) {
    const front::Record* problem = problem_of(place.eqn);
    if (problem == nullptr) return;
    Error error(field(*problem, 0), field(*problem, 1));
    error.help(field(*problem, 2));
    Eqn shown = place.eqn;
    shown.attrs.clear();
    error.equation(front::print(place.function, shown));
    throw Error(front::located(std::move(error), module.locations.at(place.location)));
  });
  walk.function(module.functions.at(0), front::kNoLocation);
}

void note_missing(Error& error, const front::Module& module, int opset,
                  const lower::UserLowerings& lowerings) {
  std::map<std::string_view, std::size_t> uses;
  Walk walk([&](const Place& place) {
    const std::string_view name = place.eqn.primitive;
    const bool is_known = problem_of(place.eqn) == nullptr &&
                          (lowerings.contains(name) || axis::is_translated(name) ||
                           lower::find_row(name, opset) != nullptr || is_respelled(name));
    if (!is_known) ++uses[name];
  });
  walk.function(module.functions.at(0), front::kNoLocation);
  std::vector<std::string> others;
  for (const auto& [name, count] : uses) {
    if (error.message().find(fmt::format("'{}'", name)) != std::string::npos) continue;
    others.push_back(fmt::format("{} ({} use{})", name, count, count == 1 ? "" : "s"));
  }
  if (!others.empty()) {
    error.note(fmt::format("also missing in this model: {}", fmt::join(others, ", ")));
  }
}

}  // namespace jaxport::compile
