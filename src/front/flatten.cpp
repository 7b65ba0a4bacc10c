// SPDX-License-Identifier: Apache-2.0
#include "front/flatten.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "front/params.h"

namespace jaxport::front {
namespace {

class Flattening {
 public:
  explicit Flattening(const std::vector<Location>& locations) : old_(locations) {}

  Function function(const Function& from, LocationId around) {
    Function to;
    to.name = from.name;
    std::vector<ValueId> arguments;
    for (ValueId id : from.params) arguments.push_back(add_value(to, from, id));
    to.params = arguments;
    to.results = body(to, from, arguments, around);
    to.result_names = from.result_names;
    return to;
  }

  std::vector<Location> take_locations() { return std::move(locations_); }

 private:
  static ValueId add_value(Function& to, const Function& from, ValueId id) {
    return to.add_value(from.values[id].type, from.values[id].name);
  }

  // The results of `from` for these arguments, with its equations added to `to`.
  std::vector<ValueId> body(Function& to, const Function& from,
                            const std::vector<ValueId>& arguments, LocationId around) {
    std::vector<ValueId> known(from.values.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) known[from.params[i]] = arguments[i];
    for (const Constant& constant : from.constants) {
      known[constant.value] = add_value(to, from, constant.value);
      to.constants.push_back({known[constant.value], constant.tensor, constant.path});
    }
    for (const Eqn& eqn : from.eqns) equation(to, from, eqn, known, around);
    return mapped(from.results, known);
  }

  void equation(Function& to, const Function& from, const Eqn& eqn, std::vector<ValueId>& known,
                LocationId around) {
    const LocationId here = eqn.location == kNoLocation ? around : eqn.location;
    std::vector<ValueId> in = mapped(eqn.in, known);
    const CallRow* call = find_call(eqn.primitive);
    if (call && !function_mark(eqn)) {
      const Function& callee = *get_region(eqn, call->region);
      const std::vector<ValueId> results = body(to, callee, in, here);
      for (std::size_t i = 0; i < eqn.out.size(); ++i) known[eqn.out[i]] = results.at(i);
      return;
    }
    Eqn copy{eqn.primitive, std::move(in), {}, eqn.attrs, fresh_location(here)};
    for (ValueId id : eqn.out) copy.out.push_back(known[id] = add_value(to, from, id));
    for (auto& [name, attr] : copy.attrs) regions(attr, here, call != nullptr);
    to.eqns.push_back(std::move(copy));
  }

  void regions(Attr& attr, LocationId around, bool is_shared) {
    if (auto* region = std::get_if<Region>(&attr.value)) {
      *region = is_shared ? shared(*region, around)
                          : std::make_shared<Function>(function(**region, around));
    }
    if (auto* list = std::get_if<List>(&attr.value)) {
      for (Attr& item : *list) regions(item, around, is_shared);
    }
  }

  Region shared(const Region& region, LocationId around) {
    if (const auto found = done_.find(region); found != done_.end()) return found->second;
    auto copy = std::make_shared<Function>(function(*region, around));
    return done_.emplace(region, std::move(copy)).first->second;
  }

  static std::vector<ValueId> mapped(const std::vector<ValueId>& ids,
                                     const std::vector<ValueId>& known) {
    std::vector<ValueId> result;
    for (ValueId id : ids) result.push_back(known[id]);
    return result;
  }

  LocationId fresh_location(LocationId like) {
    locations_.push_back(old_[like]);
    return static_cast<LocationId>(locations_.size() - 1);
  }

  const std::vector<Location>& old_;
  std::vector<Location> locations_{Location{}};
  std::map<Region, Region> done_;
};

}  // namespace

Module flattened(const Module& module) {
  Module result;
  result.dims = module.dims;
  Flattening flattening(module.locations);
  for (const Function& function : module.functions) {
    result.functions.push_back(flattening.function(function, kNoLocation));
  }
  result.locations = flattening.take_locations();
  return result;
}

}  // namespace jaxport::front
