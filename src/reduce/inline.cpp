// SPDX-License-Identifier: Apache-2.0
#include "reduce/inline.h"

#include <utility>
#include <vector>

#include "jaxport/error.h"
#include "reduce/edit.h"

namespace jaxport::reduce {
namespace {

using front::Eqn;
using front::Function;
using front::ValueId;

void require_fit(bool fits) {
  if (!fits) throw Error("E030", "a body does not fit its equation");
}

// Copies a body into the function around it.
class Inlining {
 public:
  Inlining(Function& function, const Function& body)
      : function_(function), body_(body), ids_(body.values.size()) {}

  // The equations of the body; its parameters are the last operands.
  std::vector<Eqn> eqns(const std::vector<ValueId>& operands) {
    require_fit(operands.size() >= body_.params.size());
    const std::size_t first = operands.size() - body_.params.size();
    for (std::size_t i = 0; i < body_.params.size(); ++i) {
      require_fit(function_.type(operands[first + i]) == body_.type(body_.params[i]));
      ids_[body_.params[i]] = operands[first + i];
    }
    for (const front::Constant& constant : body_.constants) {
      function_.constants.push_back({defined(constant.value), constant.tensor, constant.path});
    }
    std::vector<Eqn> result = body_.eqns;
    for (Eqn& eqn : result) {
      for (ValueId& id : eqn.in) id = ids_[id];
      for (ValueId& id : eqn.out) id = defined(id);
    }
    return result;
  }

  ValueId result(std::size_t i) const { return ids_[body_.results[i]]; }

 private:
  ValueId defined(ValueId id) { return ids_[id] = function_.add_value(body_.type(id)); }

  Function& function_;
  const Function& body_;
  std::vector<ValueId> ids_;  // of the function, by those of the body
};

}  // namespace

void inline_body(Function& function, std::size_t i, std::size_t which) {
  Eqn eqn = function.eqns[i];
  Function body;
  edit_region(eqn, which, [&](const Function& found) { body = found; });
  require_fit(body.results.size() == eqn.out.size());
  Inlining inlining(function, body);
  std::vector<Eqn> eqns = inlining.eqns(eqn.in);
  for (std::size_t k = 0; k < eqn.out.size(); ++k) {
    require_fit(function.type(inlining.result(k)) == function.type(eqn.out[k]));
    replace_uses(function, eqn.out[k], inlining.result(k), i + 1);
  }
  const auto at = function.eqns.begin() + static_cast<std::ptrdiff_t>(i);
  function.eqns.insert(function.eqns.erase(at), std::make_move_iterator(eqns.begin()),
                       std::make_move_iterator(eqns.end()));
}

}  // namespace jaxport::reduce
