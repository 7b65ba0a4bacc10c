// SPDX-License-Identifier: Apache-2.0
// Runs a model with ONNX Runtime's C API: no Python, no JAX.
//
//   run MODEL FILE...    one file of float32 numbers, as they lie in memory, for each input
//
// A size that the model leaves open is what the file of the input holds. Prints each output: its
// name, its shape and its numbers.
#include <onnxruntime_c_api.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const OrtApi& ort = *OrtGetApiBase()->GetApi(ORT_API_VERSION);

void check(OrtStatus* status) {
  if (status == nullptr) return;
  const std::string message = ort.GetErrorMessage(status);
  ort.ReleaseStatus(status);
  throw std::runtime_error(message);
}

// What the API hands out is given back by a function of its own for each type.
template <typename T>
using Owned = std::unique_ptr<T, void(ORT_API_CALL*)(T*)>;

template <typename T, typename Make>
Owned<T> owned(void(ORT_API_CALL* release)(T*), Make make) {
  T* made = nullptr;
  check(make(&made));
  return {made, release};
}

std::vector<float> floats_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<float> numbers(bytes.size() / sizeof(float));
  bytes.copy(reinterpret_cast<char*>(numbers.data()), numbers.size() * sizeof(float));
  return numbers;
}

std::vector<std::int64_t> shape_of(const OrtTensorTypeAndShapeInfo* info) {
  std::size_t rank = 0;
  check(ort.GetDimensionsCount(info, &rank));
  std::vector<std::int64_t> shape(rank);
  check(ort.GetDimensions(info, shape.data(), rank));
  return shape;
}

// Open sizes are -1 in the model; the first takes what the file has, the others are 1.
void close_shape(std::vector<std::int64_t>& shape, std::size_t count) {
  std::int64_t known = 1;
  for (std::int64_t size : shape) known *= size < 0 ? 1 : size;
  for (std::int64_t& size : shape) {
    if (size >= 0) continue;
    size = known == 0 ? 0 : static_cast<std::int64_t>(count) / known;
    known *= size;
  }
}

class Program {
 public:
  explicit Program(const char* path)
      : env_(owned<OrtEnv>(
            ort.ReleaseEnv,
            [](OrtEnv** e) { return ort.CreateEnv(ORT_LOGGING_LEVEL_ERROR, "run", e); })),
        session_(owned<OrtSession>(ort.ReleaseSession, [&](OrtSession** s) {
          const auto options =
              owned<OrtSessionOptions>(ort.ReleaseSessionOptions, ort.CreateSessionOptions);
          return ort.CreateSession(env_.get(), path, options.get(), s);
        })) {
    check(ort.GetAllocatorWithDefaultOptions(&allocator_));
    check(ort.SessionGetInputCount(session_.get(), &inputs_));
    check(ort.SessionGetOutputCount(session_.get(), &outputs_));
  }

  void run(std::vector<std::vector<float>> numbers) {
    if (numbers.size() != inputs_) {
      throw std::runtime_error("the model has " + std::to_string(inputs_) + " inputs");
    }
    std::vector<Owned<OrtValue>> tensors;
    for (std::size_t i = 0; i < inputs_; ++i) tensors.push_back(tensor(i, numbers[i]));
    const std::vector<std::string> in = names(inputs_, ort.SessionGetInputName);
    const std::vector<std::string> out = names(outputs_, ort.SessionGetOutputName);
    std::vector<const OrtValue*> values;
    for (const auto& value : tensors) values.push_back(value.get());
    std::vector<OrtValue*> results(outputs_, nullptr);
    check(ort.Run(session_.get(), nullptr, pointers(in).data(), values.data(), inputs_,
                  pointers(out).data(), outputs_, results.data()));
    for (std::size_t i = 0; i < outputs_; ++i) {
      print(out[i], Owned<OrtValue>(results[i], ort.ReleaseValue).get());
    }
  }

 private:
  // A view of the numbers, which the caller keeps.
  Owned<OrtValue> tensor(std::size_t index, std::vector<float>& numbers) {
    const auto type = owned<OrtTypeInfo>(ort.ReleaseTypeInfo, [&](OrtTypeInfo** t) {
      return ort.SessionGetInputTypeInfo(session_.get(), index, t);
    });
    const OrtTensorTypeAndShapeInfo* info = nullptr;
    check(ort.CastTypeInfoToTensorInfo(type.get(), &info));
    std::vector<std::int64_t> shape = shape_of(info);
    close_shape(shape, numbers.size());
    const auto memory = owned<OrtMemoryInfo>(ort.ReleaseMemoryInfo, [](OrtMemoryInfo** m) {
      return ort.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, m);
    });
    return owned<OrtValue>(ort.ReleaseValue, [&](OrtValue** v) {
      return ort.CreateTensorWithDataAsOrtValue(
          memory.get(), numbers.data(), numbers.size() * sizeof(float), shape.data(), shape.size(),
          ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, v);
    });
  }

  template <typename Name>
  std::vector<std::string> names(std::size_t count, Name name) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count; ++i) {
      char* text = nullptr;
      check(name(session_.get(), i, allocator_, &text));
      all.emplace_back(text);
      check(ort.AllocatorFree(allocator_, text));
    }
    return all;
  }

  static std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> all;
    for (const std::string& text : texts) all.push_back(text.c_str());
    return all;
  }

  static void print(const std::string& name, OrtValue* value) {
    const auto info = owned<OrtTensorTypeAndShapeInfo>(
        ort.ReleaseTensorTypeAndShapeInfo,
        [&](OrtTensorTypeAndShapeInfo** i) { return ort.GetTensorTypeAndShape(value, i); });
    std::size_t count = 0;
    check(ort.GetTensorShapeElementCount(info.get(), &count));
    float* numbers = nullptr;
    check(ort.GetTensorMutableData(value, reinterpret_cast<void**>(&numbers)));
    std::printf("%s [", name.c_str());
    const char* between = "";
    for (std::int64_t size : shape_of(info.get())) {
      std::printf("%s%lld", between, static_cast<long long>(size));
      between = ",";
    }
    std::printf("]\n");
    for (std::size_t i = 0; i < count; ++i) std::printf("%.9g\n", numbers[i]);
  }

  Owned<OrtEnv> env_;
  Owned<OrtSession> session_;
  OrtAllocator* allocator_ = nullptr;  // belongs to ONNX Runtime
  std::size_t inputs_ = 0;
  std::size_t outputs_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: run MODEL FILE...");
  std::vector<std::vector<float>> numbers;
  for (int i = 2; i < argc; ++i) numbers.push_back(floats_of(argv[i]));
  Program(argv[1]).run(std::move(numbers));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "run: %s\n", error.what());
  return 2;
}
