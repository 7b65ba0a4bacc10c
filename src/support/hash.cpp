// SPDX-License-Identifier: Apache-2.0
#include "support/hash.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace jaxport {
namespace {

std::uint64_t load(const unsigned char* at, std::size_t count) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, count);
  return word;
}

// Four independent lanes keep the multiplier busy: weights are hashed at memory speed.
std::uint64_t hash_blocks(const unsigned char*& at, std::size_t& size, std::uint64_t seed) {
  constexpr std::uint64_t kOdd = 0x9fb21c651e98df25ull;
  std::uint64_t lanes[4] = {mix(seed, 1), mix(seed, 2), mix(seed, 3), mix(seed, 4)};
  for (; size >= 32; at += 32, size -= 32) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      lanes[lane] = std::rotl((lanes[lane] ^ load(at + 8 * lane, 8)) * kOdd, 29);
    }
  }
  return mix(mix(lanes[0], lanes[1]), mix(lanes[2], lanes[3]));
}

}  // namespace

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t state = mix(seed, size);
  if (size >= 32) state = hash_blocks(at, size, state);
  for (; size >= 8; at += 8, size -= 8) state = mix(state, load(at, 8));
  return size == 0 ? state : mix(state, load(at, size));
}

}  // namespace jaxport
