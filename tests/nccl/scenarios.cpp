#include "tests/nccl/scenarios.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>

namespace weir::nccl::testing_support {
namespace {

// --- scenarios

void transfer(Rank& rank) {
  const Pair pair = connect_pair(rank);
  for (std::size_t room = 512; room <= std::size_t{2} << 20; room *= 4)
    for (const std::size_t bytes : {room, room / 2, room - 1, std::size_t{0}}) {
      if (rank.number == 0) {
        Buffer buffer(rank, pair.send, room);
        fill(buffer.bytes().first(bytes), room + bytes);
        void* request = send(rank.net, pair.send, buffer, bytes, 7);
        int sent = -1;
        wait(rank.net, request, &sent);
        expect(sent == static_cast<int>(bytes), "the sender is told its size");
        meet(rank);
      } else {
        Buffer buffer(rank, pair.receive, room);
        std::memset(buffer.data(), 0xee, room);
        void* request = receive(rank.net, pair.receive, buffer, room, 7);
        std::array<int, 8> got{};
        wait(rank.net, request, got.data());
        expect(got[0] == static_cast<int>(bytes),
               "received " + std::to_string(got[0]) + " of " + std::to_string(bytes));
        expect_filled(buffer.bytes().first(bytes), room + bytes, "the message");
        for (const std::byte untouched : buffer.bytes().subspan(bytes))
          expect(untouched == std::byte{0xee}, "what lies behind the message is not touched");
        void* data = buffer.data();
        void* region = buffer.region();
        void* flush = &data;
        check(rank.net.iflush(pair.receive, 1, &data, got.data(), &region, &flush), "iflush");
        if (flush != nullptr) wait(rank.net, flush);
        meet(rank);
      }
    }
  close_pair(rank, pair);
}

// Each rank forwards what it received, as in NCCL's ring, with several messages in flight.
void ring(Rank& rank) {
  const Pair pair = connect_pair(rank);
  constexpr std::size_t bytes = 65536;
  constexpr int depth = 8, rounds = 200;
  std::vector<std::unique_ptr<Buffer>> in, out;
  for (int i = 0; i < depth; ++i) {
    in.push_back(std::make_unique<Buffer>(rank, pair.receive, bytes));
    out.push_back(std::make_unique<Buffer>(rank, pair.send, bytes));
  }
  std::array<void*, depth> receiving{}, sending{};
  int received = 0, posted = 0, sent = 0, finished = 0;
  while (received < rounds || finished < rounds) {
    if (posted < rounds && posted - received < depth) {
      auto& request = receiving[static_cast<std::size_t>(posted % depth)];
      request = nullptr;
      void* data = in[static_cast<std::size_t>(posted % depth)]->data();
      void* region = in[static_cast<std::size_t>(posted % depth)]->region();
      std::size_t room = bytes;
      int tag = 3;
      check(rank.net.irecv(pair.receive, 1, &data, &room, &tag, &region, &request), "irecv");
      if (request != nullptr) ++posted;
    }
    if (sent < rounds && sent - finished < depth) {
      Buffer& buffer = *out[static_cast<std::size_t>(sent % depth)];
      fill(buffer.bytes(), static_cast<std::uint64_t>(sent * 2 + rank.number));
      auto& request = sending[static_cast<std::size_t>(sent % depth)];
      check(rank.net.isend(pair.send, buffer.data(), bytes, 3, buffer.region(), &request), "isend");
      if (request != nullptr) ++sent;
    }
    int done = 0;
    std::array<int, 8> sizes{};
    if (received < posted) {
      check(rank.net.test(receiving[static_cast<std::size_t>(received % depth)], &done, sizes.data()),
            "test");
      if (done != 0) {
        expect_filled(in[static_cast<std::size_t>(received % depth)]->bytes(),
                      static_cast<std::uint64_t>(received * 2 + (1 - rank.number)), "the ring's message");
        ++received;
      }
    }
    if (finished < sent) {
      check(rank.net.test(sending[static_cast<std::size_t>(finished % depth)], &done, sizes.data()), "test");
      if (done != 0) ++finished;
    }
  }
  in.clear();
  out.clear();
  close_pair(rank, pair);
}

// Groups of 1 to 8 with their own sizes and tags; the sends are in another order.
void groups(Rank& rank) {
  const Pair pair = connect_pair(rank);
  std::mt19937_64 random(rank.seed);  // the same on both ranks
  for (int round = 0; round < 100; ++round) {
    const std::size_t count = 1 + random() % 8;
    std::vector<std::size_t> rooms(count), sizes(count), order(count);
    for (std::size_t i = 0; i < count; ++i) {
      rooms[i] = 1 + random() % 20000;
      sizes[i] = random() % (rooms[i] + 1);
    }
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    const int first_tag = static_cast<int>(random() % 1000);
    std::vector<std::unique_ptr<Buffer>> buffers;
    for (std::size_t i = 0; i < count; ++i)
      buffers.push_back(
          std::make_unique<Buffer>(rank, rank.number == 0 ? pair.send : pair.receive, rooms[i]));
    if (rank.number == 0) {
      std::vector<void*> requests;
      for (const std::size_t i : order) {
        fill(buffers[i]->bytes().first(sizes[i]), rank.seed + i);
        requests.push_back(send(rank.net, pair.send, *buffers[i], sizes[i], first_tag + static_cast<int>(i)));
      }
      for (void* request : requests) wait(rank.net, request);
    } else {
      std::vector<void*> data, regions;
      std::vector<int> tags;
      for (std::size_t i = 0; i < count; ++i) {
        data.push_back(buffers[i]->data());
        regions.push_back(buffers[i]->region());
        tags.push_back(first_tag + static_cast<int>(i));
      }
      void* request = nullptr;
      while (request == nullptr)
        check(rank.net.irecv(pair.receive, static_cast<int>(count), data.data(), rooms.data(), tags.data(),
                             regions.data(), &request),
              "irecv of a group");
      std::array<int, 8> got{};
      wait(rank.net, request, got.data());
      for (std::size_t i = 0; i < count; ++i) {
        expect(got[i] == static_cast<int>(sizes[i]), "each size of a group is told");
        expect_filled(buffers[i]->bytes().first(sizes[i]), rank.seed + i, "a group's message");
      }
    }
    meet(rank);  // the buffers may now go
  }
  close_pair(rank, pair);
}

// A send of a group completes even if the group's other sends were never made.
void lone_send(Rank& rank) {
  const Pair pair = connect_pair(rank);
  Buffer first(rank, rank.number == 0 ? pair.send : pair.receive, 10000);
  Buffer second(rank, rank.number == 0 ? pair.send : pair.receive, 10000);
  if (rank.number == 0) {
    fill(second.bytes(), 2);
    wait(rank.net, send(rank.net, pair.send, second, 10000, 2));
    meet(rank);
    meet(rank);  // the other rank has checked
    fill(first.bytes(), 1);
    wait(rank.net, send(rank.net, pair.send, first, 10000, 1));
    meet(rank);
  } else {
    std::array<void*, 2> data{first.data(), second.data()}, regions{first.region(), second.region()};
    std::array<std::size_t, 2> rooms{10000, 10000};
    std::array<int, 2> tags{1, 2};
    void* request = nullptr;
    check(rank.net.irecv(pair.receive, 2, data.data(), rooms.data(), tags.data(), regions.data(), &request),
          "irecv");
    meet(rank);
    int done = 1;
    check(rank.net.test(request, &done, nullptr), "test");
    expect(done == 0, "half a group is not done");
    meet(rank);
    wait(rank.net, request);
    expect_filled(first.bytes(), 1, "the first");
    expect_filled(second.bytes(), 2, "the second");
    meet(rank);
  }
  close_pair(rank, pair);
}

// Closes with receives posted and sends pending; then continues with a new pair.
void close_in_flight(Rank& rank) {
  for (int round = 0; round < 10; ++round) {
    const Pair pair = connect_pair(rank);
    {
      Buffer in(rank, pair.receive, 1 << 20), out(rank, pair.send, 1 << 20);
      for (int i = 0; i < 4; ++i) receive(rank.net, pair.receive, in, 1 << 20, 0);
      void* request = nullptr;
      for (int i = 0; i < round; ++i)
        if (rank.net.isend(pair.send, out.data(), 1 << 20, 0, out.region(), &request) != Status::success)
          break;
      check(rank.net.close_send(pair.send), "closeSend in flight");
      check(rank.net.close_receive(pair.receive), "closeRecv in flight");
    }
    meet(rank);
  }
}

// One listener, one handle, several connections: rank 1 listens.
void reused_listener(Rank& rank) {
  std::array<unsigned char, handle_bytes> handle{};
  void* listener = nullptr;
  if (rank.number == 1) {
    check(rank.net.listen(0, handle.data(), &listener), "listen");
    rank.lines.say(hex(handle));
  } else {
    handle = unhex(rank.lines.hear());
  }
  for (int round = 0; round < 5; ++round) {
    void* comm = nullptr;
    while (comm == nullptr) {
      if (rank.number == 0)
        check(rank.net.connect(0, handle.data(), &comm), "connect again");
      else
        check(rank.net.accept(listener, &comm), "accept again");
    }
    {
      Buffer buffer(rank, comm, 4000);
      if (rank.number == 0) {
        fill(buffer.bytes(), static_cast<std::uint64_t>(round));
        wait(rank.net, send(rank.net, comm, buffer, 4000, round));
      } else {
        wait(rank.net, receive(rank.net, comm, buffer, 4000, round));
        expect_filled(buffer.bytes(), static_cast<std::uint64_t>(round), "through a reused listener");
      }
      meet(rank);
    }
    check(rank.number == 0 ? rank.net.close_send(comm) : rank.net.close_receive(comm), "close");
  }
  if (listener != nullptr) check(rank.net.close_listen(listener), "closeListen");
}

// Four threads, each with its own connections, sharing the registrations.
void threads(Rank& rank) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 4; ++i) pairs.push_back(connect_pair(rank));
  std::vector<std::thread> workers;
  std::array<std::string, 4> failures;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    workers.emplace_back([&, i] {
      try {
        for (int round = 0; round < 100; ++round) {
          Buffer in(rank, pairs[i].receive, 5000), out(rank, pairs[i].send, 5000);
          const auto seed = static_cast<std::uint64_t>(round) * 4 + i;
          fill(out.bytes(), seed);
          void* receiving = receive(rank.net, pairs[i].receive, in, 5000, static_cast<int>(i));
          void* sending = send(rank.net, pairs[i].send, out, 5000, static_cast<int>(i));
          wait(rank.net, receiving);
          wait(rank.net, sending);
          expect_filled(in.bytes(), seed, "a thread's message");
        }
      } catch (const std::exception& failure) {
        failures[i] = failure.what();
      }
    });
  for (std::thread& worker : workers) worker.join();
  for (const std::string& failure : failures) expect(failure.empty(), failure);
  meet(rank);
  for (const Pair& pair : pairs) close_pair(rank, pair);
}

