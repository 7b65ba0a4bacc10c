// SPDX-License-Identifier: Apache-2.0
#include "bind/arrays.h"

#include "bind/objects.h"

namespace jaxport::bind {
namespace {

// Lets go of a Python object from a thread that may not hold the interpreter's lock.
struct ReleaseObject {
  PyObject* object;
  void operator()(const std::byte*) const {
    if (Py_IsInitialized() == 0) return;  // the interpreter is gone, and its memory with it
    nb::gil_scoped_acquire lock;
    Py_DECREF(object);
  }
};

}  // namespace

Tensor view_of(const nb::object& array, DType dtype) {
  const nb::object interface = array.attr("__array_interface__");
  const auto address = nb::cast<std::uintptr_t>(interface["data"][0]);
  Tensor tensor;
  tensor.dtype = dtype;
  for_each_item(array.attr("shape"),
                [&](nb::handle size) { tensor.shape.push_back(int_of(size)); });
  PyObject* owner = nb::object(array).release().ptr();
  // The array interface gives the address as a number.
  const auto* bytes =
      reinterpret_cast<const std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
  tensor.data = std::shared_ptr<const std::byte>(bytes, ReleaseObject{owner});
  return tensor;
}

Tensor scalar_of(nb::handle number, DType dtype) {
  if (is_float(dtype)) {
    const double value = PyFloat_AsDouble(number.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return scalar(dtype, value);
  }
  return int_scalar(dtype, int_of(number));
}

}  // namespace jaxport::bind
