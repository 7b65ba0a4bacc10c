// SPDX-License-Identifier: Apache-2.0
#include "bind/arrays.h"

#include <complex>
#include <cstring>

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

template <class Part>
Tensor complex_scalar(DType dtype, double real, double imaginary) {
  MutableTensor out = allocate(dtype, {});
  const std::complex<Part> value(static_cast<Part>(real), static_cast<Part>(imaginary));
  std::memcpy(out.bytes, &value, sizeof value);
  return std::move(out.tensor);
}

}  // namespace

Tensor view_of(const nb::object& array, DType dtype) {
  const nb::object interface = array.attr("__array_interface__");
  const auto address = nb::cast<std::uintptr_t>(interface["data"][0]);
  Tensor tensor;
  tensor.dtype = dtype;
  for_each_item(array.attr("shape"),
                [&](nb::handle size) { tensor.shape.push_back(int_of(size)); });
  PyObject* owner = nb::object(array).release().ptr();
  tensor.data = std::shared_ptr<const std::byte>(reinterpret_cast<const std::byte*>(address),
                                                 ReleaseObject{owner});
  return tensor;
}

Tensor scalar_of(nb::handle number, DType dtype) {
  if (is_complex(dtype)) {
    const double real = PyComplex_RealAsDouble(number.ptr());
    const double imaginary = PyComplex_ImagAsDouble(number.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    return dtype == DType::kC64 ? complex_scalar<float>(dtype, real, imaginary)
                                : complex_scalar<double>(dtype, real, imaginary);
  }
  if (is_float(dtype)) {
    const double value = PyFloat_AsDouble(number.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return scalar(dtype, value);
  }
  return int_scalar(dtype, int_of(number));
}

}  // namespace jaxport::bind
