// The link to the primary that this server follows. It reconnects after it breaks.
//
// In order: it dials, introduces itself (greeting.hpp), and continues with the history that it has or loads a
// snapshot (snapshot_load.hpp). Then it applies the stream (applier.hpp), whose bytes become this server's
// own history, and reports its position each second. It abandons an attempt that is silent for repl-timeout
// and starts the next one a second later.
//
// Bounded: at most most_waiting bytes that wait to be loaded or applied are read from the transport.
// A single request or transaction may be larger, up to client-query-buffer-limit. Loading and
// applying take turns of half a millisecond with serving clients. While the append-only log cannot be
// written, nothing is applied.
//
// Nothing that the primary sends can cost more than the link: the data changes only by whole requests.
// Threading: the server's one thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kv/core/history.hpp"
#include "kv/core/primary.hpp"
#include "kv/net/connection.hpp"
#include "kv/net/dialling.hpp"
#include "kv/replication/applier.hpp"
#include "kv/replication/greeting.hpp"
#include "kv/replication/snapshot_frame.hpp"
#include "kv/replication/snapshot_load.hpp"
#include "kv/replication/synced_history.hpp"

namespace weir::kv::repl {

// From now on the server follows that primary.
void follow_primary(ServerParts& server, PrimaryAddress address);
// Likewise, if the settings name a primary.
void follow_configured_primary(ServerParts& server);

class PrimaryLink final : public Primary, private Session {
 public:
  PrimaryLink(ServerParts& server, History& history, PrimaryAddress address);
  ~PrimaryLink() override;

  std::uint64_t loaded_bytes() const override { return load_ == nullptr ? 0 : load_->bytes(); }
  std::uint64_t snapshot_bytes() const override { return frame_.size(); }
  std::int64_t read_position() const override;
  std::string_view transport() const override {
    return connection_ == nullptr ? std::string_view() : connection_->kind();
  }
  std::string peer_address() const override {
    return connection_ == nullptr ? std::string() : connection_->peer_address();
  }
  void disconnect(const std::string& why) override;
  void look_at_clock() override;
  void close() override;
  bool finished() const override;

 private:
  static constexpr std::size_t most_waiting = std::size_t{1} << 20;

  void received(std::span<const char> bytes) override;
  std::span<char> wanted() override { return {}; }
  void filled(std::size_t) override {}
  std::size_t appetite() const override;
  ReplyQueue& outgoing() override { return output_; }
  void drained() override {}
  void lost(std::string_view why) override;

  void dial();
  void dialled(Opened<std::unique_ptr<Connection>> outcome);
  void greet();
  void refused();
  void begin_loading();
  void load();
  void loaded();
  void begin_following();
  void apply();
  bool log_is_kept() const;
  void confirm();
  void send(std::string_view bytes);
  void break_off(const std::string& why);
  void rest_longer();
  void work();
  void work_soon(std::int64_t us);
  std::string_view waiting() const { return std::string_view(input_).substr(done_); }
  void done_with(std::size_t bytes);
  std::size_t take_content(char* into, std::size_t most);

  ServerParts& server_;
  History& history_;
  std::unique_ptr<Dialling> dialling_;
  std::unique_ptr<Connection> connection_;
  std::vector<std::unique_ptr<Connection>> closed_;  // kept until the transport has released them
  ReplyQueue output_;
  std::string input_;
  std::size_t done_ = 0;  // processed bytes of input_
  std::optional<Greeting> greeting_;
  bool lost_answer_ = false;  // of the other, when it was asked to take over
  bool took_over_ = false;    // all the same
  SnapshotFrame frame_;
  std::unique_ptr<SnapshotLoad> load_;
  std::unique_ptr<Applier> applier_;
  SyncedHistory synced_;
  asio::steady_timer work_timer_;
  bool works_soon_ = false;
  std::shared_ptr<bool> here_ = std::make_shared<bool>();  // tells a late timer that this object is gone
  std::string last_problem_;                               // so that each problem is logged once
  std::int64_t rest_s_ = 0;                                // after the last snapshot that was of no use
  std::int64_t dials_at_ms_ = 0;                           // not before
};

}  // namespace weir::kv::repl
