// One MIGRATE: the keys of one client move to another server.
//
// In order: it gets a link; logs in and selects the database there; then sends each key as a RESTORE. A key
// that the other server has taken is deleted here, unless it has changed since it was sent: then it is sent
// again (as it is now, or as a DEL), a limited number of times. Nobody else waits meanwhile, and a key that
// no answer came for stays here.
//
// Bounded: at most `most_ahead` bytes and one value are copied in advance. While no data may change here
// (CLIENT PAUSE, a slow script), taken keys wait. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kv/migration/migrations.hpp"
#include "kv/migration/target_link.hpp"

namespace weir::kv::migration {

// Where links come from and go back to.
class Links {
 public:
  // A kept link, or a new one, which is not dialled yet.
  virtual std::unique_ptr<TargetLink> take_link(const Login& login) = 0;
  virtual void give_back(std::unique_ptr<TargetLink> link) = 0;  // ended or not

 protected:
  ~Links() = default;
};

class Migration final : private TargetLink::User {
 public:
  // `done` is called once, when the client can be answered: empty, or an error.
  using Done = std::function<void(const std::string& error)>;

  Migration(ServerParts& server, Client& client, Links& links, Order order, Done done);

  // Whether no key is under way for another client; otherwise nothing has begun.
  bool claim();
  void start();
  // Ends it without an answer. It may be in the middle of its work, so it is freed later.
  void stop();
  // Continues with what had to wait.
  void settle();
  void look_at_clock();
  std::int64_t next_look_ms() const;

 private:
  static constexpr std::size_t most_ahead = std::size_t{256} << 10;
  static constexpr int most_rounds = 16;

  enum class Stage : std::uint8_t { connects, logs_in, selects, moves };

  void link_ready(TargetLink& link) override;
  void line_came(TargetLink& link, std::string_view line) override;
  void all_sent(TargetLink& link) override;
  void link_failed(TargetLink& link, TargetLink::Failure failure) override;

  void begin_round(std::deque<std::string> keys);
  void log_in();
  void select();
  void send_some();
  bool send(const std::string& key);
  bool is_of_other_dialect(const std::string& key, rdb::Dialect sent, std::string_view line) const;
  void delete_here(const std::string& key);
  bool data_may_change() const;
  void drop_link();
  void fail(std::string error);
  void finish();
  Login login() const { return {order_.host, order_.port, order_.user, order_.password}; }

  ServerParts& server_;
  Client& client_;
  Links& links_;
  const Order order_;
  Done done_;
  const int db_;
  Stage stage_ = Stage::connects;
  std::unique_ptr<TargetLink> link_;
  bool link_was_kept_ = false;
  bool any_answer_ = false;
  bool claimed_ = false;
  bool over_ = false;
  bool sends_soon_ = false;
  int round_ = 0;
  std::deque<std::string> to_send_;
  struct Sent {
    std::string key;
    rdb::Dialect dialect;
  };
  std::deque<Sent> awaited_;         // not answered
  std::deque<std::string> taken_;    // answered, not settled
  std::deque<std::string> changed_;  // for the next round
  std::string error_;                // the first one
  std::int64_t moved_ms_ = 0;        // when something came or left last
  std::size_t unsent_ = 0;           // when that was looked at
  std::shared_ptr<int> here_ = std::make_shared<int>();
};

}  // namespace weir::kv::migration
