// One connection to a node of the cluster: requests leave in the order in which they come, replies come back
// in that order, and each goes to who waits for it.
//
// In order: it is dialled; says HELLO, with user and password if there are some; then it is ready. Requests
// wait for that. A node that does not get there in time, does not answer its oldest request in time, or
// answers what is no reply, costs the link: what waited is handed back, with whether it may have run.
//
// Bounded: `most_requests` and `most_bytes` of them wait for replies; has_room() says whether one more is
// welcome. The bytes of a request are kept until its reply is there, so that it can go to another node
// instead. Threading: the server's one thread. A link that has ended is freed at the end of the round, when
// it is finished().
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/node_address.hpp"
#include "kv/gateway/lane.hpp"
#include "kv/net/connection.hpp"
#include "kv/net/dialling.hpp"
#include "kv/resp/reply.hpp"
#include "kv/resp/reply_frame.hpp"

namespace weir::kv::cluster {

using weir::cluster::NodeAddress;

// A request on its way, and who waits for the reply.
struct Request {
  std::shared_ptr<Lane> lane;  // null: the owner itself asked
  std::uint64_t number = 0;    // its place there
  std::uint16_t slot = 0;
  bool has_slot = false;
  bool may_wait = false;             // no reply for however long is no sign that the node is dead
  std::uint8_t redirections = 0;     // so often it went to another node already
  std::uint32_t parts_before = 0;    // it is a transaction: replies to MULTI and what is queued come first
  std::uint32_t replies_before = 0;  // how many of those, and of ASKING's, are still to come
  std::unique_ptr<std::string> error_before;  // the first error among them; null: none
  std::size_t bytes = 0;
  std::int64_t since_ms = 0;
};

// How a link is made.
struct LinkSettings {
  Protocol protocol = Protocol::resp2;
  std::string user, password;  // empty: none
  std::int64_t connect_ms = 1000;
  std::int64_t answer_ms = 5000;
};

class NodeLink final : private Session {
 public:
  static constexpr std::size_t most_requests = std::size_t{1} << 16;
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;

  class Owner {
   public:
    // `request` and `reply` are valid during the call.
    virtual void replied(NodeLink& link, Request waited, std::string_view request,
                         std::string_view reply) = 0;
    // What the node says without being asked, in RESP3. True: it answers the oldest request all the same.
    virtual bool pushed(NodeLink&, std::string_view) { return false; }
    virtual void link_ready(NodeLink& link) = 0;
    // It may destroy the link when it is finished(), not now. `sent`: they may have run.
    virtual void link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered,
                            bool sent) = 0;
    // Begins to dial, or says why that cannot be.
    virtual Opened<std::unique_ptr<Dialling>> dial_node(const NodeAddress& address, Dialled dialled) = 0;
    virtual BlockPool& blocks() = 0;
    virtual std::int64_t now_ms() = 0;
    // Something came outside a round of the sockets.
    virtual void round_is_over() = 0;

   protected:
    ~Owner() = default;
  };

  NodeLink(Owner& owner, NodeAddress address, LinkSettings settings);
  ~NodeLink() override;

  void dial();
  bool begun() const { return begun_ms_ != 0; }
  bool ready() const { return stage_ == Stage::ready; }
  bool ended() const { return stage_ == Stage::ended; }
  bool idle() const { return waiting_.empty(); }
  std::size_t waiting() const { return waiting_.size(); }
  // Whether it is time that something came: it is being made, or its oldest request may not wait for ever.
  bool hurried() const { return !ready() || (!idle() && !waiting_.front().may_wait); }
  bool has_room() const { return waiting_.size() < most_requests && kept() < most_bytes; }
  const NodeAddress& address() const { return address_; }
  Protocol protocol() const { return settings_.protocol; }

  // The request leaves with the next flush() once the link is ready; `asking` puts ASKING before it.
  void send(Request request, std::string_view bytes, bool asking);
  void flush();
  void look_at_clock();
  // Ends it; the owner is told.
  void break_off(const std::string& why);
  // Ends it without a word to anybody.
  void close();
  // Kept by the owner: it is among those that flush() at the end of the round.
  bool marked = false;
  // After it has ended: the transport refers to nothing here any more.
  bool finished() const { return connection_ == nullptr || connection_->finished(); }

 private:
  enum class Stage : std::uint8_t { dials, greets, ready, ended };

  void received(std::span<const char> bytes) override;
  std::span<char> wanted() override { return {}; }
  void filled(std::size_t) override {}
  std::size_t appetite() const override { return SIZE_MAX; }
  ReplyQueue& outgoing() override { return output_; }
  void drained() override {}
  void lost(std::string_view why) override { break_off("the connection ended: " + std::string(why)); }

  void dialled(Opened<std::unique_ptr<Connection>> outcome);
  void greet();
  void take(std::string_view reply);
  void take_push(std::string_view push);
  std::size_t kept() const { return log_.size() - answered_; }
  void forget_front(std::size_t bytes);

  Owner& owner_;
  const NodeAddress address_;
  const LinkSettings settings_;
  Stage stage_ = Stage::dials;
  std::int64_t begun_ms_ = 0;
  std::unique_ptr<Dialling> dialling_;
  std::unique_ptr<Connection> connection_;
  ReplyQueue output_;
  std::string input_;  // of a reply that is not whole
  ReplyFrame frame_;
  std::deque<Request> waiting_;
  std::string log_;           // the bytes of those, first to answer first
  std::size_t answered_ = 0;  // bytes at its front that nobody needs any more
};

}  // namespace weir::kv::cluster
