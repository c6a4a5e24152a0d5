#include "tensor/peer/peer_core.hpp"

#include <algorithm>
#include <utility>

#include "tensor/link/rdma_link.hpp"
#include "tensor/link/tcp_link.hpp"

namespace weir::tensor {
namespace {

using Clock = CallerDriven::Clock;
// How long to wait, after a CANCEL, for the hub to confirm that it no longer writes.
constexpr std::chrono::milliseconds cancel_grace{1000};

}  // namespace

PeerCore::~PeerCore() {
  known_descriptor_ = nullptr;
  descriptor_.reset();
  session_.reset();
  if (engine_ == nullptr) return;
  // No other thread drives any more; run until the link has closed.
  driven_.run_until([this] { return engine_->stats().connections == 0; },
                    Clock::now() + std::chrono::milliseconds(200));
}

Result<void> PeerCore::open(const rdma::Result<rdma::Provider>& provider) {
  Result<Address> parsed = parse_address(address_);
  if (!parsed) return std::unexpected(parsed.error());
  parsed_ = std::move(*parsed);
  const Result<rdma::Endpoint> at = resolve(parsed_);
  if (!at) return std::unexpected(at.error());
  at_ = *at;
  if (parsed_.transport == Transport::rdma) {
    auto engine =
        provider ? rdma::Engine::open(driven_.io(), *provider, {}) : std::unexpected(provider.error());
    if (engine)
      engine_ = *engine;
    else if (!parsed_.fallback_tcp)
      return fail(Errc::device, engine.error().what);
    else
      no_engine_ = engine.error().what;
  }
  if (parsed_.transport == Transport::tls) {
    Result<transport::TlsContext> tls = tls_context_of(settings_.tls, transport::TlsSide::client);
    if (!tls) return std::unexpected(tls.error());
    tls_ = std::move(*tls);
  }
  driven_.post([this] { reconnect(); });
  if (!driven_.run_until([this] { return settled_.load(); }, CallerDriven::after(settings_.connect_timeout)))
    return fail(Errc::unreachable, address_ + " did not answer in time");
  if (generation_ == 0) return std::unexpected(end_);
  return {};
}

void PeerCore::reconnect() {
  session_ = std::make_unique<PeerSession>(settings_.limits, settings_.token, *memory_, stats_, *this);
  dial(parsed_.transport);
}

void PeerCore::dial(Transport by) {
  by_ = by;
  if (by == Transport::rdma) return dial_rdma();
  Encryption encryption{.context = by == Transport::tls ? tls_ : nullptr,
                        .server_name = settings_.tls.server_name};
  if (encryption.server_name.empty()) encryption.server_name = parsed_.host;
  session_->set_link(
      TcpLink::connect(driven_.io(), at_, std::move(encryption), *session_, [this] { session_->ask_in(); }));
}

void PeerCore::dial_rdma() {
  if (engine_ == nullptr) return session_->on_end(Error{Errc::device, no_engine_, 0});
  Result<RdmaLink*> link = RdmaLink::connect(*engine_, at_, {}, *session_, [this] { session_->ask_in(); });
  if (!link) return session_->on_end(link.error());
  session_->set_link(**link);
  if (!parsed_.fallback_tcp) return;
  patience_.expires_after(settings_.connect_timeout / 2);
  patience_.async_wait([this](std::error_code stopped) {
    if (!stopped && generation_ == 0) session_->break_off(Error{Errc::unreachable, "no answer by RDMA", 0});
  });
}

void PeerCore::on_admitted() {
  patience_.cancel();
  if (session_->ended()) return;
  ++stats_.connects;
  stats_.transport = by_;
  generation_ = session_->generation();
  settled_ = true;
  driven_.progressed();
  session_->up();
}

// Falls back to TCP only if RDMA gave no answer, not if the other end answered in another protocol.
bool PeerCore::dials_again(const Error& cause) {
  patience_.cancel();
  if (!parsed_.fallback_tcp || by_ != Transport::rdma) return false;
  if (cause.code != Errc::unreachable && cause.code != Errc::device) return false;
  ++stats_.fallbacks;
  settings_.say("no RDMA to " + rdma::text(at_) + " (" + cause.what + "); using TCP");
  driven_.post([this] { dial(Transport::tcp); });
  return true;
}

void PeerCore::on_ended(const Error& cause) {
  end_ = cause;
  generation_ = 0;
  settled_ = true;
  driven_.progressed();
}

void PeerCore::start(std::shared_ptr<Fetch> fetch) {
  driven_.post([this, fetch = std::move(fetch)]() mutable { begin(std::move(fetch)); });
}

void PeerCore::start_all(std::vector<std::shared_ptr<Fetch>> fetches) {
  driven_.post([this, fetches = std::move(fetches)]() mutable {
    for (std::shared_ptr<Fetch>& each : fetches)
      if (!each->done) begin(std::move(each));
  });
}

void PeerCore::begin(std::shared_ptr<Fetch> fetch) {
  if (session_ == nullptr || session_->is_over()) reconnect();
  session_->start(std::move(fetch));
}

Result<Fetched> PeerCore::wait(const std::shared_ptr<Fetch>& fetch, Clock::time_point deadline) {
  const auto done = [&fetch] { return fetch->done.load(std::memory_order_acquire); };
  if (!driven_.run_until(done, deadline)) {
    driven_.post([this, fetch] { session_->cancel(*fetch); });
    if (!driven_.run_until(done, CallerDriven::after(cancel_grace))) {
      driven_.post([this, fetch] {
        if (!fetch->done) session_->break_off(Error{Errc::timed_out, "the hub does not answer", 0});
      });
      driven_.run_until(done, Clock::time_point::max());
    }
  }
  if (fetch->failed) return std::unexpected(*fetch->failed);
  return fetch->fetched;
}

bool PeerCore::wait_any(std::span<const std::shared_ptr<Fetch>> fetches, Clock::time_point deadline) {
  return driven_.run_until(
      [&] {
        return std::ranges::any_of(
            fetches, [](const auto& each) { return each->done.load(std::memory_order_acquire); });
      },
      deadline);
}

void PeerCore::drop(std::shared_ptr<Fetch> fetch) {
  driven_.post([this, fetch = std::move(fetch)] {
    if (session_ != nullptr) session_->cancel(*fetch);
  });
}

// What is done already is signalled, too: its caller may not have looked yet.
Result<int> PeerCore::descriptor() {
  const std::lock_guard lock(describing_);
  if (descriptor_ == nullptr) {
    auto opened = DoneDescriptor::open(driven_);
    if (!opened) return std::unexpected(opened.error());
    descriptor_ = std::move(*opened);
    known_descriptor_ = descriptor_.get();
    descriptor_->signal();
  }
  return descriptor_->number();
}

PeerStats PeerCore::stats() {
  PeerStats copy;
  std::atomic<bool> done = false;
  driven_.post([&] {
    copy = stats_;
    done = true;
    driven_.progressed();
  });
  driven_.run_until([&] { return done.load(); }, Clock::time_point::max());
  return copy;
}

}  // namespace weir::tensor
