// One connection to a node of the cluster: requests leave in the order in which they arrive, replies come
// back in the same order, and each is passed to whoever sent the request.
//
// The link dials, says HELLO (with user and password if there are any), and is then ready; requests wait for
// that. A node that takes too long to get there, takes too long to answer its oldest request, or sends an
// invalid reply costs the link. Its requests are handed back, with whether they may have run.
// Bounded: at most `most_requests` and `most_bytes` wait for replies; has_room() says whether one more is
// accepted. The bytes of a request are kept until its reply arrives, so that it can be redirected to another
// node. Threading: the server's one thread. A link that has ended is freed at the end of a round, once it is
// finished().
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/node_address.hpp"
#include "kv/gateway/lane.hpp"
#include "kv/gateway/unfinished_replies.hpp"
#include "kv/net/connection.hpp"
#include "kv/net/dialling.hpp"
#include "kv/resp/reply.hpp"
#include "kv/resp/reply_frame.hpp"

namespace weir::kv::cluster {

using weir::cluster::NodeAddress;

// A request in flight, and where its reply goes.
struct Request {
  std::shared_ptr<Lane> lane;  // null: the owner's own request
  std::uint64_t number = 0;    // its number in the lane
  std::uint16_t slot = 0;
  bool has_slot = false;
  bool writes = false;             // may change data
  bool may_wait = false;           // may block without limit, so silence does not mean that the node is dead
  std::uint8_t redirections = 0;   // how often it was sent on to another node
  std::uint32_t parts_before = 0;  // a transaction's: replies to MULTI and to each queued command
  std::uint32_t replies_before = 0;           // how many of these, and of ASKING's, are still to come
  std::unique_ptr<std::string> error_before;  // the first error among them, if any
  std::size_t bytes = 0;
  std::int64_t since_ms = 0;
};

// How to make a link.
struct LinkSettings {
  Protocol protocol = Protocol::resp2;
  std::string user, password;  // empty: no authentication
  std::int64_t connect_ms = 1000;
  std::int64_t answer_ms = 5000;
  std::size_t longest_reply = ReplyFrame::longest_reply;       // bytes
  std::shared_ptr<UnfinishedReplies> unfinished_replies = {};  // of all links
};

class NodeLink final : private Session {
 public:
  static constexpr std::size_t most_requests = std::size_t{1} << 16;
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;

  class Owner {
   public:
    // `request` and `reply` are valid only during the call.
    virtual void replied(NodeLink& link, Request waited, std::string_view request,
                         std::string_view reply) = 0;
    // A RESP3 push. Returns true if it also answers the oldest request.
    virtual bool pushed(NodeLink&, std::string_view) { return false; }
    virtual void link_ready(NodeLink& link) = 0;
    // May destroy the link once it is finished(), but not in the call. `sent`: the requests may have run.
    virtual void link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered,
                            bool sent) = 0;
    // Starts to dial, or returns why it cannot.
    virtual Opened<std::unique_ptr<Dialling>> dial_node(const NodeAddress& address, Dialled dialled) = 0;
    virtual BlockPool& blocks() = 0;
    virtual std::int64_t now_ms() = 0;
    // Called when something arrived outside a round of the sockets.
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
  // Whether something is due soon: the link is being made, or its oldest request must be answered in time.
  bool hurried() const { return !ready() || (!idle() && !waiting_.front().may_wait); }
  bool has_room() const { return waiting_.size() < most_requests && kept() < most_bytes; }
  const NodeAddress& address() const { return address_; }
  Protocol protocol() const { return settings_.protocol; }
  // What the node calls this connection (CLIENT ID); 0: it has not said.
  std::int64_t client_id() const { return client_id_; }

  // The request leaves with the next flush() once the link is ready; `asking` sends ASKING before it.
  void send(Request request, std::string_view bytes, bool asking);
  void flush();
  void look_at_clock();
  // Ends the link and reports that to the owner.
  void break_off(const std::string& why);
  // Ends the link without a report.
  void close();
  // For the owner: set while the link is in its list of links to flush at the end of the round.
  bool marked = false;
  // For the owner: no other link has or had this number. 0: it needs none.
  std::uint64_t number = 0;
  // After it has ended: the transport no longer refers to this object.
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
  std::size_t longest_reply() const;
  std::size_t kept() const { return log_.size() - answered_; }
  void forget_front(std::size_t bytes);

  Owner& owner_;
  const NodeAddress address_;
  const LinkSettings settings_;
  Stage stage_ = Stage::dials;
  std::int64_t begun_ms_ = 0;
  std::int64_t client_id_ = 0;
  std::unique_ptr<Dialling> dialling_;
  std::unique_ptr<Connection> connection_;
  ReplyQueue output_;
  std::string input_;  // an incomplete reply
  UnfinishedReplies::Part unfinished_;
  ReplyFrame frame_;
  std::deque<Request> waiting_;
  std::string log_;           // the bytes of the waiting requests, oldest first
  std::size_t answered_ = 0;  // bytes at its front whose requests were answered
};

}  // namespace weir::kv::cluster
