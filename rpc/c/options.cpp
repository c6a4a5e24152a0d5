// Settings by name, and the engine for RDMA addresses.
#include "rpc/c/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include "rdma/library_provider.hpp"
#include "rpc/address.hpp"

namespace weir::rpc::c {

namespace {

using Numbers = void (*)(weir_rpc_options&, std::uint64_t);
using Texts = std::string& (*)(weir_rpc_options&);

struct Setting {
  std::string_view name;
  std::uint64_t most = 0;
  Numbers number = nullptr;
  Texts text = nullptr;
};

void both(weir_rpc_options& options, const auto& change) {
  change(options.connect.transport.tls);
  change(options.serve.transport.tls);
}

constexpr std::uint64_t most32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t most_ms = 1'000'000'000'000;

rpc::HttpOptions& http_of(weir_rpc_options& options) {
  if (!options.serve.http) options.serve.http = rpc::HttpOptions();
  return *options.serve.http;
}

// "a,b,c"; without words none.
std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (end > 0) words.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

// A number of both ends' rdma::ChannelSettings.
template <auto Member>
void set_rdma(weir_rpc_options& options, std::uint64_t value) {
  using Number = std::remove_reference_t<decltype(options.connect.transport.rdma_channel.*Member)>;
  for (rdma::ChannelSettings* each :
       {&options.connect.transport.rdma_channel, &options.serve.transport.rdma_channel})
    each->*Member = static_cast<Number>(value);
}

template <class Options>
std::array<rpc::FrameLimits*, 4> frame_limits_of(Options& o) {
  return {&o.connect.limits.frame, &o.connect.limits.request, &o.serve.limits.frame, &o.serve.limits.reply};
}

const Setting settings[] = {
    {"timeout_ms", most_ms,
     [](auto& o, std::uint64_t ms) { o.connect.limits.timeout = std::chrono::milliseconds(ms); }},
    {"connect_timeout_ms", most_ms,
     [](auto& o, std::uint64_t ms) { o.connect.connect_timeout = std::chrono::milliseconds(ms); }},
    {"keepalive_ms", most_ms,
     [](auto& o, std::uint64_t ms) { o.connect.limits.keepalive = std::chrono::milliseconds(ms); }},
    {"max_in_flight", 1 << 24,
     [](auto& o, std::uint64_t calls) {
       o.connect.limits.max_in_flight = static_cast<std::uint32_t>(calls);
       o.serve.limits.max_in_flight = static_cast<std::uint32_t>(calls);
     }},
    {"body_bytes", most32,
     [](auto& o, std::uint64_t bytes) {
       for (rpc::FrameLimits* each : frame_limits_of(o)) each->body_bytes = static_cast<std::uint32_t>(bytes);
     }},
    {"attachment_bytes", most32,
     [](auto& o, std::uint64_t bytes) {
       for (rpc::FrameLimits* each : frame_limits_of(o))
         each->attachment_bytes = static_cast<std::uint32_t>(bytes);
     }},
    {"compress_from_bytes", most32,
     [](auto& o, std::uint64_t bytes) {
       o.connect.compression.from_bytes = static_cast<std::uint32_t>(bytes);
       o.serve.compression.from_bytes = static_cast<std::uint32_t>(bytes);
     }},
    {"exceptions_to_callers", 1,
     [](auto& o, std::uint64_t yes) { o.serve.exceptions_to_callers = yes != 0; }},
    {"compression", 0, nullptr, [](auto& o) -> std::string& { return o.compression; }},
    {"token", 0, nullptr, [](auto& o) -> std::string& { return o.token; }},
    {"tls.certificate", 0, nullptr,
     [](auto& o) -> std::string& { return o.connect.transport.tls.certificate_file; }},
    {"tls.key", 0, nullptr, [](auto& o) -> std::string& { return o.connect.transport.tls.key_file; }},
    {"tls.authority", 0, nullptr,
     [](auto& o) -> std::string& { return o.connect.transport.tls.authority_file; }},
    {"tls.server_name", 0, nullptr,
     [](auto& o) -> std::string& { return o.connect.transport.tls.server_name; }},
    {"tls.check_certificate", 1,
     [](auto& o, std::uint64_t yes) { both(o, [&](TlsOptions& tls) { tls.check_certificate = yes != 0; }); }},
    {"rdma.provider", 0, nullptr, [](auto& o) -> std::string& { return o.provider_name; }},
    {"rdma.block_bytes", most32, set_rdma<&rdma::ChannelSettings::block_bytes>},
    {"rdma.receive_blocks", 4096, set_rdma<&rdma::ChannelSettings::receive_blocks>},
    {"rdma.send_blocks", 4096, set_rdma<&rdma::ChannelSettings::send_blocks>},
    {"rdma.held_bytes", most32, set_rdma<&rdma::ChannelSettings::held_bytes>},
    {"rdma.inline_bytes", 65535, set_rdma<&rdma::ChannelSettings::inline_bytes>},
    {"rdma.shared_receives", 1, set_rdma<&rdma::ChannelSettings::shared_receives>},
    {"rdma.ack_timeout_ms", most_ms, set_rdma<&rdma::ChannelSettings::ack_timeout>},
    {"rdma.keepalive_ms", most_ms, set_rdma<&rdma::ChannelSettings::keepalive>},
    {"http", 1,
     [](auto& o, std::uint64_t yes) {
       o.serve.http = yes != 0 ? std::optional(rpc::HttpOptions()) : std::nullopt;
     }},
    {"http.timeout_ms", most_ms,
     [](auto& o, std::uint64_t ms) { http_of(o).timeout = std::chrono::milliseconds(ms); }},
    {"http.body_bytes", most32,
     [](auto& o, std::uint64_t bytes) { http_of(o).max_body_bytes = static_cast<std::uint32_t>(bytes); }},
    {"http.reply_bytes", most32,
     [](auto& o, std::uint64_t bytes) { http_of(o).max_reply_bytes = static_cast<std::uint32_t>(bytes); }},
    {"http.origins", 0, nullptr, [](auto& o) -> std::string& { return o.http_origins; }},
    {"http.hosts", 0, nullptr, [](auto& o) -> std::string& { return o.http_hosts; }},
    {"rdma.library_dir", 0, nullptr, [](auto& o) -> std::string& { return o.provider.library_dir; }},
};

constexpr Compression compressions[] = {Compression::none, Compression::lz4, Compression::zstd};

Result<void> set(weir_rpc_options& options, std::string_view name, std::string_view value) {
  const auto* row = std::ranges::find(settings, name, &Setting::name);
  if (row == std::end(settings))
    return fail(Errc::bad_setting,
                "there is no setting '" + std::string(name) + "': weir_rpc.h lists those there are");
  if (row->text != nullptr) {
    if (name == "rdma.provider" && !rdma::parse_provider_choice(value))
      return fail(Errc::bad_setting, rdma::parse_provider_choice(value).error().what);
    if (name == "compression") {
      const auto one = std::ranges::find(compressions, value, [](Compression c) { return name_of(c); });
      if (one == std::end(compressions))
        return fail(Errc::bad_setting, "compression is lz4, zstd or none, not '" + std::string(value) + "'");
      options.connect.compression.with = options.serve.compression.with = *one;
    }
    row->text(options) = value;
    if (name == "http.origins") http_of(options).origins = words_of(value);
    if (name == "http.hosts") http_of(options).hosts = words_of(value);
    options.serve.transport.tls = options.connect.transport.tls;
    return {};
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number > row->most)
    return fail(Errc::bad_setting, std::string(name) + " takes a number from 0 to " +
                                       std::to_string(row->most) + ", not '" + std::string(value) + "'");
  row->number(options, number);
  return {};
}

}  // namespace

int report(weir_rpc_error* to, const Error& error) {
  if (to != nullptr) {
    to->code = static_cast<std::int32_t>(error.code);
    const std::size_t length = std::min(error.what.size(), sizeof to->message - 1);
    std::memcpy(to->message, error.what.data(), length);
    to->message[length] = 0;
  }
  return static_cast<int>(error.code);
}

Result<rdma::Engine*> engine_for(asio::io_context& io, std::string_view address,
                                 const weir_rpc_options& options) {
  const auto parsed = parse_address(address);
  if (!parsed || (parsed->scheme != Scheme::rdma && parsed->scheme != Scheme::rdma_tls)) return nullptr;
  const auto loaded = rdma::load_provider_beside(reinterpret_cast<const void*>(&weir_rpc_version),
                                                 options.provider_name, options.provider.library_dir);
  if (!loaded) return fail(Errc::rdma, loaded.error().what);
  const auto engine = rdma::Engine::open(io, *loaded);
  if (!engine) return fail(Errc::rdma, engine.error().what);
  return *engine;
}

}  // namespace weir::rpc::c

using namespace weir::rpc;

extern "C" {

weir_rpc_options* weir_rpc_options_new() { return new weir_rpc_options; }

void weir_rpc_options_free(weir_rpc_options* options) { delete options; }

int weir_rpc_options_set(weir_rpc_options* options, const char* name, const char* value,
                         weir_rpc_error* error) {
  if (options == nullptr || name == nullptr || value == nullptr)
    return c::report(error, {Errc::bad_setting, "options, name and value may not be NULL"});
  const auto done = c::set(*options, name, value);
  return done ? 0 : c::report(error, done.error());
}

}  // extern "C"
