// NCCL's network plugin between two processes: bandwidth, ping-pong, and messages a second, through the table
// of functions that NCCL loads. bench/nccl.py compares it with perftest.
//
// The parent receives (and answers, in the ping-pong), and the child sends; each polls on its own core.
// Prints one number: MB/s, microseconds one way, or messages a second.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/pin.hpp"
#include "nccl/abi_types.hpp"

namespace weir::nccl::v12 {
#define WEIR_NCCL_VERSION 12
#include "nccl/abi.inc"
#undef WEIR_NCCL_VERSION
}  // namespace weir::nccl::v12

namespace {

using weir::nccl::Status;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string plugin, test = "bw";
  std::size_t bytes = 1 << 20;
  int outstanding = 8, group = 1, places = 1;
  std::uint64_t count = 2000;
  std::vector<int> cores{0, 1};
};

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "nccl_bench: {}\n", what);
  _exit(1);
}
void check(Status status, const char* what) {
  if (status != Status::success) give_up(fmt::format("{}: status {}", what, static_cast<int>(status)));
}

void log(weir::nccl::LogLevel level, unsigned long, const char*, int, const char*, ...) {
  if (level == weir::nccl::LogLevel::warn) fmt::print(stderr, "nccl_bench: the plugin warns\n");
}

class End {
 public:
  // `in` and `out` carry the handles.
  End(const Options& options, int in, int out) : options_(options) {
    void* library = dlopen(options.plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) give_up(dlerror());
    const auto* net = static_cast<const weir::nccl::v12::Net*>(dlsym(library, "ncclNetPlugin_v12"));
    if (net == nullptr) give_up("no ncclNetPlugin_v12");
    net_ = *net;
    check(net_.init(&context_, 1, nullptr, log, nullptr), "init");
    std::array<char, weir::nccl::handle_bytes> ours{}, theirs{};
    void* listener = nullptr;
    check(net_.listen(context_, 0, ours.data(), &listener), "listen");
    if (write(out, ours.data(), ours.size()) != static_cast<ssize_t>(ours.size()))
      give_up("the other end is gone");
    for (std::size_t got = 0; got < theirs.size();) {
      const ssize_t some = read(in, theirs.data() + got, theirs.size() - got);
      if (some <= 0) give_up("the other end is gone");
      got += static_cast<std::size_t>(some);
    }
    while (send_ == nullptr || receive_ == nullptr) {
      if (send_ == nullptr) check(net_.connect(context_, 0, theirs.data(), &send_, nullptr), "connect");
      if (receive_ == nullptr) check(net_.accept(listener, &receive_, nullptr), "accept");
    }
    check(net_.close_listen(listener), "closeListen");
    const std::size_t all = (options.bytes + 63) / 64 * 64 * static_cast<std::size_t>(options.places);
    buffer_bytes_ = (std::max<std::size_t>(all, 65536) + 4095) / 4096 * 4096;
    buffer_ = static_cast<char*>(std::aligned_alloc(4096, buffer_bytes_));
    std::memset(buffer_, 1, buffer_bytes_);
    check(net_.reg_mr(send_, buffer_, buffer_bytes_, weir::nccl::pointer_host, &region_), "regMr");
  }

  void finish() {
    check(net_.dereg_mr(send_, region_), "deregMr");
    check(net_.close_send(send_), "closeSend");
    check(net_.close_receive(receive_), "closeRecv");
    check(net_.finalize(context_), "finalize");
    std::free(buffer_);
  }

  char* place(std::uint64_t number) {
    const std::size_t each = (options_.bytes + 63) / 64 * 64;
    return buffer_ + number % static_cast<std::uint64_t>(options_.places) * each;
  }
  void* try_send(std::uint64_t number) {
    void* request = nullptr;
    check(net_.isend(send_, place(number), options_.bytes, static_cast<int>(number % 64), region_, nullptr,
                     &request),
          "isend");
    return request;
  }
  // Receives `group` messages, starting with number `number`.
  void* try_receive(std::uint64_t number, int group) {
    std::array<void*, 8> data{}, regions{}, profiles{};
    std::array<std::size_t, 8> sizes{};
    std::array<int, 8> tags{};
    for (int i = 0; i < group; ++i) {
      const auto at = static_cast<std::size_t>(i);
      data[at] = place(number + at);
      regions[at] = region_;
      sizes[at] = options_.bytes;
      tags[at] = static_cast<int>((number + at) % 64);
    }
    void* request = nullptr;
    check(net_.irecv(receive_, group, data.data(), sizes.data(), tags.data(), regions.data(), profiles.data(),
                     &request),
          "irecv");
    return request;
  }
  bool done(void* request) {
    int yes = 0;
    std::array<int, 8> sizes{};
    check(net_.test(request, &yes, sizes.data()), "test");
    return yes != 0;
  }

