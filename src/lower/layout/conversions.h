// SPDX-License-Identifier: Apache-2.0
// Conversions between layouts, each found once: blocks of a network repeat them, and every try of
// the search for layouts asks for them again.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lower/layout/layout.h"

namespace jaxport::lower {

class Conversions {
 public:
  struct Way {
    double price;             // kNever where there is none
    std::vector<Step> steps;  // of conversion()
  };
  // Valid as long as this.
  const Way& find(const Layout& from, const Layout& to);

 private:
  struct Query {
    const Layout &from, &to;
  };
  struct Key {
    Layout from, to;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Query& query) const;
    std::size_t operator()(const Key& key) const { return (*this)(Query{key.from, key.to}); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return a.from == b.from && a.to == b.to; }
  };
  std::unordered_map<Key, Way, Hash, Equal> unsorted_found_;
};

}  // namespace jaxport::lower
