// SPDX-License-Identifier: Apache-2.0
#include "axis/translate/steps_at_once.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "axis/graph/pointwise.h"
#include "axis/graph/view.h"

namespace jaxport::axis {
namespace {

using front::Eqn;
using front::Function;
using front::ScanParams;
using front::ValueId;

// --- which equations know nothing of a label more

// Their translations look at the dims of their operands and keep all other labels. Positional
// primitives have no place for another axis.
constexpr std::string_view kAlongAnyLabel[] = {
    // sorted
    "broadcast_in_dim", "concatenate", "copy",       "dot_general", "expand_dims", "iota",
    "reduce_and",       "reduce_max",  "reduce_min", "reduce_or",   "reduce_prod", "reduce_sum",
    "reshape",          "slice",       "split",      "squeeze",     "stack",       "stop_gradient",
    "transpose"};
static_assert(std::ranges::is_sorted(kAlongAnyLabel));

bool works_along_label(const Function& function, const Eqn& eqn);

bool work_along_label(const Function& function) {
  return std::ranges::all_of(function.eqns,
                             [&](const Eqn& eqn) { return works_along_label(function, eqn); });
}

bool works_along_label(const Function& function, const Eqn& eqn) {
  const auto has_static_shape = [&](ValueId id) {
    return std::ranges::all_of(function.type(id).shape, &Dim::is_static);
  };
  if (front::has(eqn, front::kProblem) || !std::ranges::all_of(eqn.in, has_static_shape) ||
      !std::ranges::all_of(eqn.out, has_static_shape)) {
    return false;
  }
  if (const front::CallRow* call = front::find_call(eqn.primitive)) {
    return !front::function_mark(eqn) && work_along_label(*front::get_region(eqn, call->region));
  }
  if (eqn.primitive == "bitcast_convert_type") return false;
  return find_pointwise(eqn.primitive) != nullptr ||
         std::ranges::binary_search(kAlongAnyLabel, std::string_view(eqn.primitive));
}

// --- how large their values are

// A size that is not known counts as 1.
std::int64_t elements(const front::Type& type) {
  std::int64_t count = 1;
  for (const Dim& size : type.shape) count *= size.is_static() ? size.value() : 1;
  return count;
}

std::int64_t largest_value(const Function& function, const std::vector<Eqn>& eqns) {
  std::int64_t largest = 0;
  for (const Eqn& eqn : eqns) {
    for (ValueId id : eqn.out) largest = std::max(largest, elements(function.type(id)));
    if (const front::CallRow* call = front::find_call(eqn.primitive)) {
      const Function& body = *front::get_region(eqn, call->region);
      largest = std::max(largest, largest_value(body, body.eqns));
    }
  }
  return largest;
}

// Loops are also written to save memory. A value may be 4 MB of f32 for all steps, or four times
// what the scan reads and gives anyway.
bool is_small(const Translation& t, const ScanParams& scan, std::int64_t largest) {
  constexpr std::int64_t kAlwaysSmall = std::int64_t{1} << 20;
  if (scan.length.is_static() && largest <= kAlwaysSmall / scan.length.value()) return true;
  const Function& body = *scan.body;
  std::int64_t step = 0;
  for (std::size_t i = scan.first_x(); i < t.in.size(); ++i) {
    step += elements(body.type(body.params[i]));
  }
  for (std::size_t i = scan.carries; i < t.eqn.out.size(); ++i) {
    step += elements(body.type(body.results[i]));
  }
  return largest <= 4 * step;
}

// --- all steps

// The results of a function for all steps: arguments from `first` on have the steps as their first
// dim, and so have the results.
std::vector<View> at_once(Translation& t, const Function& function, std::vector<View> arguments,
                          std::size_t first, const Dim& length) {
  const std::span stepping = std::span(arguments).subspan(first);
  Labels step = align(t.graph, stepping, std::vector<std::size_t>(stepping.size(), 0));
  if (step.empty()) step = {t.graph.label(length)};
  for (View& view : stepping) view.dims.erase(view.dims.begin());
  std::vector<View> results = t.inliner.run(function, std::move(arguments));
  for (View& view : results) view.dims.insert(view.dims.begin(), step);
  return results;
}

// --- what the carry does not need

struct Parts {
  std::vector<Eqn> carry, others;
};

// The carry has all equations whose results it needs, and those that need a loop.
Parts parts_of(const Function& body, std::size_t carries) {
  std::vector<bool> is_needed(body.values.size(), false);
  for (std::size_t i = 0; i < carries; ++i) is_needed[body.results[i]] = true;
  Parts parts;
  for (std::size_t i = body.eqns.size(); i-- > 0;) {
    const Eqn& eqn = body.eqns[i];
    const bool stays = std::ranges::any_of(eqn.out, [&](ValueId id) { return is_needed[id]; }) ||
                       !works_along_label(body, eqn);
    if (stays) {
      for (ValueId id : eqn.in) is_needed[id] = true;
    }
    (stays ? parts.carry : parts.others).push_back(eqn);
  }
  std::ranges::reverse(parts.carry);
  std::ranges::reverse(parts.others);
  return parts;
}

// What the others and the results take from the part with the carry.
std::vector<ValueId> handed_over(const Function& body, const ScanParams& scan, const Parts& parts) {
  std::vector<bool> is_there(body.values.size(), true);
  for (std::size_t i = 0; i < scan.carries; ++i) is_there[body.params[scan.consts + i]] = false;
  for (const Eqn& eqn : parts.carry) {
    for (ValueId id : eqn.out) is_there[id] = false;
  }
  std::vector<ValueId> values;
  const auto take = [&](ValueId id) {
    if (!is_there[id]) values.push_back(id);
    is_there[id] = true;
  };
  for (const Eqn& eqn : parts.others) std::ranges::for_each(eqn.in, take);
  std::for_each(body.results.begin() + static_cast<std::ptrdiff_t>(scan.carries),
                body.results.end(), take);
  return values;
}

// A function that is the scan of the part with the carry, and collects the values handed over.
Function carry_alone(const Translation& t, const ScanParams& scan, const Parts& parts,
                     const std::vector<ValueId>& collected) {
  Function step = *scan.body;
  step.eqns = parts.carry;
  step.results.resize(scan.carries);
  step.results.insert(step.results.end(), collected.begin(), collected.end());
  Function function;
  Eqn eqn = t.eqn;
  eqn.in.clear();
  eqn.out.clear();
  for (std::size_t i = 0; i < t.in.size(); ++i) eqn.in.push_back(function.add_value(t.in_type(i)));
  for (std::size_t i = 0; i < step.results.size(); ++i) {
    front::Type type = step.type(step.results[i]);
    if (i >= scan.carries) type.shape.insert(type.shape.begin(), scan.length);
    eqn.out.push_back(function.add_value(std::move(type)));
  }
  function.params = eqn.in;
  function.results = eqn.out;
  front::set(eqn.attrs, "jaxpr", std::make_shared<const Function>(std::move(step)));
  function.eqns.push_back(std::move(eqn));
  return function;
}

// A function of one step that is the others: of the constants, the values scanned over and those
// handed over.
Function others_alone(const ScanParams& scan, const Parts& parts,
                      const std::vector<ValueId>& handed) {
  Function function = *scan.body;
  const auto carry = function.params.begin() + static_cast<std::ptrdiff_t>(scan.consts);
  function.params.erase(carry, carry + static_cast<std::ptrdiff_t>(scan.carries));
  function.params.insert(function.params.end(), handed.begin(), handed.end());
  function.eqns = parts.others;
  function.results.erase(function.results.begin(),
                         function.results.begin() + static_cast<std::ptrdiff_t>(scan.carries));
  return function;
}

}  // namespace

Views without_carry(Translation& t, const ScanParams& scan) {
  const Function& body = *scan.body;
  for (std::size_t i = 0; i < scan.carries; ++i) {
    if (body.results[i] != body.params[scan.consts + i]) return std::nullopt;
  }
  if (!work_along_label(body) || !is_small(t, scan, largest_value(body, body.eqns)))
    return std::nullopt;
  const std::vector<View> operands = t.in;
  std::vector<View> results = at_once(t, body, operands, scan.first_x(), scan.length);
  std::copy_n(operands.begin() + static_cast<std::ptrdiff_t>(scan.consts), scan.carries,
              results.begin());
  return results;
}

Views behind_carry(Translation& t, const ScanParams& scan) {
  const Function& body = *scan.body;
  const Parts parts = parts_of(body, scan.carries);
  if (parts.others.empty()) return std::nullopt;
  const std::vector<ValueId> handed = handed_over(body, scan, parts);
  // Each value that is collected costs about as much as a node of the body.
  if (handed.size() + scan.carries > t.eqn.out.size() + parts.others.size() - 1)
    return std::nullopt;
  if (!is_small(t, scan, largest_value(body, parts.others))) return std::nullopt;
  std::vector<View> results = t.inliner.run(carry_alone(t, scan, parts, handed), t.in);
  std::vector<View> arguments(t.in.begin(),
                              t.in.begin() + static_cast<std::ptrdiff_t>(scan.consts));
  arguments.insert(arguments.end(), t.in.begin() + static_cast<std::ptrdiff_t>(scan.first_x()),
                   t.in.end());
  const auto collected = results.begin() + static_cast<std::ptrdiff_t>(scan.carries);
  arguments.insert(arguments.end(), collected, results.end());
  results.erase(collected, results.end());
  std::vector<View> others =
      at_once(t, others_alone(scan, parts, handed), std::move(arguments), scan.consts, scan.length);
  std::ranges::move(others, std::back_inserter(results));
  return results;
}

}  // namespace jaxport::axis
