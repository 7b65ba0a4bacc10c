// SPDX-License-Identifier: Apache-2.0
#include "wire/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "jaxport/error.h"
#include "support/watch.h"

namespace jaxport::wire {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBuffer = std::size_t{1} << 20;    // small pieces are collected up to here
constexpr std::size_t kDirect = std::size_t{256} << 10;  // larger pieces are written as they are

std::string text_of(int error) { return std::generic_category().message(error); }

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// A short name of its own: the target's name plus a suffix could exceed the system's limit.
fs::path temporary_name(const fs::path& target, int attempt) {
  return folder_of(target) / fmt::format(".jaxport-{}-{}.tmp", ::getpid(), attempt);
}

struct Descriptor {
  explicit Descriptor(int open_descriptor) : number(open_descriptor) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int number;
};

struct Advice {
  std::string reason, help;
};

Advice advice(const fs::path& target, int error) {
  const std::string folder = folder_of(target).string();
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return {fmt::format("'{}' is not an existing folder", folder),
              "create the folder first, or choose another output path"};
    case EISDIR:
      return {"it is a folder", "give the name of a file, such as 'model.onnx'"};
    case EACCES:
    case EPERM:
    case EROFS:
      return {fmt::format("no permission to write in '{}'", folder),
              "change the permissions of the folder, or choose another output path"};
    case ENOSPC:
    case EDQUOT:
      return {"the disk is full", "free some space, or choose another output path"};
    case EFBIG:
      return {"it exceeds the size limit for files",
              "raise the limit (ulimit -f), or choose another output path"};
    default:
      return {text_of(error), "choose another output path"};
  }
}

[[noreturn]] void fail_to_write(const fs::path& target, int error) {
  auto [reason, help] = advice(target, error);
  throw Error("E051", fmt::format("cannot write '{}': {}", target.string(), reason))
      .help(std::move(help));
}

}  // namespace

bool is_written_in_place(const fs::path& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

OutputFile::OutputFile(fs::path target) : target_(std::move(target)) {
  buffer_.reserve(kBuffer);
  if (is_written_in_place(target_)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(errno);
  } else {
    open_temporary();
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!owned_.empty()) ::unlink(owned_.c_str());
}

void OutputFile::open_temporary() {
  std::error_code ignored;
  if (fs::is_directory(target_, ignored) || !target_.has_filename()) fail(EISDIR);
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    const fs::path name = temporary_name(target_, attempt);
    descriptor_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) owned_ = name;
    if (descriptor_ < 0 && errno != EEXIST) fail(errno);
  }
}

void OutputFile::write(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (bytes.size() >= kDirect) {
    flush();
    write_through(bytes);
    return;
  }
  if (buffer_.size() + bytes.size() > kBuffer) flush();
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void OutputFile::pad_to(std::uint64_t position) {
  const std::string zeros(position - size_, '\0');
  write(std::as_bytes(std::span(zeros)));
}

void OutputFile::flush() {
  write_through(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

void OutputFile::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    watch().poll();
    watch().on_write(written_, expected_);
    const ::ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    written_ += static_cast<std::uint64_t>(written);
  }
}

void OutputFile::close() {
  flush();
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(errno);
}

void OutputFile::publish() {
  if (owned_.empty()) return;
  if (::rename(owned_.c_str(), target_.c_str()) != 0) fail(errno);
  owned_ = target_;
}

void OutputFile::fail(int error) const { fail_to_write(target_, error); }

MappedFile map_file(const fs::path& path, std::string_view what) {
  const auto require = [&](bool condition, const std::string& reason) {
    if (condition) return;
    throw Error("E052", fmt::format("cannot read {} '{}': {}", what, path.string(), reason))
        .help("check the path of the file");
  };
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  require(file.number >= 0, errno == ENOENT ? "there is no such file" : text_of(errno));
  struct stat status = {};
  require(::fstat(file.number, &status) == 0, text_of(errno));
  require(!S_ISDIR(status.st_mode), "it is a folder");
  require(S_ISREG(status.st_mode), "it is not a regular file");
  require(status.st_size > 0, "the file is empty");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  require(start != MAP_FAILED, text_of(errno));
  const auto unmap = [start, size](const std::byte*) { ::munmap(start, size); };
  return {{static_cast<const std::byte*>(start), unmap}, size};
}

}  // namespace jaxport::wire
