// SPDX-License-Identifier: Apache-2.0
#include "lower/layout/conversions.h"

#include "lower/emit/cheapest.h"
#include "support/hash.h"

namespace jaxport::lower {
namespace {

std::uint64_t hash_of(const Layout& layout, std::uint64_t seed) {
  for (const PhysicalDim& dim : layout) {
    seed = mix(seed, dim.size());
    for (const AxisPiece& piece : dim) {
      seed = mix(seed + static_cast<std::uint64_t>(piece.axis),
                 piece.stride.hash() + 3 * piece.size.hash());
    }
  }
  return seed;
}

}  // namespace

std::size_t Conversions::Hash::operator()(const Query& query) const {
  return hash_of(query.to, hash_of(query.from, 0));
}

const Conversions::Way& Conversions::find(const Layout& from, const Layout& to) {
  const auto known = unsorted_found_.find(Query{from, to});
  if (known != unsorted_found_.end()) return known->second;
  auto steps = conversion(from, to);
  Way way{kNever, {}};
  if (steps) way = {price_of(*steps), *std::move(steps)};
  return unsorted_found_.emplace(Key{from, to}, std::move(way)).first->second;
}

}  // namespace jaxport::lower
