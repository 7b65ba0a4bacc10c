// SPDX-License-Identifier: Apache-2.0
// Random choices that are the same on every machine for the same seed.
#pragma once

#include <cstdint>
#include <iterator>

namespace jaxport::fuzz {

// splitmix64
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t count) { return count == 0 ? 0 : next() % count; }
  bool coin() { return (next() & 1) != 0; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  // A sum of uniform numbers: mean 0, deviation 1, at most 3.5 in magnitude.
  double bell() {
    double sum = -2;
    for (int i = 0; i < 4; ++i) sum += uniform();
    return sum * 1.7320508075688772;
  }
  template <class Items>
  auto& of(Items& items) {
    return items[below(std::size(items))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace jaxport::fuzz
