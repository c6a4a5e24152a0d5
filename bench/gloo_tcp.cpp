// Fetching with Gloo over TCP: rank 1 asks rank 0 for BYTES, COUNT times, and prints the median time in
// seconds. The ranks find each other through files in FOLDER.
//
// usage: gloo_tcp_bench RANK FOLDER BYTES COUNT
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

int main(int count, char** words) {
  if (count != 5) {
    std::fprintf(stderr, "usage: gloo_tcp_bench RANK FOLDER BYTES COUNT\n");
    return 2;
  }
  const int rank = std::atoi(words[1]);
  constexpr int warm_up = 2;
  const int rounds = std::atoi(words[4]) + warm_up;
  gloo::rendezvous::FileStore store(words[2]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
  auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  context->connectFullMesh(store, device);

  std::vector<char> bytes(std::stoull(words[3]), 1);
  char wish = 1;
  const auto data = context->createUnboundBuffer(bytes.data(), bytes.size());
  const auto asked = context->createUnboundBuffer(&wish, sizeof wish);
  std::vector<double> took;
  for (int round = 0; round < rounds; ++round) {
    const auto begun = std::chrono::steady_clock::now();
    if (rank == 0) {
      asked->recv(1, 0);
      asked->waitRecv();
      data->send(1, 1);
      data->waitSend();
    } else {
      data->recv(0, 1);
      asked->send(0, 0);
      asked->waitSend();
      data->waitRecv();
    }
    took.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  }
  if (rank == 0) return EXIT_SUCCESS;
  took.erase(took.begin(), took.begin() + warm_up);
  const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
  std::nth_element(took.begin(), middle, took.end());
  std::printf("%.9f\n", *middle);
}
