// SPDX-License-Identifier: Apache-2.0
#include "axis/graph/pattern.h"

#include <algorithm>
#include <numeric>

namespace jaxport::axis {

Labels flatten(const Pattern& pattern) {
  Labels flat;
  for (const Labels& labels : pattern) flat.insert(flat.end(), labels.begin(), labels.end());
  return flat;
}

bool treats_labels_alike(Kind kind) {
  switch (kind) {
    case Kind::kPointwise:
    case Kind::kReduce:
    case Kind::kContract:
    case Kind::kPick:
    case Kind::kStack:
    case Kind::kSlice:
    case Kind::kConcat:
    case Kind::kRelayout:
      return true;
    default:
      return false;
  }
}

bool contains(const Labels& labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}

Labels within(const Labels& labels, const Labels& allowed) {
  Labels kept;
  std::ranges::copy_if(labels, std::back_inserter(kept),
                       [&](Label label) { return contains(allowed, label); });
  return kept;
}

Labels without(const Labels& labels, const Labels& removed) {
  Labels kept;
  std::ranges::copy_if(labels, std::back_inserter(kept),
                       [&](Label label) { return !contains(removed, label); });
  return kept;
}

void add_new(Labels& labels, const Labels& more) {
  for (Label label : more) {
    if (!contains(labels, label)) labels.push_back(label);
  }
}

Pattern axis_each(const Labels& labels) {
  Pattern pattern;
  pattern.reserve(labels.size());
  for (Label label : labels) pattern.push_back({label});
  return pattern;
}

Pattern dims_of(const Pattern& axes, const Dims& shape) {
  Pattern dims;
  std::size_t axis = 0;
  for (const Dim& size : shape) dims.push_back(size.is_one() ? Labels{} : axes[axis++]);
  return dims;
}

bool intersects(const Labels& a, const Labels& b) {
  return std::ranges::any_of(a, [&](Label label) { return contains(b, label); });
}

bool varies(const View& view, std::size_t dim) {
  return std::ranges::any_of(view.use.labels,
                             [&](const Labels& axis) { return intersects(axis, view.dims[dim]); });
}

Label resolve(Label label, const Binding& binding) {
  for (auto it = binding.find(label); it != binding.end(); it = binding.find(label)) {
    label = it->second;
  }
  return label;
}

void Substitution::append(Label from, Label to) {
  for (auto& [key, labels] : entries_) {
    if (key == from) return labels.push_back(to);
  }
  entries_.emplace_back(from, Labels{to});
}

Labels Substitution::operator()(const Labels& labels) const {
  Labels result;
  result.reserve(labels.size());
  for (Label label : labels) {
    auto entry = std::ranges::find(entries_, label, &std::pair<Label, Labels>::first);
    if (entry == entries_.end()) {
      result.push_back(label);
    } else {
      result.insert(result.end(), entry->second.begin(), entry->second.end());
    }
  }
  return result;
}

Pattern Substitution::operator()(const Pattern& pattern) const {
  Pattern result;
  result.reserve(pattern.size());
  for (const Labels& labels : pattern) result.push_back((*this)(labels));
  return result;
}

namespace {

// What is left of one factorisation: the labels from `next` on, the first of them only with its
// trailing factor `head`.
struct Rest {
  const Labels* labels;
  std::size_t next = 0;
  Dim head = 1;

  bool done() const { return next == labels->size(); }
  Label label() const { return (*labels)[next]; }
  void advance(const Graph& graph) {
    if (++next < labels->size()) head = graph.size(label());
  }
};

std::optional<std::int64_t> common_divisor(std::span<const Rest> rests) {
  std::int64_t divisor = 0;
  for (const Rest& rest : rests) {
    if (!rest.head.is_static()) return std::nullopt;
    divisor = std::gcd(divisor, rest.head.value());
  }
  return divisor > 1 ? std::optional(divisor) : std::nullopt;
}

// The leading factor that all can be cut at: equal heads, else one that divides all others, else
// the greatest common divisor of integers.
std::optional<Dim> leading_factor(std::span<const Rest> rests) {
  for (const Rest& candidate : rests) {
    auto divisible = [&](const Rest& rest) {
      return rest.head == candidate.head || exact_div(rest.head, candidate.head);
    };
    if (std::ranges::all_of(rests, divisible)) return candidate.head;
  }
  if (std::ranges::any_of(rests, [](const Rest& rest) { return rest.head == Dim(0); })) {
    return std::nullopt;
  }
  return common_divisor(rests);
}

}  // namespace

std::optional<Refined> refine(Graph& graph, std::span<const Labels> factorisations) {
  std::vector<Rest> rests;
  for (const Labels& labels : factorisations) {
    rests.push_back({&labels});
    if (!labels.empty()) rests.back().head = graph.size(labels[0]);
  }
  Refined refined{{}, std::vector<Substitution>(rests.size())};
  while (!std::ranges::all_of(rests, &Rest::done)) {
    if (std::ranges::any_of(rests, &Rest::done)) return std::nullopt;
    const auto factor = leading_factor(rests);
    if (!factor) return std::nullopt;
    const Label common = graph.label(*factor);
    refined.labels.push_back(common);
    for (std::size_t i = 0; i < rests.size(); ++i) {
      refined.terms[i].append(rests[i].label(), common);
      if (rests[i].head == *factor) {
        rests[i].advance(graph);
      } else {
        rests[i].head = *exact_div(rests[i].head, *factor);
      }
    }
  }
  return refined;
}

}  // namespace jaxport::axis
