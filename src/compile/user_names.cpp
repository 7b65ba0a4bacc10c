// SPDX-License-Identifier: Apache-2.0
#include "compile/user_names.h"

#include <map>
#include <memory>
#include <string_view>

namespace jaxport::compile {
namespace {

// Their bodies only say which op it is: nothing is emitted for them.
bool takes_combiner(std::string_view primitive) {
  return primitive == "reduce" || primitive.starts_with("reduce_window") ||
         primitive.starts_with("scatter") || primitive.starts_with("select_and_");
}

class Renaming {
 public:
  explicit Renaming(const IsUsers& is_users) : is_users_(is_users) {}

  void function(front::Function& copy, const front::Function& original) {
    for (std::size_t i = 0; i < copy.eqns.size(); ++i) {
      front::Eqn& eqn = copy.eqns[i];
      const bool is_users = is_users_(original.eqns[i]);
      if (is_users) eqn.primitive = lower::user_name(eqn.primitive);
      if (is_users || takes_combiner(eqn.primitive)) continue;
      for (auto& [name, attr] : eqn.attrs) regions(attr);
    }
  }

 private:
  void regions(front::Attr& attr) {
    if (auto* region = std::get_if<front::Region>(&attr.value)) *region = renamed(*region);
    if (auto* list = std::get_if<front::List>(&attr.value)) {
      for (front::Attr& item : *list) regions(item);
    }
  }

  // Equations that share a region go on sharing it.
  front::Region renamed(const front::Region& region) {
    if (const auto found = done_.find(region); found != done_.end()) return found->second;
    auto copy = std::make_shared<front::Function>(*region);
    function(*copy, *region);
    return done_.emplace(region, std::move(copy)).first->second;
  }

  const IsUsers& is_users_;
  std::map<front::Region, front::Region> done_;
};

}  // namespace

front::Module with_user_names(const front::Module& module, const IsUsers& is_users) {
  front::Module result = module;
  Renaming renaming(is_users);
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    renaming.function(result.functions[i], module.functions[i]);
  }
  return result;
}

lower::UserLowerings by_user_name(const lower::UserLowerings& lowerings) {
  lower::UserLowerings result;
  for (const auto& [name, lowering] : lowerings) result.emplace(lower::user_name(name), lowering);
  return result;
}

}  // namespace jaxport::compile
