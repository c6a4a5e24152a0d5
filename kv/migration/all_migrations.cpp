#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "kv/call/server_parts.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/clients/client.hpp"
#include "kv/migration/migration.hpp"
#include "kv/migration/migrations.hpp"

namespace weir::kv::migration {

namespace {

constexpr std::size_t most_kept = 64;
constexpr std::int64_t keep_ms = 10'000;
constexpr std::int64_t next_step_ms = 100;

class AllMigrations final : public Migrations, private Links, private TargetLink::User {
 public:
  explicit AllMigrations(ServerParts& server) : server_(server) {}

  bool prepare(Client& client, Order order) override;
  void start(Client& client) override;
  void abandon(Client& client) override;
  std::size_t kept_links() const override { return kept_.size(); }
  std::int64_t next_look_ms() const override;
  void look_at_clock() override;
  void shut_down() override;

 private:
  struct Kept {
    std::unique_ptr<TargetLink> link;
    std::int64_t since_ms;
  };

  std::unique_ptr<TargetLink> take_link(const Login& login) override;
  void give_back(std::unique_ptr<TargetLink> link) override;
  void end_kept(std::deque<Kept>::iterator one);
  void answer(Client& client, const std::string& error);
  void free_what_is_over();

  // Of a kept link: it should say nothing.
  void link_ready(TargetLink&) override {}
  void line_came(TargetLink& link, std::string_view) override { link_failed(link, {}); }
  void all_sent(TargetLink&) override {}
  void link_failed(TargetLink& link, TargetLink::Failure) override;

  ServerParts& server_;
  absl::flat_hash_map<Client*, std::unique_ptr<Migration>> running_;
  std::deque<Kept> kept_;  // those that came back first are first
  // Until nothing refers to them.
  std::vector<std::unique_ptr<Migration>> over_;
  std::vector<std::unique_ptr<TargetLink>> ended_;
};

bool AllMigrations::prepare(Client& client, Order order) {
  free_what_is_over();
  Links& links = *this;
  auto made =
      std::make_unique<Migration>(server_, client, links, std::move(order),
                                  [this, &client](const std::string& error) { answer(client, error); });
  if (!made->claim()) return false;
  running_[&client] = std::move(made);
  return true;
}

void AllMigrations::start(Client& client) {
  running_.at(&client)->start();
  server_.arm_timer();
}

void AllMigrations::answer(Client& client, const std::string& error) {
  if (error.empty()) {
    client.reply.ok();
  } else {
    server_.blocking.fail(client, error);
  }
  server_.blocking.release(client);  // which abandons what is over
  client.will_resume();
}

void AllMigrations::abandon(Client& client) {
  const auto found = running_.find(&client);
  if (found == running_.end()) return;
  over_.push_back(std::move(found->second));
  running_.erase(found);
  over_.back()->stop();
  server_.arm_timer();
}

std::unique_ptr<TargetLink> AllMigrations::take_link(const Login& login) {
  // The one that came back last; the others get old enough to go.
  const auto found = std::find_if(kept_.rbegin(), kept_.rend(),
                                  [&](const Kept& kept) { return kept.link->login() == login; });
  if (found == kept_.rend()) return std::make_unique<TargetLink>(server_, login);
  auto link = std::move(found->link);
  kept_.erase(std::next(found).base());
  return link;
}

void AllMigrations::give_back(std::unique_ptr<TargetLink> link) {
  link->belongs_to(*this);
  if (link->ended()) return ended_.push_back(std::move(link));
  if (kept_.size() == most_kept) end_kept(kept_.begin());
  kept_.push_back({std::move(link), server_.steady_ms});
  server_.arm_timer();
}

void AllMigrations::end_kept(std::deque<Kept>::iterator one) {
  one->link->close();
  ended_.push_back(std::move(one->link));
  kept_.erase(one);
}

void AllMigrations::link_failed(TargetLink& link, TargetLink::Failure) {
  const auto found =
      std::ranges::find(kept_, &link, [](const Kept& kept) -> TargetLink* { return kept.link.get(); });
  if (found != kept_.end()) end_kept(found);
}

void AllMigrations::free_what_is_over() {
  over_.clear();
  std::erase_if(ended_, [](const auto& link) { return link->finished(); });
}

std::int64_t AllMigrations::next_look_ms() const {
  std::int64_t next = 0;
  const auto sooner = [&next](std::int64_t at) { next = next == 0 ? at : std::min(next, at); };
  for (const auto& [client, migration] : running_) sooner(migration->next_look_ms());
  if (!kept_.empty()) sooner(kept_.front().since_ms + keep_ms);
  if (!over_.empty() || !ended_.empty()) sooner(server_.steady_ms + next_step_ms);
  return next;
}

void AllMigrations::look_at_clock() {
  free_what_is_over();
  while (!kept_.empty() && server_.steady_ms - kept_.front().since_ms >= keep_ms) end_kept(kept_.begin());
  std::vector<Migration*> all;
  for (const auto& [client, migration] : running_) all.push_back(migration.get());
  for (Migration* migration : all) migration->look_at_clock();
}

void AllMigrations::shut_down() {
  while (!running_.empty()) abandon(*running_.begin()->first);
  while (!kept_.empty()) end_kept(kept_.begin());
}

}  // namespace

std::unique_ptr<Migrations> make_migrations(ServerParts& server) {
  return std::make_unique<AllMigrations>(server);
}

}  // namespace weir::kv::migration