  // Sends `count` messages, with `outstanding` in flight.
  void send_all(std::uint64_t count) {
    std::vector<void*> requests(static_cast<std::size_t>(options_.outstanding));
    std::uint64_t sent = 0, finished = 0;
    while (finished < count) {
      while (sent < count && sent - finished < requests.size()) {
        void* request = try_send(sent);
        if (request == nullptr) break;
        requests[sent++ % requests.size()] = request;
      }
      while (finished < sent && done(requests[finished % requests.size()])) ++finished;
    }
  }
  void receive_all(std::uint64_t count) {
    const auto group = static_cast<std::uint64_t>(options_.group);
    std::vector<void*> requests(static_cast<std::size_t>(options_.outstanding) / group);
    std::uint64_t posted = 0, finished = 0;  // in groups
    const std::uint64_t groups = count / group;
    while (finished < groups) {
      while (posted < groups && posted - finished < requests.size()) {
        void* request = try_receive(posted * group, options_.group);
        if (request == nullptr) break;
        requests[posted++ % requests.size()] = request;
      }
      while (finished < posted && done(requests[finished % requests.size()])) ++finished;
    }
  }
  // A ping-pong; the next receive is posted ahead, as NCCL does.
  void exchange(std::uint64_t count, bool first) {
    std::array<void*, 2> receiving{};
    const auto post = [&](std::uint64_t i) {
      while (receiving[i % 2] == nullptr) receiving[i % 2] = try_receive(i, 1);
    };
    const auto take = [&](std::uint64_t i) {
      while (!done(receiving[i % 2])) {
      }
      receiving[i % 2] = nullptr;
      if (i + 2 < count) post(i + 2);
    };
    post(0);
    if (count > 1) post(1);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!first) take(i);
      void* sending = nullptr;
      while (sending == nullptr) sending = try_send(i);
      while (!done(sending)) {
      }
      if (first) take(i);
    }
  }

 private:
  const Options& options_;
  weir::nccl::v12::Net net_{};
  void* context_ = nullptr;
  void* send_ = nullptr;
  void* receive_ = nullptr;
  char* buffer_ = nullptr;
  std::size_t buffer_bytes_ = 0;
  void* region_ = nullptr;
};

void run(End& end, const Options& options, bool parent, std::uint64_t count) {
  if (options.test == "lat") return end.exchange(count, parent);
  if (parent) return end.receive_all(count);
  end.send_all(count);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("NCCL's network plugin between two processes");
  app.add_option("--plugin", options.plugin, "libnccl-net-weir.so")->required();
  app.add_option("--test", options.test, "bw, lat or rate")->check(CLI::IsMember({"bw", "lat", "rate"}));
  app.add_option("--bytes", options.bytes, "of a message");
  app.add_option("--outstanding", options.outstanding, "messages under way")->check(CLI::Range(1, 256));
  app.add_option("--places", options.places, "they go from and to in turn; perftest has one")
      ->check(CLI::Range(1, 256));
  app.add_option("--group", options.group, "receives in a group")->check(CLI::Range(1, 8));
  app.add_option("--count", options.count, "messages");
  app.add_option("--cores", options.cores, "of the receiver and the sender")->expected(2);
  CLI11_PARSE(app, argc, argv);
  options.count -= options.count % static_cast<std::uint64_t>(options.group);
  std::array<int, 2> to_child{}, to_parent{};
  if (pipe(to_child.data()) != 0 || pipe(to_parent.data()) != 0) give_up("no pipe");
  const pid_t child = fork();  // before the NIC has threads
  const bool parent = child != 0;
  weir::bench::pin(options.cores[parent ? 0 : 1]);
  End end(options, parent ? to_parent[0] : to_child[0], parent ? to_child[1] : to_parent[1]);
  run(end, options, parent, options.count / 10 / 8 * 8);
  const auto begun = Clock::now();
  run(end, options, parent, options.count);
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  if (!parent) {
    char word;  // closes after the other end: what it still tests is there
    if (read(to_child[0], &word, 1) < 0) give_up("the other end is gone");
    end.finish();
    return 0;
  }
  if (write(to_child[1], "", 1) != 1) give_up("the other end is gone");
  end.finish();
  int status = 0;
  waitpid(child, &status, 0);
  const auto count = static_cast<double>(options.count);
  if (options.test == "bw")
    fmt::print("{:.1f}\n", count * static_cast<double>(options.bytes) / seconds / 1e6);
  if (options.test == "rate") fmt::print("{:.0f}\n", count / seconds);
  if (options.test == "lat") fmt::print("{:.3f}\n", seconds / count / 2 * 1e6);
  return status == 0 ? 0 : 1;
}
