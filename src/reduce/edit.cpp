// SPDX-License-Identifier: Apache-2.0
#include "reduce/edit.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "eval/eval.h"
#include "jaxport/error.h"

namespace jaxport::reduce {

using front::Attr;
using front::Eqn;
using front::Function;
using front::ValueId;

front::Attr list(const Ints& values) {
  front::List items;
  for (std::int64_t value : values) items.push_back({value});
  return {std::move(items)};
}

front::Attr list(const Dims& dims) {
  front::List items;
  for (const Dim& dim : dims) {
    items.push_back(dim.is_static() ? Attr{dim.value()} : Attr{dim});
  }
  return {std::move(items)};
}

std::vector<std::size_t> definitions(const Function& function) {
  std::vector<std::size_t> at(function.values.size(), 0);
  for (std::size_t i = 0; i < function.eqns.size(); ++i) {
    for (ValueId id : function.eqns[i].out) at[id] = i + 1;
  }
  return at;
}

ValueId literal(Function& function, double value, DType dtype) {
  const ValueId id = function.add_value({dtype, {}});
  function.constants.push_back({id, scalar(dtype, value), ""});
  return id;
}

ValueId zeros_of(Function& function, const front::Type& type) {
  Shape shape;
  for (const Dim& dim : type.shape) {
    if (!dim.is_static()) throw Error("E030", "zeros of a symbolic size");
    shape.push_back(dim.value());
  }
  MutableTensor zeros = allocate(type.dtype, std::move(shape));
  std::memset(zeros.bytes, 0, zeros.tensor.nbytes());
  const ValueId id = function.add_value(type);
  function.constants.push_back({id, std::move(zeros.tensor), ""});
  return id;
}

front::Constant* constant_of(Function& function, ValueId id) {
  const auto found = std::ranges::find(function.constants, id, &front::Constant::value);
  return found == function.constants.end() ? nullptr : &*found;
}

ValueId Inserter::emit(std::string_view primitive, std::vector<ValueId> in, front::Type type,
                       front::Attrs attrs) {
  Eqn eqn;
  eqn.primitive = primitive;
  eqn.in = std::move(in);
  eqn.out = {function_.add_value(std::move(type))};
  eqn.attrs = std::move(attrs);
  const ValueId out = eqn.out[0];
  function_.eqns.insert(function_.eqns.begin() + static_cast<std::ptrdiff_t>(at_++),
                        std::move(eqn));
  return out;
}

ValueId Inserter::broadcast(ValueId id, const Dims& shape, const Ints& dims) {
  if (function_.type(id).shape == shape) return id;
  return emit("broadcast_in_dim", {id}, {function_.type(id).dtype, shape},
              {{"broadcast_dimensions", list(dims)}, {"shape", list(shape)}});
}

ValueId Inserter::convert(ValueId id, DType dtype) {
  return emit("convert_element_type", {id}, {dtype, function_.type(id).shape},
              {{"new_dtype", Attr{dtype}}, {"weak_type", Attr{false}}});
}

void replace_uses(Function& function, ValueId from, ValueId to, std::size_t begin,
                  bool in_results) {
  for (std::size_t i = begin; i < function.eqns.size(); ++i) {
    std::ranges::replace(function.eqns[i].in, from, to);
  }
  if (in_results) std::ranges::replace(function.results, from, to);
}

namespace {

std::vector<bool> needed_values(const Function& function) {
  std::vector<bool> needed(function.values.size(), false);
  for (ValueId id : function.results) needed[id] = true;
  for (std::size_t i = function.eqns.size(); i-- > 0;) {
    const Eqn& eqn = function.eqns[i];
    if (std::ranges::none_of(eqn.out, [&](ValueId id) { return needed[id]; })) continue;
    for (ValueId id : eqn.in) needed[id] = true;
    for (ValueId id : eqn.out) needed[id] = true;
  }
  return needed;
}

// Values get their ids anew, without those that nobody defines.
void renumber(Function& function) {
  std::vector<ValueId> ids(function.values.size(), 0);
  std::vector<front::Value> values;
  const auto define = [&](ValueId& id) {
    ids[id] = static_cast<ValueId>(values.size());
    values.push_back(std::move(function.values[id]));
    id = ids[id];
  };
  for (ValueId& id : function.params) define(id);
  for (front::Constant& constant : function.constants) define(constant.value);
  for (Eqn& eqn : function.eqns) {
    for (ValueId& id : eqn.in) id = ids[id];
    for (ValueId& id : eqn.out) define(id);
  }
  for (ValueId& id : function.results) id = ids[id];
  function.values = std::move(values);
  function.names = {};
}

}  // namespace

void clean(Function& function, bool unused_params) {
  const std::vector<bool> needed = needed_values(function);
  std::erase_if(function.eqns, [&](const Eqn& eqn) {
    return std::ranges::none_of(eqn.out, [&](ValueId id) { return needed[id]; });
  });
  std::erase_if(function.constants, [&](const front::Constant& c) { return !needed[c.value]; });
  if (unused_params) std::erase_if(function.params, [&](ValueId id) { return !needed[id]; });
  renumber(function);
}

namespace {

Function copy_of(const front::Region& region) { return *region; }

void for_each_dim(Attr& attr, const EachDim& visit) {
  if (auto* integer = std::get_if<std::int64_t>(&attr.value)) {
    Dim dim = *integer;
    visit(dim);
    attr.value = dim.is_static() ? decltype(attr.value)(dim.value()) : decltype(attr.value)(dim);
  } else if (auto* dim = std::get_if<Dim>(&attr.value)) {
    Dim copy = *dim;
    visit(copy);
    attr.value = copy.is_static() ? decltype(attr.value)(copy.value()) : decltype(attr.value)(copy);
  } else if (auto* items = std::get_if<front::List>(&attr.value)) {
    for (Attr& item : *items) for_each_dim(item, visit);
  } else if (auto* region = std::get_if<front::Region>(&attr.value)) {
    auto copy = std::make_shared<Function>(copy_of(*region));
    reduce::for_each_dim(*copy, visit);
    *region = std::move(copy);
  }
}

// Parameters that hold sizes; a 2 among axes is no size.
bool holds_sizes(std::string_view name) {
  static constexpr std::string_view kNames[] = {"branches", "call_jaxpr",    "jaxpr",
                                                "length",   "limit_indices", "new_sizes",
                                                "shape",    "sizes",         "slice_sizes"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// Cut, or repeated from the start.
Tensor resized(const Tensor& tensor, const Shape& shape) {
  if (tensor.size() == 0) return allocate(tensor.dtype, shape).tensor;
  MutableTensor out = allocate(tensor.dtype, shape);
  const auto width = static_cast<std::size_t>(byte_width(tensor.dtype));
  const std::int64_t total = out.tensor.size();
  for (std::int64_t i = 0; i < total; ++i) {
    std::memcpy(out.bytes + static_cast<std::size_t>(i) * width,
                tensor.data.get() + static_cast<std::size_t>(i % tensor.size()) * width, width);
  }
  return out.tensor;
}

}  // namespace

void for_each_dim(Function& function, const EachDim& visit) {
  for (front::Value& value : function.values) {
    for (Dim& dim : value.type.shape) visit(dim);
  }
  for (Eqn& eqn : function.eqns) {
    for (auto& [name, attr] : eqn.attrs) {
      if (holds_sizes(name)) for_each_dim(attr, visit);
    }
  }
  for (front::Constant& constant : function.constants) {
    Shape shape;
    for (const Dim& dim : function.type(constant.value).shape) {
      shape.push_back(dim.is_static() ? dim.value() : 3);
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      function.values[constant.value].type.shape[i] = shape[i];
    }
    if (shape != constant.tensor.shape) constant.tensor = resized(constant.tensor, shape);
  }
}

void replace_size(Function& function, Dim from, Dim to) {
  for_each_dim(function, [&](Dim& dim) {
    if (dim == from) dim = to;
  });
}

void replace_multiples(Function& function, std::int64_t from, std::int64_t to) {
  for_each_dim(function, [&](Dim& dim) {
    if (dim.is_static() && dim.value() > 0 && dim.value() % from == 0)
      dim = dim.value() / from * to;
  });
}

std::vector<Dim> sizes_of(const Function& function) {
  std::vector<Dim> sizes;
  const auto add = [&](ValueId id) {
    for (const Dim& dim : function.type(id).shape) {
      if (std::ranges::find(sizes, dim) == sizes.end()) sizes.push_back(dim);
    }
  };
  for (ValueId id : function.params) add(id);
  for (ValueId id = 0; id < function.values.size(); ++id) add(id);
  return sizes;
}

namespace {

void change_dtype(Attr& attr, DType from, DType to) {
  if (auto* dtype = std::get_if<DType>(&attr.value)) {
    if (*dtype == from) *dtype = to;
  } else if (auto* items = std::get_if<front::List>(&attr.value)) {
    for (Attr& item : *items) change_dtype(item, from, to);
  } else if (auto* record = std::get_if<front::Record>(&attr.value)) {
    for (auto& [name, field] : record->fields) change_dtype(field, from, to);
  } else if (auto* region = std::get_if<front::Region>(&attr.value)) {
    *region = std::make_shared<const Function>(with_dtype(**region, from, to));
  } else if (auto* tensor = std::get_if<Tensor>(&attr.value)) {
    if (tensor->dtype == from) *tensor = eval::cast(*tensor, to);
  }
}

}  // namespace

Function with_dtype(const Function& function, DType from, DType to) {
  Function copy = function;
  for (front::Value& value : copy.values) {
    if (value.type.dtype == from) value.type.dtype = to;
  }
  for (front::Constant& constant : copy.constants) {
    if (constant.tensor.dtype == from) constant.tensor = eval::cast(constant.tensor, to);
  }
  for (Eqn& eqn : copy.eqns) {
    for (auto& [name, attr] : eqn.attrs) change_dtype(attr, from, to);
  }
  return copy;
}

namespace {

// The regions of an equation, in order.
void for_each_region(Eqn& eqn, const std::function<void(front::Region&)>& visit) {
  for (auto& [name, attr] : eqn.attrs) {
    if (auto* region = std::get_if<front::Region>(&attr.value)) {
      visit(*region);
    } else if (auto* items = std::get_if<front::List>(&attr.value)) {
      for (Attr& item : *items) {
        if (auto* branch = std::get_if<front::Region>(&item.value)) visit(*branch);
      }
    }
  }
}

}  // namespace

std::size_t region_count(const Eqn& eqn) {
  std::size_t count = 0;
  Eqn copy = eqn;
  for_each_region(copy, [&](front::Region&) { ++count; });
  return count;
}

void edit_region(Eqn& eqn, std::size_t which, const std::function<void(Function&)>& edit) {
  for_each_region(eqn, [&](front::Region& region) {
    if (which-- != 0) return;
    auto copy = std::make_shared<Function>(*region);
    edit(*copy);
    region = std::move(copy);
  });
}

std::uint64_t shape_of_program(const Function& function) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](std::string_view text) {
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  for (const Eqn& eqn : function.eqns) {
    mix(eqn.primitive);
    mix(";");
  }
  return hash;
}

}  // namespace jaxport::reduce
