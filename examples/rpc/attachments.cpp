// Megabytes beside the arguments: sent from the caller's memory, received into the caller's memory, and on
// the server handed from request to reply without a copy. Usage: rpc_attachments [ADDRESS]
#include <asio/co_spawn.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "rpc/client.hpp"
#include "rpc/server.hpp"

namespace rpc = weir::rpc;

// The arguments say what the attachment is; the context has it.
std::uint64_t flip(std::string_view name, rpc::Context& context) {
  for (std::byte& b : context.attachment.span()) b = ~b;
  std::printf("server: %.*s, %zu bytes\n", static_cast<int>(name.size()), name.data(),
              context.attachment.size());
  context.reply_attachment = std::move(context.attachment);
  return context.reply_attachment.size();
}

asio::awaitable<void> talk(std::string address) {
  auto client = co_await rpc::connect(address);
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().what.c_str());
    co_return;
  }
  const std::vector<std::byte> sent(8 << 20, std::byte{0x0f});
  std::vector<std::byte> room(sent.size());
  rpc::Buffer back;
  rpc::CallOptions options;
  options.attachment = sent;
  options.reply_into = room;  // what fits comes here; `back` then is a view of it
  options.reply_attachment = &back;
  options.timeout = std::chrono::seconds(10);
  const auto bytes = co_await client->call<flip>(options, "picture");
  if (!bytes) std::printf("%s\n", bytes.error().what.c_str());
  if (bytes && back.data()[0] == std::byte{0xf0}) std::printf("client: %zu bytes came back\n", back.size());
}

int main(int argc, char** argv) {
  asio::io_context io(1);
  rpc::Server server(io);
  server.add<flip>();
  const auto address = server.listen(argc > 1 ? argv[1] : "tcp://127.0.0.1:0");
  if (!address) return std::fprintf(stderr, "%s\n", address.error().what.c_str()), 1;
  asio::co_spawn(io, talk(*address), [&](const std::exception_ptr&) { server.stop(); });
  io.run();
}
