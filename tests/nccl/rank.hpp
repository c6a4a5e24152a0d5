// A rank of a driver test: how it calls the plugin, how it talks to the other rank, and the steps that every
// scenario shares: connect, register, send, receive, wait.
//
// Anything unexpected throws std::runtime_error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/nccl/any_net.hpp"

namespace weir::nccl::testing_support {

// How a rank talks to the other one.
struct Lines {
  std::function<void(const std::string&)> say;
  std::function<std::string()> hear;  // empty: the other rank has ended
};

struct Rank {
  AnyNet& net;
  int number;  // 0 or 1
  Lines lines;
  std::uint64_t seed;
  std::string argument;
};

// Encodes a handle as a line.
std::string hex(std::span<const unsigned char> bytes);
std::array<unsigned char, handle_bytes> unhex(const std::string& text);
// Waits until both ranks have called it.
void meet(Rank& rank);

// The connections in both directions.
struct Pair {
  void* send = nullptr;
  void* receive = nullptr;
};

// Listens, exchanges handles, connects and accepts by turns, as NCCL's proxy thread does.
Pair connect_pair(Rank& rank, int device = 0);
void close_pair(Rank& rank, const Pair& pair);

// Memory registered with a connection.
class Buffer {
 public:
  Buffer(Rank& rank, void* comm, std::size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() { return bytes_.data(); }
  void* region() const { return region_; }
  std::span<std::byte> bytes() { return bytes_; }

 private:
  AnyNet& net_;
  void* comm_;
  std::vector<std::byte> bytes_;
  void* region_ = nullptr;
};

void fill(std::span<std::byte> bytes, std::uint64_t seed);
void expect_filled(std::span<const std::byte> bytes, std::uint64_t seed, const std::string& what);

void check(Status status, const std::string& what);
void expect(bool holds, const std::string& what);
// Calls test() until the request is done.
void wait(AnyNet& net, void* request, int* bytes = nullptr);
// Calls isend() until it returns a request.
void* send(AnyNet& net, void* comm, Buffer& buffer, std::size_t bytes, int tag);
void* receive(AnyNet& net, void* comm, Buffer& buffer, std::size_t bytes, int tag);

}  // namespace weir::nccl::testing_support
