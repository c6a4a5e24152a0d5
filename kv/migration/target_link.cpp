#include "kv/migration/target_link.hpp"

#include <utility>

#include "kv/call/server_parts.hpp"
#include "kv/endpoints/dialler.hpp"

namespace weir::kv::migration {

TargetLink::TargetLink(ServerParts& server, Login login)
    : server_(server), login_(std::move(login)), output_(server.blocks) {}

TargetLink::~TargetLink() {
  if (connection_ != nullptr) connection_->close();
  output_.clear();
}

void TargetLink::dial() {
  auto begun = server_.dialler.dial_node(login_.host, login_.port,
                                         [this](Opened<std::unique_ptr<Connection>> outcome) {
                                           server_.handle([&] { dialled(std::move(outcome)); });
                                         });
  if (!begun) {
    server_.log(LogLevel::warning, "MIGRATE to " + login_.host + ": " + begun.error());
    return fail(Failure::connecting);
  }
  dialling_ = std::move(*begun);
}

void TargetLink::dialled(Opened<std::unique_ptr<Connection>> outcome) {
  if (outcome) {
    connection_ = std::move(*outcome);
    connection_->start(*this);
    if (!ended_) user_->link_ready(*this);
  } else {
    server_.log(LogLevel::verbose, "MIGRATE to " + login_.host + ": " + outcome.error());
    fail(Failure::connecting);
  }
}

void TargetLink::received(std::span<const char> bytes) {
  server_.refresh_time();
  server_.stats.bytes_in += bytes.size();
  input_.append(bytes.data(), bytes.size());
  std::size_t begin = 0;
  while (!ended_) {
    const std::size_t end = input_.find("\r\n", begin);
    if (end == std::string::npos) break;
    // The user may close the link, which leaves the input as it is.
    user_->line_came(*this, std::string_view(input_).substr(begin, end - begin));
    begin = end + 2;
  }
  input_.erase(0, begin);
  if (!ended_ && input_.size() > longest_line) fail(Failure::reading);
}

void TargetLink::close() {
  ended_ = true;
  dialling_.reset();
  if (connection_ != nullptr) connection_->close();
}

void TargetLink::fail(Failure failure) {
  if (ended_) return;
  close();
  user_->link_failed(*this, failure);
}

}  // namespace weir::kv::migration
