// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "support/hash.h"

namespace jaxport {

// Finds what was added under a hash, oldest first, so that results do not depend on the standard
// library. What was added last can be dropped first, which is what leaving a scope needs. Open
// addressing: one allocation for many entries.
template <class T>
class HashIndex {
 public:
  std::size_t size() const { return entries_.size(); }

  // The oldest entry with this hash that `matches`; nullptr when there is none.
  template <class Matches>
  const T* find(std::uint64_t hash, const Matches& matches) const {
    if (slots_.empty()) return nullptr;
    for (std::size_t at = hash & mask(); slots_[at] != kFree; at = (at + 1) & mask()) {
      const Entry& entry = entries_[slots_[at]];
      if (entry.hash == hash && matches(entry.value)) return &entry.value;
    }
    return nullptr;
  }

  void add(std::uint64_t hash, T value) {
    entries_.push_back({hash, std::move(value)});
    // At most half full, so that a search ends soon.
    if (2 * entries_.size() > slots_.size()) return rebuild();
    place(entries_.size() - 1);
  }

  // Drops the newest entries until `size` are left. The newest one is never in the way of an older
  // one, so its slot is simply freed.
  void shrink(std::size_t size) {
    while (entries_.size() > size) {
      std::size_t at = entries_.back().hash & mask();
      while (slots_[at] != entries_.size() - 1) at = (at + 1) & mask();
      slots_[at] = kFree;
      entries_.pop_back();
    }
  }

 private:
  struct Entry {
    std::uint64_t hash;
    T value;
  };
  static constexpr std::size_t kFree = ~std::size_t{0};

  std::size_t mask() const { return slots_.size() - 1; }

  void place(std::size_t entry) {
    std::size_t at = entries_[entry].hash & mask();
    while (slots_[at] != kFree) at = (at + 1) & mask();
    slots_[at] = entry;
  }

  void rebuild() {
    slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), kFree);
    for (std::size_t entry = 0; entry < entries_.size(); ++entry) place(entry);
  }

  std::vector<Entry> entries_;      // in the order of add()
  std::vector<std::size_t> slots_;  // indices into entries_; the size is a power of two
};

// Texts that were seen. It keeps views: the texts must outlive it.
class TextSet {
 public:
  // False when the text is there already.
  bool insert(std::string_view text) {
    const std::uint64_t hash = hash_text(text);
    if (index_.find(hash, [&](std::string_view other) { return other == text; })) return false;
    index_.add(hash, text);
    return true;
  }
  std::size_t size() const { return index_.size(); }
  void shrink(std::size_t size) { index_.shrink(size); }  // forgets the newest

 private:
  HashIndex<std::string_view> index_;
};

}  // namespace jaxport
