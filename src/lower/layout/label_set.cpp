// SPDX-License-Identifier: Apache-2.0
#include "lower/layout/label_set.h"

#include <algorithm>

namespace jaxport::lower {

using axis::Label;
using axis::Labels;

bool LabelSet::has_all(const Labels& labels) const {
  return std::ranges::all_of(labels, [&](Label l) { return has(l); });
}
bool LabelSet::has_any(const Labels& labels) const {
  return std::ranges::any_of(labels, [&](Label l) { return has(l); });
}
Labels LabelSet::keep(const Labels& labels) const {
  Labels kept;
  std::ranges::copy_if(labels, std::back_inserter(kept), [&](Label l) { return has(l); });
  return kept;
}
Labels LabelSet::drop(const Labels& labels) const {
  Labels kept;
  std::ranges::copy_if(labels, std::back_inserter(kept), [&](Label l) { return !has(l); });
  return kept;
}

axis::Pattern restricted(const axis::Pattern& dims, const LabelSet& set) {
  axis::Pattern result;
  for (const axis::Labels& dim : dims) result.push_back(set.keep(dim));
  return result;
}

axis::Pattern dropped(const axis::Pattern& dims, const LabelSet& set) {
  axis::Pattern result;
  for (const axis::Labels& dim : dims) {
    if (axis::Labels rest = set.drop(dim); !rest.empty() || dim.empty())
      result.push_back(std::move(rest));
  }
  return result;
}

axis::Pattern split_by(const axis::Pattern& dims, const LabelSet& set) {
  axis::Pattern result;
  for (const Labels& dim : dims) {
    Labels* run = &result.emplace_back();
    for (Label label : dim) {
      if (!run->empty() && set.has(run->back()) != set.has(label)) run = &result.emplace_back();
      run->push_back(label);
    }
  }
  return result;
}

}  // namespace jaxport::lower
