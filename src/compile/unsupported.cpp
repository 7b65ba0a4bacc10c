// SPDX-License-Identifier: Apache-2.0
#include "compile/unsupported.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <tuple>
#include <utility>

#include "axis/graph/pointwise.h"
#include "axis/translate/translate.h"
#include "front/text.h"
#include "lower/lower.h"
#include "onnx/schema.h"

namespace jaxport::compile {
namespace {

using front::Eqn;
using front::Function;

std::vector<const Eqn*> live(const Function& function) {
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

const front::Record* problem_of(const Eqn& eqn) {
  const front::Attr* attr = front::find(eqn.attrs, front::kProblem);
  const auto* record = attr != nullptr ? attr->get_if<front::Record>() : nullptr;
  return record != nullptr && record->name == "Problem" ? record : nullptr;
}

std::string field(const front::Record& record, std::size_t i) {
  const auto* text =
      i < record.fields.size() ? record.fields[i].second.get_if<std::string>() : nullptr;
  return text != nullptr ? *text : std::string();
}

// A pointwise primitive without a lowering at any opset: the axis graph spells it with others.
bool is_respelled(std::string_view name) {
  return axis::find_pointwise(name) != nullptr &&
         lower::find_row(name, onnx::kNewestOpset) == nullptr;
}

bool names(const Error& error, std::string_view primitive) {
  return error.message().find(fmt::format("'{}'", primitive)) != std::string::npos;
}

}  // namespace

LeftOut::LeftOut(const front::Module& module, int opset, const lower::UserLowerings& lowerings)
    : module_(module), opset_(opset), lowerings_(lowerings) {
  collect(module.functions.at(0), front::kNoLocation);
}

// Each function once: a region may be shared.
void LeftOut::collect(const Function& function, front::LocationId outer) {
  if (!seen_.insert(&function).second) return;
  for (const Eqn* eqn : live(function)) {
    const front::LocationId here = eqn->location == front::kNoLocation ? outer : eqn->location;
    places_.push_back({function, *eqn, module_.locations.at(here)});
    if (problem_of(*eqn) != nullptr) continue;
    for (const auto& [name, attr] : eqn->attrs) collect(attr, here);
  }
}

void LeftOut::collect(const front::Attr& attr, front::LocationId outer) {
  if (const auto* region = attr.get_if<front::Region>()) return collect(**region, outer);
  if (const auto* list = attr.get_if<front::List>()) {
    for (const front::Attr& item : *list) collect(item, outer);
  }
}

void LeftOut::refuse_problems() const {
  for (const Place& place : places_) {
    const front::Record* problem = problem_of(place.eqn);
    if (problem == nullptr || contains(place.eqn)) continue;
    Error error(field(*problem, 0), field(*problem, 1));
    error.help(field(*problem, 2));
    Eqn shown = place.eqn;
    shown.attrs.clear();
    error.equation(front::print(place.function, shown));
    throw Error(front::located(std::move(error), place.location));
  }
}

bool LeftOut::is_known(const Eqn& eqn) const {
  const std::string_view name = eqn.primitive;
  return lowerings_.contains(name) || axis::is_translated(name) ||
         lower::find_row(name, opset_) != nullptr || is_respelled(name);
}

void LeftOut::leave_out(Place& place, std::string reason, std::string help) {
  if (!equations_.insert(&place.eqn).second) return;
  place.reason = std::move(reason);
  place.help = std::move(help);
}

void LeftOut::add_missing() {
  for (Place& place : places_) {
    if (const front::Record* problem = problem_of(place.eqn)) {
      leave_out(place, field(*problem, 1), field(*problem, 2));
    } else if (!is_known(place.eqn)) {
      const std::string& name = place.eqn.primitive;
      leave_out(place, lower::missing(name, opset_), lower::help_for_missing(name));
    }
  }
}

// An error says where it is and names the primitive. Where no equation of that line fits, the
// equation was written in another way meanwhile, at another place: all of its name are meant.
void LeftOut::add_named(const Error& error) {
  for (const bool by_line : {true, false}) {
    bool found = false;
    for (Place& place : places_) {
      const bool is_there = !by_line || front::to_string(place.location) == error.source();
      if (!is_there || !names(error, place.eqn.primitive) || contains(place.eqn)) continue;
      leave_out(place, error.message(), error.help());
      found = true;
    }
    if (found) return;
  }
}

bool LeftOut::add(const Error& error) {
  const std::size_t before = equations_.size();
  add_missing();
  if (error.code() == "E012" || error.code() == "E013") add_named(error);
  return equations_.size() > before;
}

std::vector<Unsupported> LeftOut::list() const {
  std::vector<Unsupported> found;
  for (const Place& place : places_) {
    if (!contains(place.eqn)) continue;
    Unsupported entry{place.eqn.primitive, place.reason, place.help,
                      front::to_string(place.location), place.location.library};
    const auto key = [](const Unsupported& u) {
      return std::tie(u.source, u.library, u.primitive, u.reason);
    };
    const auto same = std::ranges::find_if(
        found, [&](const Unsupported& other) { return key(other) == key(entry); });
    if (same != found.end()) {
      ++same->uses;
    } else {
      found.push_back(std::move(entry));
    }
  }
  return found;
}

Error with_others(Error error, const std::vector<Unsupported>& all) {
  std::vector<Unsupported> others = all;
  const auto first = std::ranges::find_if(others, [&](const Unsupported& u) {
    return u.reason == error.message() && u.source == error.source();
  });
  if (first != others.end() && --first->uses == 0) others.erase(first);
  // A line of the user may be met again later in the program.
  while (!others.empty()) {
    const std::string source = others.front().source;
    error.note(source.empty() ? "also" : "also at " + source);
    std::erase_if(others, [&](const Unsupported& other) {
      if (other.source != source) return false;
      const bool is_missing = other.help == lower::help_for_missing(other.primitive);
      error.note(fmt::format("  {} ({} use{}){}{}{}{}", other.primitive, other.uses,
                             other.uses == 1 ? "" : "s", other.library.empty() ? "" : ", through ",
                             other.library, is_missing ? "" : ": ",
                             is_missing ? "" : other.reason));
      if (!is_missing && !other.help.empty()) error.note("    " + other.help);
      return true;
    });
  }
  return error;
}

}  // namespace jaxport::compile
