// All-reduces with Gloo over its ibverbs transport, which has no other way to move bytes. Each process is one
// rank. The ranks find each other through files in a folder.
//
// The pairs are polled and not waited for: when Gloo 0.5 destroys a pair, its event thread
// may still be using it.
//
// usage: gloo_allreduce RANK RANKS FOLDER
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Numbers = std::vector<std::int64_t>;

// 0, 1, 2 ... times this rank's factor.
Numbers numbers_of(int rank, std::size_t count) {
  Numbers numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<std::int64_t>(i) * (rank + 1);
  }
  return numbers;
}

bool is_sum(const Numbers& numbers, int ranks) {
  const std::int64_t factor = std::int64_t{ranks} * (ranks + 1) / 2;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != static_cast<std::int64_t>(i) * factor) {
      return false;
    }
  }
  return true;
}

// Gloo's algorithms end with sends that they do not wait for, and its buffers may not be destroyed before
// those complete. Completions of a pair are in order: once a last message each way has completed, everything
// before it has.
void settle(const Context& context, int rank, int ranks) {
  const auto slot = static_cast<int>(context->nextSlot());
  for (int other = 0; other < ranks; ++other) {
    if (other == rank) {
      continue;
    }
    int sent = 1;
    int received = 0;
    const auto out = context->getPair(other)->createSendBuffer(slot, &sent, sizeof sent);
    const auto in = context->getPair(other)->createRecvBuffer(slot, &received, sizeof received);
    out->send();
    out->waitSend();
    in->waitRecv();
  }
}

// No rank sends before every rank polls, so that the event thread has nothing to do from the start.
void poll_from_now_on(const Context& context, gloo::rendezvous::FileStore& store, int rank, int ranks) {
  std::vector<std::string> everybody;
  for (int other = 0; other < ranks; ++other) {
    everybody.push_back("polls-" + std::to_string(other));
    if (other != rank) {
      context->getPair(other)->setSync(true, true);
    }
  }
  store.set(everybody[static_cast<std::size_t>(rank)], {1});
  store.wait(everybody);
}

template <typename Algorithm>
bool reduces(const Context& context, const char* name, int rank, int ranks) {
  for (const std::size_t count : {4UL, 1'000UL, 200'000UL}) {
    Numbers numbers = numbers_of(rank, count);
    const std::vector<std::int64_t*> inputs{numbers.data()};
    Algorithm algorithm(context, inputs, static_cast<int>(count));
    algorithm.run();
    settle(context, rank, ranks);
    if (!is_sum(numbers, ranks)) {
      std::printf("rank %d: WRONG: %s of %zu numbers\n", rank, name, count);
      return false;
    }
  }
  std::printf("rank %d: %s right\n", rank, name);
  return true;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: gloo_allreduce RANK RANKS FOLDER\n");
    return 2;
  }
  const int rank = std::atoi(words[1]);
  const int ranks = std::atoi(words[2]);
  const std::vector<std::string> names = gloo::transport::ibverbs::getDeviceNames();
  if (names.empty()) {
    std::fprintf(stderr, "no verbs device\n");
    return 1;
  }
  gloo::transport::ibverbs::attr where{.name = names.front(), .port = 1, .index = 0};
  auto device = gloo::transport::ibverbs::CreateDevice(where);
  std::printf("rank %d joins on %s\n", rank, device->str().c_str());
  std::fflush(stdout);
  gloo::rendezvous::FileStore store(words[3]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  poll_from_now_on(context, store, rank, ranks);
  const bool right =
      reduces<gloo::AllreduceRing<std::int64_t>>(context, "ring", rank, ranks) &&
      reduces<gloo::AllreduceHalvingDoubling<std::int64_t>>(context, "halving and doubling", rank, ranks);
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
