// SPDX-License-Identifier: Apache-2.0
// Reductions whose operation is a region: reduce and reduce_window.
#include <algorithm>

#include "eval/eval.h"
#include "eval/view.h"
#include "eval/window.h"

namespace jaxport::eval {
namespace {

// Operands: as many arrays as results, then a start value for each. The region takes the values so
// far and the next elements, one of each array.
class RegionFold {
 public:
  RegionFold(const Call& c, const front::Function& combine) : c_(c), combine_(combine) {
    c_.require(!c_.out.empty() && c_.in.size() == 2 * c_.out.size(),
               "needs an array for each result");
    for (std::size_t i = 0; i < c_.out.size(); ++i) {
      c_.require(c_.in[i].shape == c_.shape(0), "operands of different shapes");
      c_.require(c_.in[count() + i].is_scalar(), "a start value is not a scalar");
      c_.require(c_.out_shape(i) == c_.out_shape(0), "results of different shapes");
      c_.require(c_.in[i].dtype == c_.out_dtype(i) && c_.in[count() + i].dtype == c_.out_dtype(i),
                 "operands of different dtypes");
      out_.push_back(allocate(c_.out_dtype(i), c_.out_shape(i)));
    }
  }

  std::size_t count() const { return c_.out.size(); }

  void start() {
    totals_.assign(c_.in.begin() + static_cast<std::ptrdiff_t>(count()), c_.in.end());
  }

  void take(std::int64_t offset) {
    Results operands = totals_;
    for (std::size_t i = 0; i < count(); ++i) operands.push_back(element(c_.in[i], offset));
    totals_ = run(combine_, operands, c_.bindings);
    c_.require(totals_.size() == count(), "the region has another number of results");
  }

  void finish(std::int64_t offset) {
    for (std::size_t i = 0; i < count(); ++i) {
      c_.require(totals_[i].is_scalar() && totals_[i].dtype == c_.out_dtype(i),
                 "the region gives another type than declared");
      write_window(totals_[i], out_[i], {.offset = offset, .strides = {}});
    }
  }

  Results results() {
    Results tensors;
    for (MutableTensor& tensor : out_) tensors.push_back(std::move(tensor.tensor));
    return tensors;
  }

 private:
  const Call& c_;
  const front::Function& combine_;
  Results totals_;
  std::vector<MutableTensor> out_;
};

Results reduce(const Call& c) {
  const auto params = front::ReduceParams::read(c.eqn);
  RegionFold fold(c, *params.combine);
  const Ints& axes = c.checked(params.axes, c.rank(0));
  const Ints strides = row_major_strides(c.shape(0));
  Shape kept, reduced;
  Ints kept_strides, reduced_strides;
  for (std::int64_t i = 0; i < c.rank(0); ++i) {
    const bool is_reduced = std::ranges::find(axes, i) != axes.end();
    (is_reduced ? reduced : kept).push_back(c.shape(0)[i]);
    (is_reduced ? reduced_strides : kept_strides).push_back(strides[i]);
  }
  c.require(kept == c.out_shape(), "the result has another shape");
  std::int64_t result = 0;
  for (Odometer o(kept); o.valid(); o.next(), ++result) {
    fold.start();
    const std::int64_t base = offset_of(o.index(), kept_strides);
    for (Odometer k(reduced); k.valid(); k.next()) {
      fold.take(base + offset_of(k.index(), reduced_strides));
    }
    fold.finish(result);
  }
  return fold.results();
}

// Elements in the padding take no part, as in XLA on CPU.
Results reduce_window(const Call& c) {
  RegionFold fold(c, *front::get_region(c.eqn, "jaxpr"));
  const SlidingWindow window = SlidingWindow::read(c);
  std::int64_t result = 0;
  for (Odometer o(c.out_shape()); o.valid(); o.next(), ++result) {
    fold.start();
    window.each(o.index(), [&](std::int64_t, std::int64_t at) { fold.take(at); });
    fold.finish(result);
  }
  return fold.results();
}

constexpr Row kFoldRows[] = {{"reduce", reduce}, {"reduce_window", reduce_window}};
static_assert(std::ranges::is_sorted(kFoldRows, {}, &Row::primitive));

}  // namespace
std::span<const Row> fold_rows() { return kFoldRows; }
}  // namespace jaxport::eval
