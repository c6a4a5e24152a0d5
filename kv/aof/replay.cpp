#include "kv/aof/replay.hpp"

#include "kv/call/call.hpp"
#include "kv/clients/unconnected_client.hpp"
#include "kv/effects/effects.hpp"

namespace weir::kv::aof {

namespace {

acl::User user_who_may_do_everything() {
  acl::User user("log", {});
  for (const char* rule : {"on", "nopass", "~*", "&*", "+@all"}) user.apply(rule, {});
  return user;
}

}  // namespace

Replay::Replay(ServerParts& server, LogReader::Source source)
    : server_(server),
      steps_(std::move(source)),
      user_(user_who_may_do_everything()),
      client_(make_unconnected_client(server, server, "log")) {
  client_->user = &user_;
}

Replay::~Replay() = default;

Replay::Outcome Replay::run() {
  constexpr int requests_at_once = 1000;
  constexpr std::uint64_t bytes_at_once = 1 << 20;
  const std::uint64_t began = steps_.bytes_read();
  for (int i = 0; i < requests_at_once && steps_.bytes_read() - began < bytes_at_once; ++i) {
    switch (steps_.next()) {
      case LogSteps::Next::step:
        if (!steps_.each([this](Arguments words) { return run_request(words); })) return Outcome::failed;
        break;
      case LogSteps::Next::part:
        break;
      case LogSteps::Next::end:
        return Outcome::end;
      case LogSteps::Next::truncated:
        return Outcome::truncated;
      case LogSteps::Next::wrong:
        error_ = steps_.error();
        return Outcome::failed;
    }
    client_->reply.drop_lost();
  }
  return Outcome::more;
}

bool Replay::run_request(Arguments words) {
  const Command* command = logged_command(words);
  if (command == nullptr) {
    error_ = unknown_in_log(words) + " at byte " + std::to_string(steps_.whole_bytes()) + " of the file";
    return false;
  }
  ++requests_;
  // Skips the checks and statistics of clients' requests.
  const Call call{
      server_,        *client_, *command,      *server_.databases[static_cast<std::size_t>(client_->db)],
      client_->reply, words,    server_.now_ms};
  const Effects::Running running(server_.effects, client_->db, words);
  command->run(call);
  return true;
}

}  // namespace weir::kv::aof
