// SPDX-License-Identifier: Apache-2.0
// Primitives with regions: calls, cond, while, scan.
#include <algorithm>
#include <cstring>

#include "eval/eval.h"
#include "eval/view.h"

namespace jaxport::eval {
namespace {

Results run_region(const Call& c, const front::Function& region, std::span<const Tensor> operands) {
  if (c.run_region) return c.run_region(region, operands, c.bindings);
  return run(region, operands, c.bindings);
}

// A call means its region; what it says about compilation or derivatives does not change values.
Results call(const Call& c) {
  const std::string_view region = front::find_call(c.eqn.primitive)->region;
  return run_region(c, *front::get_region(c.eqn, region), c.in);
}

// An index out of range picks the nearest branch.
Results cond(const Call& c) {
  c.require(!c.in.empty() && c.in[0].is_scalar(), "needs a scalar index");
  const DType index_dtype = c.in[0].dtype;
  c.require(index_dtype == DType::kBool || is_integer(index_dtype), "the index is not an integer");
  const auto branches = front::CondParams::read(c.eqn).branches;
  const std::int64_t last = std::ssize(branches) - 1;
  const std::int64_t index = std::clamp<std::int64_t>(c.in[0].int_at(0), 0, last);
  return run_region(c, *branches[index], c.in.subspan(1));
}

Results joined(std::span<const Tensor> first, std::span<const Tensor> second) {
  Results all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

// A vmapped condition is one bool for each batch element, and the carry has the batch dims first.
// Elements that are done keep their old value.
Tensor where_active(const Call& c, const Tensor& active, const Tensor& old_value,
                    const Tensor& new_value) {
  const bool is_prefix =
      active.shape.size() <= old_value.shape.size() &&
      std::ranges::equal(active.shape, std::span(old_value.shape).first(active.shape.size()));
  c.require(is_prefix && new_value.shape == old_value.shape && new_value.dtype == old_value.dtype,
            "the condition does not fit the carry");
  MutableTensor out = copy_of(new_value);
  const std::int64_t count = active.size();
  const std::size_t bytes = count == 0 ? 0 : new_value.nbytes() / static_cast<std::size_t>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * bytes;
    if (active.int_at(i) == 0) std::memcpy(out.bytes + at, old_value.data.get() + at, bytes);
  }
  return std::move(out.tensor);
}

bool any(const Tensor& bools) {
  for (std::int64_t i = 0; i < bools.size(); ++i) {
    if (bools.int_at(i) != 0) return true;
  }
  return false;
}

// Operands: constants of the condition, constants of the body, the carry.
Results while_loop(const Call& c) {
  const auto loop = front::WhileParams::read(c.eqn);
  c.require(loop.consts() <= c.in.size(), "a count of operands is out of range");
  const auto cond_consts = c.in.first(loop.cond_consts);
  const auto body_consts = c.in.subspan(loop.cond_consts, loop.body_consts);
  const auto start = c.in.subspan(loop.consts());
  Results carry(start.begin(), start.end());
  for (;;) {
    const Results active = run_region(c, *loop.cond, joined(cond_consts, carry));
    c.require(active.size() == 1 && active[0].dtype == DType::kBool, "the condition is not a bool");
    if (!any(active[0])) return carry;
    Results next = run_region(c, *loop.body, joined(body_consts, carry));
    c.require(next.size() == carry.size(), "the body has another number of results");
    for (std::size_t i = 0; i < next.size() && !active[0].is_scalar(); ++i) {
      next[i] = where_active(c, active[0], carry[i], next[i]);
    }
    carry = std::move(next);
  }
}

// Element `index` along the first dim.
Tensor step_of(const Tensor& stacked, std::int64_t index) {
  StridedView view = whole(stacked);
  view.offset = index * view.strides[0];
  view.sizes.erase(view.sizes.begin());
  view.strides.erase(view.strides.begin());
  return materialise(view);
}

void set_step(const Call& c, MutableTensor& stacked, std::int64_t index, const Tensor& value) {
  Ints strides = row_major_strides(stacked.tensor.shape);
  const Shape expected(stacked.tensor.shape.begin() + 1, stacked.tensor.shape.end());
  c.require(value.shape == expected && value.dtype == stacked.tensor.dtype,
            "a step gives another type than declared");
  const std::int64_t offset = index * strides[0];
  strides.erase(strides.begin());
  write_window(value, stacked, {.offset = offset, .strides = std::move(strides)});
}

// Operands: constants, carry, xs (one step along their first dim). Results: carry, ys.
struct Scan : front::ScanParams {
  explicit Scan(const Call& call) : ScanParams(read(call.eqn)), c(call), steps(c.bound(length)) {
    c.require(first_x() <= c.in.size() && carries <= c.out.size() && steps >= 0,
              "a count of operands is out of range");
    for (const Tensor& x : xs()) {
      c.require(!x.shape.empty() && x.shape[0] == steps, "an operand has another length");
    }
    for (std::size_t i = carries; i < c.out.size(); ++i) {
      ys.push_back(allocate(c.out_dtype(i), c.out_shape(i)));
      const Shape& shape = ys.back().tensor.shape;
      c.require(!shape.empty() && shape[0] == steps, "a result has another length");
    }
  }

  std::span<const Tensor> xs() const { return c.in.subspan(first_x()); }

  Results step(std::span<const Tensor> carry, std::int64_t index) {
    Results operands = joined(c.in.first(consts), carry);
    for (const Tensor& x : xs()) operands.push_back(step_of(x, index));
    Results results = run_region(c, *body, operands);
    c.require(results.size() == carries + ys.size(), "the body has another number of results");
    for (std::size_t i = 0; i < ys.size(); ++i) set_step(c, ys[i], index, results[carries + i]);
    results.resize(carries);
    return results;
  }

  const Call& c;
  std::int64_t steps;
  std::vector<MutableTensor> ys;
};

Results scan(const Call& c) {
  Scan scan(c);
  const auto start = c.in.subspan(scan.consts, scan.carries);
  Results results(start.begin(), start.end());
  for (std::int64_t i = 0; i < scan.steps; ++i) {
    results = scan.step(results, scan.reverse ? scan.steps - 1 - i : i);
  }
  for (MutableTensor& y : scan.ys) results.push_back(std::move(y.tensor));
  return results;
}

// The solution is what the user's solver gives. Operands: constants of each function, then the
// right-hand sides.
Results custom_linear_solve(const Call& c) {
  const auto params = front::LinearSolveParams::read(c.eqn);
  c.require(params.consts <= c.in.size(), "a count of operands is out of range");
  const auto consts = c.in.subspan(params.first_const, params.solve_consts);
  return run_region(c, *params.solve, joined(consts, c.in.subspan(params.consts)));
}

constexpr Row kControlRows[] = {
    {"cond", cond},
    {"custom_linear_solve", custom_linear_solve},
    {"scan", scan},
    {"while", while_loop},
};
static_assert(std::ranges::is_sorted(kControlRows, {}, &Row::primitive));

}  // namespace

std::span<const Row> control_rows() { return kControlRows; }

const Row* call_row() {
  static constexpr Row kCall{"call", call};
  return &kCall;
}

}  // namespace jaxport::eval
