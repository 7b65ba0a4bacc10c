// SPDX-License-Identifier: Apache-2.0
#include "reduce/reduce.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "jaxport/error.h"
#include "reduce/edit.h"
#include "reduce/inline.h"

namespace jaxport::reduce {
namespace {

using front::Eqn;
using front::Function;
using front::ValueId;

[[noreturn]] void nothing_changes() { throw Error("E030", "nothing changes"); }

class Reducer {
 public:
  Reducer(Function function, const Options& options)
      : function_(std::move(function)), options_(options) {}

  Function run() {
    try_change([](Function&) {});
    for (bool progress = true; progress && tries_ < options_.most_tries;) {
      progress = drop_results() | cut_chunks() | inline_bodies() | drop_equations() |
                 cut_equations() | drop_in_bodies() | constants_to_inputs() | smaller_sizes() |
                 simpler_literals();
    }
    return std::move(function_);
  }

 private:
  template <class Change>
  bool try_change(const Change& change) {
    if (tries_ >= options_.most_tries) return false;
    Function candidate = function_;
    try {
      change(candidate);
      clean(candidate, true);
    } catch (const Error&) {
      return false;
    }
    ++tries_;
    if (!options_.keeps(candidate)) return false;
    function_ = std::move(candidate);
    if (options_.on_progress) options_.on_progress(function_, tries_);
    return true;
  }

  bool drop_results() {
    bool progress = false;
    for (std::size_t size = function_.results.size() / 2; size > 0; size /= 2) {
      for (std::size_t i = 0; i + size <= function_.results.size();) {
        const bool done = function_.results.size() > size && try_change([&](Function& f) {
                            const auto first = f.results.begin() + static_cast<std::ptrdiff_t>(i);
                            f.results.erase(first, first + static_cast<std::ptrdiff_t>(size));
                            f.result_names.clear();
                          });
        progress |= done;
        if (!done) i += size;
      }
    }
    return progress;
  }

  // What many equations give, one after the other, are inputs instead.
  bool cut_chunks() {
    bool progress = false;
    for (std::size_t size = function_.eqns.size() / 2; size > 1; size /= 2) {
      for (std::size_t i = 0; i + size <= function_.eqns.size();) {
        const bool done = try_change([&](Function& f) { results_to_inputs(f, i, size); });
        progress |= done;
        if (!done) i += size;
      }
    }
    return progress;
  }

  static void results_to_inputs(Function& f, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      f.params.insert(f.params.end(), f.eqns[i].out.begin(), f.eqns[i].out.end());
    }
    const auto begin = f.eqns.begin() + static_cast<std::ptrdiff_t>(first);
    f.eqns.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  }

  // A body that is called, chosen or looped over takes the place of its equation, or of the whole
  // function.
  bool inline_bodies() {
    bool progress = false;
    for (std::size_t i = 0; i < function_.eqns.size(); ++i) {
      const std::size_t bodies = region_count(function_.eqns[i]);
      for (std::size_t body = 0; body < bodies; ++body) {
        if (try_change([&](Function& f) { replace_by_body(f, i, body); }) ||
            try_change([&](Function& f) { inline_body(f, i, body); })) {
          progress = true;
          break;
        }
      }
    }
    return progress;
  }

  static void replace_by_body(Function& f, std::size_t i, std::size_t which) {
    Eqn copy = f.eqns[i];
    edit_region(copy, which, [&](Function& body) {
      const std::string name = f.name;
      f = body;
      f.name = name;
    });
  }

  // A result is one of the operands instead.
  bool drop_equations() {
    bool progress = false;
    for (std::size_t i = function_.eqns.size(); i-- > 0;) {
      if (i >= function_.eqns.size()) continue;
      const Eqn eqn = function_.eqns[i];
      if (eqn.out.size() != 1) continue;
      for (ValueId in : eqn.in) {
        if (function_.type(in) != function_.type(eqn.out[0])) continue;
        const bool done = try_change([&](Function& f) { replace_uses(f, eqn.out[0], in, i + 1); });
        progress |= done;
        if (done) break;
      }
    }
    return progress;
  }