// NCCL detects LL data itself, so the plugin reports an optional completion as done at once, and still reuses
// the slots. NCCL then makes no further call and watches the buffer, so the message must arrive without one.
void optional_completion_scenario(Rank& rank) {
  const Pair pair = connect_pair(rank);
  constexpr int rounds = 200;
  Buffer buffer(rank, rank.number == 0 ? pair.send : pair.receive, 64);
  std::memset(buffer.data(), 0xff, 64);
  for (int round = 0; round < rounds; ++round) {
    if (rank.number == 0) {
      std::memset(buffer.data(), round, 64);
      wait(rank.net, send(rank.net, pair.send, buffer, 64, 0));
      continue;
    }
    void* request = nullptr;
    while (request == nullptr) {
      void* data = buffer.data();
      void* region = buffer.region();
      std::size_t room = 64;
      int tag = 0;
      request = reinterpret_cast<void*>(optional_completion);
      check(rank.net.irecv(pair.receive, 1, &data, &room, &tag, &region, &request), "irecv");
    }
    expect(request != reinterpret_cast<void*>(optional_completion), "a request of its own");
    if (rank.net.version() == 8) {
      wait(rank.net, request);
      continue;
    }
    wait(rank.net, request);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    const auto last = [&] {
      return std::atomic_ref(buffer.data()[63]).load(std::memory_order_acquire) ==
             static_cast<std::byte>(round);
    };
    while (!last() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    expect(last(), "the message of round " + std::to_string(round) + " came without a call");
  }
  meet(rank);
  close_pair(rank, pair);
}

void end_of_traffic(Rank& rank) {
  const Pair pair = connect_pair(rank);
  const Ending ending = traffic(rank, pair, [](std::uint64_t) {});
  expect(ending.of_send != Status::success && ending.of_receive != Status::success, "both end");
  check(rank.net.close_send(pair.send), "closeSend");
  check(rank.net.close_receive(pair.receive), "closeRecv");
}

// After its device has died, a rank can neither listen nor connect.
void dead_device(Rank& rank) {
  end_of_traffic(rank);
  std::array<unsigned char, handle_bytes> handle{};
  void* comm = nullptr;
  expect(rank.net.listen(0, handle.data(), &comm) == Status::system_error, "a dead device does not listen");
  expect(rank.net.connect(0, handle.data(), &comm) == Status::system_error, "a dead device does not connect");
}

const std::map<std::string, void (*)(Rank&)>& scenarios() {
  static const std::map<std::string, void (*)(Rank&)> all = {
      {"transfer", transfer},
      {"ring", ring},
      {"groups", groups},
      {"lone_send", lone_send},
      {"close_in_flight", close_in_flight},
      {"reused_listener", reused_listener},
      {"threads", threads},
      {"traffic", end_of_traffic},
      {"dead_device", dead_device},
      {"optional_completion", optional_completion_scenario},
  };
  return all;
}

}  // namespace

void run_scenario(const std::string& name, Rank& rank) {
  const auto found = scenarios().find(name);
  expect(found != scenarios().end(), "there is a scenario " + name);
  found->second(rank);
}

}  // namespace weir::nccl::testing_support
