// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace jaxport::wire {

// A file that appears under its own name only when it is complete. Every failure is Error E051, and
// the destructor removes what was written unless keep() was called.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path target);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void pad_to(std::uint64_t position);  // with zeros
  void close();
  void expect(std::uint64_t bytes) { expected_ = bytes; }  // how large it will be, for listeners
  void publish();                                          // gives the file its name
  void keep() { owned_.clear(); }                          // the file is the user's from now on
  std::uint64_t size() const { return size_; }

 private:
  void open_temporary();
  void flush();
  void write_through(std::span<const std::byte> bytes);
  [[noreturn]] void fail(int error) const;

  std::filesystem::path target_;
  std::filesystem::path owned_;  // what the destructor removes; empty: nothing
  int descriptor_ = -1;
  std::uint64_t size_ = 0, written_ = 0, expected_ = 0;
  std::string buffer_;
};

// True for what must not be replaced by a rename: a device, a pipe, a socket.
bool is_written_in_place(const std::filesystem::path& path);

struct MappedFile {
  std::shared_ptr<const std::byte> bytes;  // owns the mapping
  std::size_t size = 0;
};
// Maps a regular file that is not empty. Error E052: "cannot read <what> '<path>': …".
MappedFile map_file(const std::filesystem::path& path, std::string_view what);

}  // namespace jaxport::wire
