#include "rpc/tracing.hpp"

#include <stdexcept>

#include "hash/process_key.hpp"
#include "rpc/tracing/trace_ids.hpp"
#include "transport/host_port.hpp"

namespace weir::rpc {
namespace {

ExportOptions export_options(const TracingOptions& options) {
  const auto at = transport::parse_host_port(options.collector);
  if (!at || !at->port || at->host.empty())
    throw std::invalid_argument("rpc: '" + options.collector + "' is no address of a collector: HOST:PORT");
  ExportOptions made;
  made.host = at->host;
  made.port = std::to_string(*at->port);
  made.path = options.path;
  made.resource = {{"service.name", options.service}, {"telemetry.sdk.name", "weir"}};
  made.every = options.every;
  made.max_waiting = options.max_waiting;
  return made;
}

// Differs from process to process, and from one Tracing to the next.
std::uint64_t drawn_seed(const void* of) {
  return hash::siphash(hash::process_key(), reinterpret_cast<std::uintptr_t>(of));
}

}  // namespace

// The ids, and where spans go. Threading: any.
class CallSpans {
 public:
  CallSpans(asio::io_context& io, const TracingOptions& options)
      : ids(options.seed != 0 ? options.seed : drawn_seed(this), options.sampled),
        exporter(std::make_shared<SpanExporter>(io, export_options(options))) {}

  // `end.latency` is the span's length, so nothing is kept between a call's begin and its end.
  void record(Span::Kind kind, std::string_view method, const TraceContext& at, const TraceContext* parent,
              const CallEnd& end, std::string peer) const {
    if (!at.sampled()) return;
    Span span;
    span.at = at;
    if (parent != nullptr) span.parent = parent->span_id;
    span.kind = kind;
    span.name = method;
    span.end = std::chrono::system_clock::now().time_since_epoch();
    span.begin = span.end - end.latency;
    span.attributes = {{"rpc.system", "weir"}, {"rpc.method", std::string(method)}};
    if (!peer.empty()) span.attributes.push_back({"network.peer.address", std::move(peer)});
    if (end.error != nullptr) {
      span.attributes.push_back({"error.type", std::string(name_of(end.error->code))});
      span.error = end.error->what.empty() ? std::string(name_of(end.error->code)) : end.error->what;
    }
    exporter->record(std::move(span));
  }

  TraceIds ids;
  const std::shared_ptr<SpanExporter> exporter;
};

namespace {

class ServerSpans final : public ServerInterceptor {
 public:
  explicit ServerSpans(std::shared_ptr<CallSpans> spans) : spans_(std::move(spans)) {}
  Result<void> before(Context& call) override {
    call.continue_trace(spans_->ids.next(call.trace() ? &*call.trace() : nullptr));
    return {};
  }
  void after(Context& call, const CallEnd& end) override {
    const auto& parent = call.callers_trace();
    spans_->record(Span::Kind::server, call.method(), *call.trace(), parent ? &*parent : nullptr, end,
                   call.peer());
  }

 private:
  const std::shared_ptr<CallSpans> spans_;
};

class ClientSpans final : public ClientInterceptor {
 public:
  explicit ClientSpans(std::shared_ptr<CallSpans> spans) : spans_(std::move(spans)) {}
  Result<void> before(OutgoingCall& call) override {
    call.trace = spans_->ids.next(call.trace ? &*call.trace : call.options.trace);
    return {};
  }
  void after(std::string_view method, const CallEnd& end) override {
    if (end.trace != nullptr)
      spans_->record(Span::Kind::client, method, *end.trace, end.parent_trace, end, {});
  }

 private:
  const std::shared_ptr<CallSpans> spans_;
};

}  // namespace

Tracing::Tracing(asio::io_context& io, const TracingOptions& options)
    : spans_(std::make_shared<CallSpans>(io, options)) {
  spans_->exporter->start();
}
Tracing::~Tracing() { spans_->exporter->stop(); }

std::shared_ptr<ServerInterceptor> Tracing::server() const { return std::make_shared<ServerSpans>(spans_); }
std::shared_ptr<ClientInterceptor> Tracing::client() const { return std::make_shared<ClientSpans>(spans_); }
asio::awaitable<bool> Tracing::flush() { return spans_->exporter->flush(); }
ExportStats Tracing::stats() const { return spans_->exporter->stats(); }

}  // namespace weir::rpc
