// SPDX-License-Identifier: Apache-2.0
// Equations that no stage can express: found all together, so that a user learns everything at
// once, or left out, so that the user can implement them in the runtime.
#pragma once

#include <unordered_set>
#include <vector>

#include "compile/report.h"
#include "front/ir.h"
#include "jaxport/error.h"
#include "lower/rows/user.h"

namespace jaxport::compile {

// The equations of a program that are left out. Only those that a result depends on count.
class LeftOut {
 public:
  LeftOut(const front::Module& module, int opset, const lower::UserLowerings& lowerings);

  bool empty() const { return equations_.empty(); }
  bool contains(const front::Eqn& eqn) const { return equations_.contains(&eqn); }

  // Throws the reason of the first equation with a problem that is not left out.
  void refuse_problems() const;
  // After an error of a stage: leaves out what the error is about, and everything else that is
  // known to be missing. False: nothing that was not left out before.
  bool add(const Error& error);
  // In the order of the program; equal ones of one line are one entry.
  std::vector<Unsupported> list() const;

 private:
  struct Place {
    const front::Function& function;
    const front::Eqn& eqn;
    const front::Location& location;  // of the call around it where the equation has none
    std::string reason = {}, help = {};
  };

  void collect(const front::Function& function, front::LocationId outer);
  void collect(const front::Attr& attr, front::LocationId outer);
  bool is_known(const front::Eqn& eqn) const;
  void leave_out(Place& place, std::string reason, std::string help);
  void add_missing();
  void add_named(const Error& error);

  const front::Module& module_;
  const int opset_;
  const lower::UserLowerings& lowerings_;
  std::vector<Place> places_;  // all equations, regions after the equation they belong to
  std::unordered_set<const front::Function*> seen_;
  std::unordered_set<const front::Eqn*> equations_;  // looked up, never walked
};

// The error with everything else that cannot be expressed, by lines of the user.
Error with_others(Error error, const std::vector<Unsupported>& all);

}  // namespace jaxport::compile
