// SPDX-License-Identifier: Apache-2.0
// Changes to programs that reducing a case and mutating one share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "front/params.h"

namespace jaxport::reduce {

front::Attr list(const Ints& values);
front::Attr list(const Dims& dims);

// The equation behind which a value is known: 0 for parameters and constants, i + 1 for the results
// of equation i.
std::vector<std::size_t> definitions(const front::Function& function);

// Adds a scalar constant.
front::ValueId literal(front::Function& function, double value, DType dtype);
// Adds an array of zeros. Error E030 for a symbolic shape.
front::ValueId zeros_of(front::Function& function, const front::Type& type);
// The constant that a value is, or nullptr.
front::Constant* constant_of(front::Function& function, front::ValueId id);

// Inserts equations at a place and moves on.
class Inserter {
 public:
  Inserter(front::Function& function, std::size_t at) : function_(function), at_(at) {}
  front::ValueId emit(std::string_view primitive, std::vector<front::ValueId> in, front::Type type,
                      front::Attrs attrs = {});
  front::ValueId scalar(double value, DType dtype) { return literal(function_, value, dtype); }
  // `id` repeated to a shape; dims[i] is where its axis i goes.
  front::ValueId broadcast(front::ValueId id, const Dims& shape, const Ints& dims);
  front::ValueId convert(front::ValueId id, DType dtype);
  std::size_t at() const { return at_; }
  front::Function& function() { return function_; }

 private:
  front::Function& function_;
  std::size_t at_;
};

// Uses of `from` in equations at and behind `begin`, and among the results, become `to`.
void replace_uses(front::Function& function, front::ValueId from, front::ValueId to,
                  std::size_t begin, bool in_results = true);

// Removes equations and constants that no result needs, and values that nobody names. Parameters
// stay unless `unused_params`.
void clean(front::Function& function, bool unused_params);

// Calls visit for each size of the types, attributes and regions.
using EachDim = std::function<void(Dim&)>;
void for_each_dim(front::Function& function, const EachDim& visit);
// Every size `from` becomes `to`, constants are cut or repeated.
void replace_size(front::Function& function, Dim from, Dim to);
// Every static size that is a multiple of `from` becomes the same multiple of `to`.
void replace_multiples(front::Function& function, std::int64_t from, std::int64_t to);
// Those of the parameters, then those of the other values, each once.
std::vector<Dim> sizes_of(const front::Function& function);

// The same program with another dtype everywhere.
front::Function with_dtype(const front::Function& function, DType from, DType to);

// Calls edit with a copy of the region and puts the result in its place.
void edit_region(front::Eqn& eqn, std::size_t which,
                 const std::function<void(front::Function&)>& edit);
std::size_t region_count(const front::Eqn& eqn);

// A hash of the program up to names and literals: two finds of one shape are one find.
std::uint64_t shape_of_program(const front::Function& function);

}  // namespace jaxport::reduce
