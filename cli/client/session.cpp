#include "cli/client/session.hpp"

#include <utility>

#include "cli/client/request.hpp"

namespace weir::client {
namespace {
using Clock = std::chrono::steady_clock;
constexpr Milliseconds longest_turn{60'000};
}  // namespace

std::vector<Arguments> login_commands(const Login& login) {
  std::vector<Arguments> commands;
  if (!login.password.empty()) {
    Arguments auth{"AUTH"};
    if (!login.user.empty()) auth.push_back(login.user);
    auth.push_back(login.password);
    commands.push_back(std::move(auth));
  }
  if (login.resp) commands.push_back({"HELLO", std::to_string(login.resp)});
  if (login.database) commands.push_back({"SELECT", std::to_string(login.database)});
  return commands;
}

Result<std::unique_ptr<Session>> Session::open(const Endpoint& endpoint, Milliseconds limit) {
  std::unique_ptr<Session> session(new Session);
  auto reactor = Reactor::for_transport(endpoint.transport);
  if (!reactor) return std::unexpected(std::move(reactor.error()));
  session->reactor_ = std::move(*reactor);
  auto connection = session->reactor_->open(endpoint, *session, limit);
  if (!connection) return std::unexpected(std::move(connection.error()));
  session->connection_ = std::move(*connection);
  return session;
}

Session::~Session() = default;

Result<void> Session::log_in(const Login& login) {
  for (const auto& command : login_commands(login)) {
    auto reply = ask(command);
    if (!reply) return std::unexpected(std::move(reply.error()));
    if (reply->is_error()) return fail(ErrorKind::refused, command.front() + " failed: " + reply->text);
  }
  return {};
}

Result<Reply> Session::ask(std::span<const std::string> command, Milliseconds limit) {
  if (auto sent = send(command); !sent) return std::unexpected(std::move(sent.error()));
  return next(limit);
}

Result<std::vector<Reply>> Session::ask_all(std::span<const Arguments> commands, Milliseconds limit) {
  std::string requests;
  for (const Arguments& command : commands) append_request(requests, command);
  if (auto sent = send_bytes(requests); !sent) return std::unexpected(std::move(sent.error()));
  std::vector<Reply> replies;
  replies.reserve(commands.size());
  while (replies.size() < commands.size()) {
    auto reply = next(limit);
    if (!reply) return std::unexpected(std::move(reply.error()));
    replies.push_back(std::move(*reply));
  }
  return replies;
}

Result<void> Session::send(std::span<const std::string> command) {
  std::string request;
  append_request(request, command);
  return send_bytes(request);
}

Result<void> Session::send_bytes(std::string_view bytes) {
  auto rest = std::as_bytes(std::span(bytes));
  while (!ended_) {
    rest = rest.subspan(connection_->write(rest, nullptr));
    if (rest.empty()) return {};
    reactor_->turn(longest_turn);
  }
  // What the server said before it closed the connection answers whatever is asked: why it refuses.
  if (parser_.has_reply()) return {};
  return std::unexpected(*ended_);
}

Result<Reply> Session::next(Milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    const auto left =
        limit == forever ? longest_turn : std::chrono::ceil<Milliseconds>(deadline - Clock::now());
    auto reply = poll(std::max(left, Milliseconds{0}));
    if (!reply) return std::unexpected(std::move(reply.error()));
    if (*reply) return std::move(**reply);
    if (limit != forever && left.count() <= 0)
      return fail(ErrorKind::timed_out,
                  "The server did not answer within " + std::to_string(limit.count()) + " ms");
  }
}

Result<std::optional<Reply>> Session::poll(Milliseconds limit) {
  auto reply = parser_.next();
  if (!reply && !ended_) {
    reactor_->turn(limit);
    reply = parser_.next();
  }
  if (!reply && ended_) return std::unexpected(*ended_);
  return reply;
}

Result<std::string> Session::next_bytes() {
  while (unparsed_->empty() && !ended_) reactor_->turn(longest_turn);
  if (unparsed_->empty()) return std::unexpected(*ended_);
  return std::exchange(*unparsed_, {});
}

Result<void> Session::parse_again(std::string_view bytes) {
  const std::string arrived = std::string(bytes) + *unparsed_;
  unparsed_.reset();
  return parser_.feed(std::as_bytes(std::span(arrived)));
}

void Session::received(std::span<const std::byte> bytes) {
  if (unparsed_) {
    unparsed_->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return;
  }
  if (auto fed = parser_.feed(bytes); !fed && !ended_) ended_ = fed.error();
}

void Session::ended(const Error& why) {
  if (!ended_) ended_ = why;
}

}  // namespace weir::client