  // The results of one equation are inputs instead, or the function ends there.
  bool cut_equations() {
    bool progress = false;
    for (std::size_t i = 0; i < function_.eqns.size();) {
      const bool is_cut = try_change([&](Function& f) { results_to_inputs(f, i, 1); });
      if (!is_cut) {
        progress |= try_change([&](Function& f) {
          if (f.results == f.eqns[i].out) nothing_changes();
          f.results = f.eqns[i].out;
          f.result_names.clear();
        });
      }
      progress |= is_cut;
      if (!is_cut) ++i;
    }
    return progress;
  }

  // In a body a result is an operand instead, or zeros.
  bool drop_in_bodies() {
    bool progress = false;
    for (std::size_t i = 0; i < function_.eqns.size(); ++i) {
      const std::size_t bodies = region_count(function_.eqns[i]);
      for (std::size_t which = 0; which < bodies && i < function_.eqns.size(); ++which) {
        for (std::size_t k = body_size(i, which); k-- > 0;) {
          for (const bool zeros : {false, true}) {
            if (i >= function_.eqns.size() || k >= body_size(i, which)) break;
            const bool done = try_change([&](Function& f) {
              edit_region(f.eqns[i], which, [&](Function& body) {
                drop_in_body(body, k, zeros);
                clean(body, false);
              });
            });
            progress |= done;
            if (done) break;
          }
        }
      }
    }
    return progress;
  }

  std::size_t body_size(std::size_t i, std::size_t which) const {
    std::size_t size = 0;
    Eqn copy = function_.eqns[i];
    edit_region(copy, which, [&](const Function& body) { size = body.eqns.size(); });
    return size;
  }

  static void drop_in_body(Function& body, std::size_t k, bool zeros) {
    const Eqn eqn = body.eqns[k];
    for (ValueId out : eqn.out) {
      const auto same =
          std::ranges::find_if(eqn.in, [&](ValueId in) { return body.type(in) == body.type(out); });
      if (!zeros && same == eqn.in.end()) nothing_changes();
      replace_uses(body, out, zeros ? zeros_of(body, body.type(out)) : *same, k + 1);
    }
  }

  bool constants_to_inputs() {
    bool progress = false;
    for (std::size_t i = 0; i < function_.constants.size();) {
      const bool done = !function_.constants[i].tensor.is_scalar() && try_change([&](Function& f) {
        f.params.push_back(f.constants[i].value);
        f.constants.erase(f.constants.begin() + static_cast<std::ptrdiff_t>(i));
      });
      progress |= done;
      if (!done) ++i;
    }
    return progress;
  }

  // Each size alone, then together with its multiples, which may be products with it.
  bool smaller_sizes() {
    bool progress = false;
    for (const Dim& size : sizes_of(function_)) {
      for (std::int64_t smaller : {1, 2, 3}) {
        if (size.is_static() && size.value() <= smaller) break;
        if (try_change([&](Function& f) { replace_size(f, size, smaller); }) ||
            (size.is_static() &&
             try_change([&](Function& f) { replace_multiples(f, size.value(), smaller); }))) {
          progress = true;
          break;
        }
      }
    }
    return progress;
  }

  bool simpler_literals() {
    bool progress = false;
    for (std::size_t i = 0; i < function_.constants.size(); ++i) {
      const Tensor tensor = function_.constants[i].tensor;
      if (!tensor.is_scalar() || !is_float(tensor.dtype)) continue;
      for (double simple : {0.0, 1.0, -1.0, 0.5, 2.0}) {
        if (i >= function_.constants.size() || tensor.at(0) == simple) break;
        if (try_change(
                [&](Function& f) { f.constants[i].tensor = scalar(tensor.dtype, simple); })) {
          progress = tensor.at(0) != 0 && tensor.at(0) != 1;
          break;
        }
      }
    }
    return progress;
  }

  Function function_;
  const Options& options_;
  int tries_ = 0;
};

}  // namespace

Function reduced(Function function, const Options& options) {
  return Reducer(std::move(function), options).run();
}

}  // namespace jaxport::reduce
