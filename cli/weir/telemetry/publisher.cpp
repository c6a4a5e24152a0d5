#include "cli/weir/telemetry/publisher.hpp"

#include <dial_out.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <string_view>

namespace weir::command {
namespace {

using namespace std::chrono_literals;

// How often a stream without a collector checks whether the queue is to be closed.
constexpr auto connect_patience = 200ms;
// A collector that takes nothing for this long is treated as absent.
constexpr auto push_patience = 10s;

std::shared_ptr<grpc::Channel> channel_to(const std::string& collector) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);  // a host that vanished sends no FIN
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(collector, grpc::InsecureChannelCredentials(), arguments);
}

void set_path(gnmi::Path& path, std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find('/'), text.size());
    path.add_elem()->set_name(std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

gnmi::SubscribeResponse message_of(const TelemetryNotification& from) {
  gnmi::SubscribeResponse message;
  auto& notification = *message.mutable_update();
  notification.set_timestamp(from.timestamp);
  // SONiC's target names the database. A switch streams only for itself; here one stream serves many devices.
  notification.mutable_prefix()->set_target("COUNTERS_DB");
  auto& device = *notification.mutable_prefix()->add_elem();
  device.set_name("device");
  (*device.mutable_key())["name"] = from.device;
  for (std::size_t i = 0; i < from.count; ++i) {
    auto& update = *notification.add_update();
    set_path(*update.mutable_path(), from.values[i].path);
    update.mutable_val()->set_json_ietf_val(from.values[i].json);
  }
  return message;
}

}  // namespace

// One Publish call, from beginning to end. The thread that makes the call writes; another thread reads.
class Publisher::Stream {
 public:
  Stream(Publisher& publisher, gnmi::sonic::gNMIDialOut::Stub& stub) : publisher_(publisher) {
    context_.AddMetadata("weir-sender", publisher.sender_);
    call_ = stub.Publish(&context_);
    reader_ = std::thread([this] { read(); });
  }

  void cancel() { context_.TryCancel(); }

  // Runs until the stream breaks or, once the queue is closing, everything is sent. Returns whether all
  // that was written arrived.
  bool run() {
    bool whole = false;
    while (const auto* next = wait_for_next(whole))
      if (!call_->Write(*next)) break;
    if (whole) {
      call_->WritesDone();
      wait_for_end();
    }
    context_.TryCancel();
    reader_.join();
    return call_->Finish().ok() && whole;
  }

 private:
  void read() {
    gnmi::sonic::PublishResponse response;
    while (call_->Read(&response)) publisher_.acknowledged(response.timestamp());
    const std::lock_guard lock(publisher_.mutex_);
    over_ = true;
    publisher_.changed_.notify_all();
  }

  // Copies the message, because an acknowledgement may remove the original meanwhile.
  const gnmi::SubscribeResponse* wait_for_next(bool& whole) {
    std::unique_lock lock(publisher_.mutex_);
    const auto ready = [&] {
      return over_ || publisher_.closing_ ||
             publisher_.written_ < publisher_.first_ + publisher_.queue_.size();
    };
    publisher_.changed_.wait(lock, ready);
    if (over_ || Clock::now() >= publisher_.give_up_at_) return nullptr;
    publisher_.written_ = std::max(publisher_.written_, publisher_.first_);
    const std::uint64_t at = publisher_.written_ - publisher_.first_;
    if (at == publisher_.queue_.size()) {
      whole = true;
      return nullptr;
    }
    ++publisher_.written_;
    publisher_.changed_.notify_all();  // push() may remove it to make room
    current_ = publisher_.queue_[at].message;
    return &current_;
  }

  void wait_for_end() {
    std::unique_lock lock(publisher_.mutex_);
    publisher_.changed_.wait_until(lock, publisher_.give_up_at_, [&] { return over_; });
  }

  Publisher& publisher_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<gnmi::SubscribeResponse, gnmi::sonic::PublishResponse>> call_;
  gnmi::SubscribeResponse current_;
  std::thread reader_;
  bool over_ = false;  // guarded by the publisher's mutex
};

Publisher::Publisher(std::string collector, std::uint64_t queue_bytes)
    : collector_(std::move(collector)), most_bytes_(queue_bytes) {}

Publisher::~Publisher() {
  if (thread_.joinable()) close(0ms);
}

void Publisher::push(const TelemetryNotification& notification) {
  Queued queued{message_of(notification), 0};
  queued.bytes = queued.message.ByteSizeLong() + sizeof(Queued);
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) {
    sender_ = notification.sender;
    thread_ = std::thread([this] { keep_connected(); });
  }
  ++counts_.pushed;
  const auto room = [&] { return queue_.empty() || bytes_ + queued.bytes <= most_bytes_; };
  const auto give_up = Clock::now() + push_patience;
  while (!room()) {
    if (streaming_ && !acknowledges_ && written_ > first_) {
      forget_first(true);
    } else if (!streaming_ || Clock::now() >= give_up) {
      forget_first(false);
    } else {
      changed_.wait_until(lock, give_up);
    }
  }
  bytes_ += queued.bytes;
  queue_.push_back(std::move(queued));
  changed_.notify_all();
}

void Publisher::forget_first(bool delivered) {
  ++(delivered ? counts_.delivered : counts_.dropped);
  bytes_ -= queue_.front().bytes;
  queue_.pop_front();
  ++first_;
}

void Publisher::acknowledged(std::int64_t timestamp) {
  const std::lock_guard lock(mutex_);
  acknowledges_ = true;
  while (!queue_.empty() && first_ < written_ && queue_.front().message.update().timestamp() <= timestamp)
    forget_first(true);
  changed_.notify_all();
}

void Publisher::keep_connected() {
  const auto channel = channel_to(collector_);
  const auto stub = gnmi::sonic::gNMIDialOut::NewStub(channel);
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (closing_ && (queue_.empty() || Clock::now() >= give_up_at_)) {
        ended_ = true;
        changed_.notify_all();
        return;
      }
    }
    if (!channel->WaitForConnected(std::chrono::system_clock::now() + connect_patience)) continue;
    Stream stream(*this, *stub);
    {
      const std::lock_guard lock(mutex_);
      written_ = first_;
      streaming_ = true;
      acknowledges_ = false;
      stream_ = &stream;
      ++counts_.connections;
    }
    const bool whole = stream.run();
    const std::lock_guard lock(mutex_);
    streaming_ = false;
    stream_ = nullptr;
    changed_.notify_all();
    if (!whole) continue;
    while (!queue_.empty() && first_ < written_) forget_first(true);
  }
}

TelemetryCounts Publisher::close(std::chrono::milliseconds wait) {
  if (thread_.joinable()) {
    std::unique_lock lock(mutex_);
    closing_ = true;
    give_up_at_ = Clock::now() + wait;
    changed_.notify_all();
    changed_.wait_until(lock, give_up_at_, [&] { return ended_; });
    if (stream_ != nullptr) stream_->cancel();  // else a collector that takes nothing would block it in Write
    changed_.notify_all();
    lock.unlock();
    thread_.join();
  }
  while (!queue_.empty()) forget_first(false);
  return counts_;
}

}  // namespace weir::command
