// SPDX-License-Identifier: Apache-2.0
// The algebra of labels: substitution, and common factorisations of one dimension.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "axis/graph/graph.h"

namespace jaxport::axis {

// Replaces labels by products of labels; labels that it does not name stay as they are.
class Substitution {
 public:
  // Appends `to` to what `from` becomes.
  void append(Label from, Label to);
  void set(Label from, Labels to) { entries_.emplace_back(from, std::move(to)); }

  Labels operator()(const Labels& labels) const;
  Pattern operator()(const Pattern& pattern) const;
  Use operator()(const Use& use) const { return {use.node, (*this)(use.labels)}; }
  View operator()(const View& view) const { return {(*this)(view.use), (*this)(view.dims)}; }

 private:
  std::vector<std::pair<Label, Labels>> entries_;  // few: a rank or two
};

// Several factorisations of one dimension, cut until they agree.
struct Refined {
  Labels labels;                    // the common factorisation, in fresh labels
  std::vector<Substitution> terms;  // what the labels of each factorisation become
};
// nullopt when no common leading factor can be shown, such as for (2 3) and (3 2).
std::optional<Refined> refine(Graph& graph, std::span<const Labels> factorisations);

Labels within(const Labels& labels, const Labels& allowed);   // those in `allowed`, in order
Labels without(const Labels& labels, const Labels& removed);  // the others, in order
void add_new(Labels& labels, const Labels& more);             // appends those it lacks
Pattern axis_each(const Labels& labels);                      // one axis for each label
// The labels of each dim of a positional value with these axes: none for unit dims.
Pattern dims_of(const Pattern& axes, const Dims& shape);
bool intersects(const Labels& a, const Labels& b);
// True when the value of the view varies along its dim `dim`: some label there is not a broadcast.
bool varies(const View& view, std::size_t dim);

}  // namespace jaxport::axis
