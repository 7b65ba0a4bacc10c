// SPDX-License-Identifier: Apache-2.0
#include "axis/graph/number.h"

#include <algorithm>

namespace jaxport::axis {
namespace {

constexpr std::int32_t kNone = -1;  // no neighbour, or not always the same one
constexpr std::int32_t kUnseen = -2;

// What stands beside a label inside the axes it occurs in.
struct Neighbours {
  std::int32_t before = kUnseen, after = kUnseen;
  bool in_out = false;

  static void meet(std::int32_t& slot, std::int32_t neighbour) {
    slot = slot == kUnseen || slot == neighbour ? neighbour : kNone;
  }
};

class Numbering {
 public:
  Numbering(const NodeDraft& draft, LabelTable& table) : draft_(draft), table_(table) {}
  ~Numbering() {
    for (Label label : seen_) table_.scratch[label] = kNone;
  }
  Numbering(const Numbering&) = delete;
  Numbering& operator=(const Numbering&) = delete;

  Numbered run() {
    index_labels();
    group_labels();
    Numbered numbered;
    numbered.sizes = sizes();
    numbered.edges.reserve(draft_.operands.size());
    for (const Use& use : draft_.operands) numbered.edges.push_back({use.node, map(use.labels)});
    for (const auto& [name, labels] : draft_.roles) numbered.roles.emplace_back(name, map(labels));
    number_out(numbered);
    return numbered;
  }

 private:
  std::int32_t& index(Label label) { return table_.scratch[label]; }

  void meet(Label label) {
    if (index(label) != kNone) return;
    index(label) = static_cast<std::int32_t>(seen_.size());
    seen_.push_back(label);
  }

  void index_labels() {
    for (const Use& use : draft_.operands) {
      for (const Labels& axis : use.labels) {
        has_products_ = has_products_ || axis.size() > 1;
        for (Label label : axis) meet(label);
      }
    }
    for (const Labels& axis : draft_.out) {
      for (Label label : axis) meet(label);
    }
    for (const auto& [name, labels] : draft_.roles) {
      for (Label label : labels) meet(label);
    }
  }

  void observe(const Pattern& pattern) {
    for (const Labels& axis : pattern) {
      for (std::size_t i = 0; i < axis.size(); ++i) {
        Neighbours& here = neighbours_[index(axis[i])];
        Neighbours::meet(here.before, i == 0 ? kNone : index(axis[i - 1]));
        Neighbours::meet(here.after, i + 1 == axis.size() ? kNone : index(axis[i + 1]));
      }
    }
  }

  // Joins each label with the one that always follows it, unless a role names one of them or only
  // one of them is in the result.
  void group_labels() {
    group_.resize(seen_.size());
    if (!has_products_) {
      for (std::size_t i = 0; i < seen_.size(); ++i) open_group(i);
      return;
    }
    neighbours_.resize(seen_.size());
    for (const Use& use : draft_.operands) observe(use.labels);
    if (draft_.ordered) observe(draft_.out);
    for (const Labels& axis : draft_.out) {
      for (Label label : axis) neighbours_[index(label)].in_out = true;
    }
    for (const auto& [name, labels] : draft_.roles) {
      for (Label label : labels) {
        Neighbours& here = neighbours_[index(label)];
        here.before = here.after = kNone;
      }
    }
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (joins_previous(i)) {
        group_[i] = kNone;
        groups_.back().push_back(seen_[i]);
      } else {
        open_group(i);
      }
    }
  }

  void open_group(std::size_t i) {
    group_[i] = static_cast<std::int32_t>(groups_.size());
    groups_.push_back({seen_[i]});
  }

  // Labels that always stand side by side are met one after the other.
  bool joins_previous(std::size_t i) const {
    if (i == 0) return false;
    const Neighbours &previous = neighbours_[i - 1], &here = neighbours_[i];
    return previous.after == static_cast<std::int32_t>(i) &&
           here.before == static_cast<std::int32_t>(i - 1) && previous.in_out == here.in_out;
  }

  Labels map(const Labels& labels) {
    Labels mapped;
    mapped.reserve(labels.size());
    for (Label label : labels) {
      const std::int32_t group = group_[index(label)];
      if (group != kNone) mapped.push_back(group);
    }
    return mapped;
  }

  Pattern map(const Pattern& pattern) {
    Pattern mapped;
    mapped.reserve(pattern.size());
    for (const Labels& axis : pattern) mapped.push_back(map(axis));
    return mapped;
  }

  void number_out(Numbered& numbered) {
    if (draft_.ordered) {
      numbered.out = map(draft_.out);
      numbered.context = draft_.out;
      return;
    }
    Labels flat = map(flatten(draft_.out));
    std::ranges::sort(flat);
    for (Label label : flat) {
      numbered.out.push_back({label});
      numbered.context.push_back(groups_[label]);
    }
  }

  Dims sizes() const {
    Dims sizes;
    sizes.reserve(groups_.size());
    for (const Labels& group : groups_) {
      Dim size = table_.sizes[group[0]];
      for (std::size_t i = 1; i < group.size(); ++i) {
        size = size * table_.sizes[group[i]];
      }
      sizes.push_back(size);
    }
    return sizes;
  }

  const NodeDraft& draft_;
  LabelTable& table_;
  Labels seen_;  // by first appearance
  bool has_products_ = false;
  std::vector<Neighbours> neighbours_;  // by index in seen_
  std::vector<std::int32_t> group_;     // by index in seen_; kNone but for the first of a group
  Pattern groups_;                      // the context labels of each label of the node
};

}  // namespace

Label LabelTable::add(Dim size, bool is_invented) {
  sizes.push_back(size);
  invented.push_back(is_invented);
  scratch.push_back(kNone);
  return static_cast<Label>(sizes.size()) - 1;
}

Numbered number(const NodeDraft& draft, LabelTable& table) { return Numbering(draft, table).run(); }

}  // namespace jaxport::axis
