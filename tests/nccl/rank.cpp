#include "tests/nccl/rank.hpp"

#include <algorithm>
#include <stdexcept>

namespace weir::nccl::testing_support {

std::string hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::array<unsigned char, handle_bytes> unhex(const std::string& text) {
  expect(text.size() == 2 * handle_bytes, "the other rank ended, it said \"" + text + "\"");
  std::array<unsigned char, handle_bytes> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

void meet(Rank& rank) {
  rank.lines.say("here");
  const std::string heard = rank.lines.hear();
  expect(heard == "here", "the other rank says \"" + heard + "\" instead of being here");
}

void check(Status status, const std::string& what) {
  if (status != Status::success)
    throw std::runtime_error(what + ": status " + std::to_string(static_cast<int>(status)) + "; log:\n" +
                             kept_log());
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so: " + what);
}

Pair connect_pair(Rank& rank, int device) {
  std::array<unsigned char, handle_bytes> ours{};
  void* listener = nullptr;
  check(rank.net.listen(device, ours.data(), &listener), "listen");
  expect(listener != nullptr, "listen gives a listener at once");
  rank.lines.say(hex(ours));
  std::array<unsigned char, handle_bytes> theirs = unhex(rank.lines.hear());
  Pair pair;
  while (pair.send == nullptr || pair.receive == nullptr) {
    if (pair.send == nullptr) check(rank.net.connect(device, theirs.data(), &pair.send), "connect");
    if (pair.receive == nullptr) check(rank.net.accept(listener, &pair.receive), "accept");
  }
  check(rank.net.close_listen(listener), "closeListen");
  return pair;
}

void close_pair(Rank& rank, const Pair& pair) {
  meet(rank);
  check(rank.net.close_send(pair.send), "closeSend");
  check(rank.net.close_receive(pair.receive), "closeRecv");
}

Buffer::Buffer(Rank& rank, void* comm, std::size_t bytes) : net_(rank.net), comm_(comm), bytes_(bytes) {
  check(net_.reg_mr(comm, bytes_.data(), bytes, &region_), "regMr");
}

Buffer::~Buffer() { net_.dereg_mr(comm_, region_); }

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  std::uint64_t word = seed * 0x9e3779b97f4a7c15 + 1;
  for (std::byte& byte : bytes) {
    word = word * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(word >> 56);
  }
}

void expect_filled(std::span<const std::byte> bytes, std::uint64_t seed, const std::string& what) {
  std::vector<std::byte> wanted(bytes.size());
  fill(wanted, seed);
  expect(std::ranges::equal(bytes, wanted), what + " came as it was sent");
}

void wait(AnyNet& net, void* request, int* bytes) {
  for (int done = 0; done == 0;) check(net.test(request, &done, bytes), "test");
}

void* send(AnyNet& net, void* comm, Buffer& buffer, std::size_t bytes, int tag) {
  void* request = nullptr;
  while (request == nullptr)
    check(net.isend(comm, buffer.data(), bytes, tag, buffer.region(), &request), "isend");
  return request;
}

void* receive(AnyNet& net, void* comm, Buffer& buffer, std::size_t bytes, int tag) {
  void* request = nullptr;
  while (request == nullptr) {
    void* data = buffer.data();
    void* region = buffer.region();
    check(net.irecv(comm, 1, &data, &bytes, &tag, &region, &request), "irecv");
  }
  return request;
}

}  // namespace weir::nccl::testing_support
