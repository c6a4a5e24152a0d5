// The connected part of a stream: a queue pair, its memory and its flow control. Bytes go out as RDMA WRITEs
// with immediate into the peer's receive ring; what the peer writes into ours is read from there.
//
// Bounded: the send ring and the send queue on the way out, ring and credits on the way in. What does not fit
// is not taken, and the caller tries again after progress().
// A few slots of the send queue, and as many receives beyond the credits, are kept for control messages, so
// that credits can be given however full the queue is.
//
// Threading: none of its own; the stream's mutex guards it.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <expected>
#include <list>
#include <memory>

#include "verbs/rsocket/alarm.hpp"
#include "verbs/rsocket/options.hpp"
#include "verbs/rsocket/pieces.hpp"
#include "verbs/rsocket/stream_flow.hpp"
#include "verbs/rsocket/stream_memory.hpp"

namespace weir::rsocket {

class Pipe {
 public:
  // Makes the queue pair of `id`, which outlives this. The error is an errno.
  static std::expected<std::unique_ptr<Pipe>, int> make(rdma_cm_id* id, const Options& options);
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  Greeting greeting() const;
  void begin(const Greeting& peers);

  // Takes what completed, gives the peer what it may be given. True: something happened.
  bool progress();

  std::size_t room();               // bytes that send() would take
  std::size_t send(Pieces& from);   // one message; how much it took
  bool send_control(Control what);  // false: no slot is free
  bool all_sent() const { return data_in_flight_ == 0 && control_in_flight_ == 0; }

  std::size_t unread() const { return flow_.unread(); }
  std::size_t read(Pieces& into, bool peek);

  bool peer_shut_down() const { return peer_shut_down_; }        // it will send nothing more
  bool peer_disconnected() const { return peer_disconnected_; }  // nor take anything
  bool broken() const { return broken_; }                        // without a word
  void abandon() { broken_ = true; }

  // Rings when progress() has something to do.
  int descriptor() const { return alarm_.descriptor(); }
  bool set_alarm() { return alarm_.set(cq_); }
  bool silence() { return alarm_.silence(); }

  // riomap and its kin (stream_iomap.cpp). Errors are errnos.
  std::expected<std::uint64_t, int> map(void* buffer, std::size_t size, int protection, std::int64_t offset);
  int unmap(void* buffer, std::size_t size);
  bool announcement_due() const { return !unannounced_.empty(); }
  bool announce_mapping();  // tells the peer of one; false: no room
  // Writes to the mapping at `offset`; how much it took. EINVAL: the peer has mapped nothing there.
  std::expected<std::size_t, int> send_to_mapping(Pieces& from, std::uint64_t offset);

 private:
  enum class Kind : std::uint32_t { receive, data, control };
  struct Mapping {
    ibv_mr* mr;
    std::uint64_t offset;
    std::int64_t index;  // of the peer's table; -1: for our own use only
  };

  Pipe(rdma_cm_id* id, const Options& options);
  int set_up(const Options& options);
  int post_receives(std::uint32_t count);
  bool post_write(const ibv_sge* piece, bool inlined, std::uint64_t address, std::uint32_t key,
                  std::optional<Immediate> immediate, Kind kind, std::uint32_t ring_bytes);
  void completed(const ibv_wc& completion);
  void received(const ibv_wc& completion);
  void look_for_buffer();
  void give_grants();
  std::span<std::byte> ring_room(std::size_t most) const;

  rdma_cm_id* id_;
  Alarm alarm_;  // outlives the completion queue
  ibv_cq* cq_ = nullptr;
  std::unique_ptr<StreamMemory> memory_;
  StreamFlow flow_;
  const std::uint32_t send_slots_, receive_slots_, iomap_entries_;
  std::uint32_t inline_bytes_;
  std::uint32_t data_in_flight_ = 0, control_in_flight_ = 0, to_post_ = 0;
  std::size_t ring_at_ = 0, ring_used_ = 0;
  bool begun_ = false, buffer_may_be_there_ = false;
  bool peer_shut_down_ = false, peer_disconnected_ = false, broken_ = false;

  bool swap_ = false;  // the peer's byte order is the other one
  RemoteBuffer peers_list_;
  std::uint32_t peers_iomap_entries_ = 0;
  std::vector<bool> peers_iomap_taken_;
  std::list<Mapping> mappings_, unannounced_;
};

}  // namespace weir::rsocket
