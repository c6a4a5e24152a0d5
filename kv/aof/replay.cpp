#include "kv/aof/replay.hpp"

#include "kv/server/server.hpp"

namespace weir::kv::aof {

namespace {

// What the client that replays is connected to: nobody.
class NoConnection final : public Connection {
 public:
  void start(Session&) override {}
  void flush() override {}
  void close() override {}
  bool finished() const override { return true; }
  std::string_view kind() const override { return "log"; }
  std::string peer_address() const override { return "log"; }
  std::string local_address() const override { return "log"; }
  bool local() const override { return true; }
};

const Command* command_of(Arguments words) {
  const Command* command = find_command(words[0].text);
  if (command == nullptr || command->subcommands.empty() || words.size() < 2) return command;
  return find_subcommand(*command, words[1].text);
}

// PFCOUNT writes down what it counted.
bool belongs_in_a_log(const Command& command) {
  if (command.run == nullptr) return false;
  return command.has(flag::write) || command.name == "select" || command.name == "pfcount";
}

acl::User user_who_may_do_everything() {
  acl::User user("log", {});
  for (const char* rule : {"on", "nopass", "~*", "&*", "+@all"}) user.apply(rule, {});
  return user;
}

}  // namespace

Replay::Replay(Server& server, LogReader::Source source)
    : server_(server),
      reader_(std::move(source)),
      user_(user_who_may_do_everything()),
      client_(std::make_unique<Client>(server, 0, std::make_unique<NoConnection>())) {
  client_->user = &user_;
  client_->in_exec = true;  // nothing waits
  client_->reply.mute();
}

Replay::~Replay() = default;

bool Replay::fail(std::string error) {
  error_ = std::move(error) + " at byte " + std::to_string(whole_) + " of the file";
  return false;
}

Replay::Outcome Replay::run() {
  constexpr int requests_at_once = 1000;
  constexpr std::uint64_t bytes_at_once = 1 << 20;
  const std::uint64_t began = reader_.whole_bytes();
  for (int i = 0; i < requests_at_once && reader_.whole_bytes() - began < bytes_at_once; ++i) {
    switch (reader_.next()) {
      case LogReader::Next::request:
        if (!take(reader_.arguments())) return Outcome::failed;
        break;
      case LogReader::Next::end:
        if (in_transaction_) return Outcome::truncated;
        whole_ = reader_.whole_bytes();
        return Outcome::end;
      case LogReader::Next::truncated:
        if (!in_transaction_) whole_ = reader_.whole_bytes();
        return Outcome::truncated;
      case LogReader::Next::malformed:
        whole_ = reader_.whole_bytes();
        fail("Bad file format: no request");
        return Outcome::failed;
    }
    client_->reply.drop_lost();
  }
  return Outcome::more;
}

bool Replay::take(Arguments words) {
  const std::string_view name = words[0].text;
  const bool alone = words.size() == 1;
  if (alone && is_word(name, "MULTI")) {
    if (in_transaction_) return fail("MULTI in a transaction");
    whole_ = reader_.whole_bytes();
    in_transaction_ = true;
    return true;
  }
  if (alone && is_word(name, "EXEC")) {
    if (!in_transaction_) return fail("EXEC without MULTI");
    in_transaction_ = false;
    return run_transaction();
  }
  if (in_transaction_) {
    Request& request = transaction_.emplace_back();
    for (const Argument& word : words) request.emplace_back(word.text);
    return true;
  }
  whole_ = reader_.whole_bytes();
  return run_request(words);
}

bool Replay::run_transaction() {
  std::vector<Argument> words;
  for (const Request& request : transaction_) {
    words.clear();
    for (const Bytes& word : request) words.push_back({word.view(), word.shared()});
    if (!run_request(words)) return false;
  }
  transaction_.clear();
  return true;
}

bool Replay::run_request(Arguments words) {
  const Command* command = command_of(words);
  if (command == nullptr || !belongs_in_a_log(*command) || !command->takes(words.size()))
    return fail("Unknown command '" + std::string(words[0].text.substr(0, 64)) +
                "' reading the append only file");
  ++requests_;
  // Without the checks and the statistics of clients' requests.
  const Call call{
      server_,        *client_, *command,      *server_.databases[static_cast<std::size_t>(client_->db)],
      client_->reply, words,    server_.now_ms};
  const Effects::Running running(server_.effects, client_->db, words);
  command->run(call);
  return true;
}

}  // namespace weir::kv::aof
