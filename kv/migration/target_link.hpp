// A connection to a server that keys move to. Requests leave in order, and each is answered by one line.
//
// In order: dialled; ready; ended. It outlives its user, since it is kept for a while for the next MIGRATE to
// that server. Threading: the server's one thread. A link that has ended is freed when it is finished().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kv/net/connection.hpp"
#include "kv/net/dialling.hpp"
#include "kv/rdb/format.hpp"

namespace weir::kv {
class ServerParts;
}

namespace weir::kv::migration {

// Links that differ in one of these serve nobody else.
struct Login {
  std::string host;
  std::uint16_t port = 0;
  std::string user;
  std::optional<std::string> password;
  bool operator==(const Login&) const = default;
};

class TargetLink final : private Session {
 public:
  enum class Failure : std::uint8_t { connecting, writing, reading };

  // May give the link away or close it in any of these calls.
  class User {
   public:
    virtual void link_ready(TargetLink& link) = 0;
    virtual void line_came(TargetLink& link, std::string_view line) = 0;
    virtual void all_sent(TargetLink& link) = 0;
    virtual void link_failed(TargetLink& link, Failure failure) = 0;

   protected:
    ~User() = default;
  };

  TargetLink(ServerParts& server, Login login);
  ~TargetLink() override;

  const Login& login() const { return login_; }
  void belongs_to(User& user) { user_ = &user; }
  void dial();
  bool ended() const { return ended_; }
  // After it has ended: the transport refers to nothing here any more.
  bool finished() const { return connection_ == nullptr || connection_->finished(); }

  void append(std::string_view bytes) { output_.append(bytes); }
  void flush() { connection_->flush(); }
  std::size_t unsent() const { return output_.size(); }
  // Ends it without a word to its user.
  void close();

  // Of hashes whose fields expire, of which no server reads both forms. Found out by trying.
  rdb::Dialect dialect = rdb::Dialect::redis;
  std::optional<std::int64_t> selected_db;  // there; unknown: none was selected yet

 private:
  static constexpr std::size_t longest_line = 64 * 1024;

  void received(std::span<const char> bytes) override;
  std::span<char> wanted() override { return {}; }
  void filled(std::size_t) override {}
  std::size_t appetite() const override { return SIZE_MAX; }
  ReplyQueue& outgoing() override { return output_; }
  void drained() override { user_->all_sent(*this); }
  void lost(std::string_view) override { fail(output_.empty() ? Failure::reading : Failure::writing); }

  void dialled(Opened<std::unique_ptr<Connection>> outcome);
  void fail(Failure failure);

  ServerParts& server_;
  const Login login_;
  User* user_ = nullptr;
  std::unique_ptr<Dialling> dialling_;
  std::unique_ptr<Connection> connection_;
  ReplyQueue output_;
  std::string input_;  // of a line that is not whole
  bool ended_ = false;
};

}  // namespace weir::kv::migration
