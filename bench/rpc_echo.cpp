// Echo over rpc/, server and client each in a process on a core: calls per second and their latencies.
//
//   rpc_echo --address tcp://127.0.0.1:0 --bytes 128 --in-flight 1,4,16,64,256 [--connections one|each]
//   [--attachments [--given]] [--short-replies] [--client-network FILE]
//
// One connection carries all calls in flight, or each call has its own connection. With --attachments the
// bytes travel beside the arguments in both directions, with --given in buffers of the connection that are
// not written anew each time; without, they travel as a string. With --short-replies the requests carry the
// bytes and the replies give their number. Prints a row for each number in flight.
#include <fmt/core.h>

#include <asio/co_spawn.hpp>
#include <cstdio>
#include <functional>

#include "bench/echo_program.hpp"
#include "bench/echo_row.hpp"
#include "rdma/engine.hpp"
#include "rpc/client.hpp"
#include "rpc/server.hpp"

namespace {

namespace rpc = weir::rpc;
using Clock = std::chrono::steady_clock;

std::string_view echo(std::string_view text) { return text; }
void echo_attachment(rpc::Context& context) { context.reply_attachment = std::move(context.attachment); }
std::uint64_t length(std::string_view text) { return text.size(); }
std::uint64_t attachment_length(rpc::Context& context) { return context.attachment.size(); }

struct Options : weir::bench::EchoOptions {
  std::string address = "tcp://127.0.0.1:0";
  bool attachments = false;
  bool short_replies = false;
  bool given = false;
};

void serve(const Options& options, const std::function<void(const std::string&)>& tell) {
  asio::io_context io(1);
  rpc::ServerOptions with;
  with.limits.frame = rpc::FrameLimits();  // of the largest size that is measured, and more
  rpc::Server server(io, with);
  server.add<echo, echo_attachment, length, attachment_length>();
  const auto address = server.listen(options.address);
  tell(address ? *address : "! " + address.error().what);
  io.run();
}

struct Measured {
  std::vector<std::uint64_t> nanoseconds;
  std::uint64_t failed = 0;
};

// All calls send the same `text`; `back` belongs to this call.
asio::awaitable<void> call_again_and_again(rpc::Client& client, const Options& options,
                                           const std::string& text, std::vector<std::byte>& back,
                                           Clock::time_point until, Measured& into, int& running) {
  rpc::Buffer attachment;
  rpc::CallOptions with;
  rpc::Buffer given;
  if (options.attachments) {
    if (options.given)
      with.attachment_given = &given;
    else
      with.attachment = rpc::as_bytes(text);
    with.reply_into = back;  // over rdma:// none: what came stays where it came
    with.reply_attachment = &attachment;
  }
  for (auto before = Clock::now(); before < until;) {
    bool right = false;
    if (options.given) given = client.buffer(options.bytes);
    if (options.attachments && options.short_replies) {
      const auto answer = co_await client.call<attachment_length>(with);
      right = answer && *answer == options.bytes;
    } else if (options.short_replies) {
      const auto answer = co_await client.call<length>(text);
      right = answer && *answer == options.bytes;
    } else if (options.attachments) {
      const auto answer = co_await client.call<echo_attachment>(with);
      right = answer && attachment.size() == options.bytes;
    } else {
      const auto answer = co_await client.call<echo>(text);
      right = answer && answer->size() == options.bytes;
    }
    const auto now = Clock::now();
    into.failed += right ? 0 : 1;
    into.nanoseconds.push_back(static_cast<std::uint64_t>((now - before).count()));
    before = now;
  }
  --running;
}

asio::awaitable<void> measure(std::string address, const Options& options, int in_flight, pid_t server) {
  const auto executor = co_await asio::this_coro::executor;
  std::vector<rpc::Client> clients;
  rpc::ConnectOptions with;
  with.limits.request = rpc::FrameLimits();
  for (int i = 0; i < (options.each ? in_flight : 1); ++i) {
    auto client = co_await rpc::connect(address, with);
    if (!client) {
      fmt::print(stderr, "{}\n", client.error().what);
      std::exit(1);
    }
    clients.push_back(std::move(*client));
  }
  Measured warm, measured;
  measured.nanoseconds.reserve(20'000'000);
  const std::string text(options.bytes, 'x');
  const bool in_place = options.attachments && !options.address.starts_with("rdma://");
  std::vector<std::vector<std::byte>> places(static_cast<std::size_t>(in_flight));
  if (in_place)
    for (auto& each : places) each.resize(options.bytes);
  const auto phase = [&](double seconds, Measured& into) -> asio::awaitable<void> {
    const auto until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    int running = in_flight;
    for (int i = 0; i < in_flight; ++i)
      asio::co_spawn(executor,
                     call_again_and_again(clients[options.each ? static_cast<std::size_t>(i) : 0], options,
                                          text, places[static_cast<std::size_t>(i)], until, into, running),
                     [](const std::exception_ptr&) {});
    asio::steady_timer timer(executor);
    while (running > 0) {
      timer.expires_after(std::chrono::milliseconds(5));
      co_await timer.async_wait(asio::use_awaitable);
    }
  };
  co_await phase(options.seconds / 5, warm);
  const double used = weir::bench::processor_seconds(server);
  const auto begin = Clock::now();
  co_await phase(options.seconds, measured);
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  const auto shown = clients.front().stats();
  weir::bench::EchoRow row{.name = std::string_view(options.address).substr(0, options.address.find(':')),
                           .bytes = options.bytes,
                           .in_flight = in_flight,
                           .each = options.each,
                           .seconds = took,
                           .server_seconds = weir::bench::processor_seconds(server) - used,
                           .nanoseconds = measured.nanoseconds,
                           .failed = measured.failed};
  row.print();
  fmt::print("  {:>5.1f} calls a write\n", static_cast<double>(shown.frames_sent) /
                                               static_cast<double>(std::max<std::uint64_t>(shown.writes, 1)));
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** values) {
  Options options;
  CLI::App app("Echo over rpc/: calls per second and latencies");
  options.add_to(app);
  app.add_option("--address", options.address, "tcp://, unix://, rdma://; port 0: any");
  app.add_flag("--attachments", options.attachments);
  app.add_flag("--given", options.given, "attachments are buffers of the connection, as they are");
  app.add_flag("--short-replies", options.short_replies);
  CLI11_PARSE(app, count, values);
  return weir::bench::run_echo(
      options, [&](const auto& tell) { serve(options, tell); },
      [&](const std::string& address, int in_flight, pid_t server) {
        asio::io_context io(1);
        asio::co_spawn(io, measure(address, options, in_flight, server), [](const std::exception_ptr&) {});
        io.run();
      });
}
