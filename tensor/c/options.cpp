#include "tensor/c/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "rdma/library_provider.hpp"
#include "tensor/address.hpp"

namespace weir::tensor::c {
namespace {

struct TextRow {
  std::string_view name;
  std::string& (*at)(weir_tensor_options&);
};
constexpr TextRow texts[] = {
    {"rdma.library_dir", [](auto& o) -> std::string& { return o.library_dir; }},
    {"push_names", [](auto& o) -> std::string& { return o.hub.push.names; }},
    {"push_from", [](auto& o) -> std::string& { return o.hub.push.from; }},
};
// Of both, whichever the options are used for.
void set_token(weir_tensor_options& options, std::string_view token) {
  options.hub.access.token = options.peer.token = token;
}

// Of both, too; TLS's files.
struct TlsRow {
  std::string_view name;
  std::string TlsSettings::* at;
};
constexpr TlsRow tls_rows[] = {{"tls.certificate", &TlsSettings::certificate},
                               {"tls.key", &TlsSettings::key},
                               {"tls.authority", &TlsSettings::authority},
                               {"tls.server_name", &TlsSettings::server_name}};

struct Row {
  std::string_view name;
  void (*set)(weir_tensor_options&, std::uint64_t);
  std::uint64_t most;
};
constexpr std::uint64_t most_32 = 0xffffffff, most_64 = std::uint64_t{1} << 62;
constexpr Row rows[] = {
    {"keep", [](auto& o, auto n) { o.hub.keep = static_cast<std::uint32_t>(n); }, most_32},
    {"max_connections", [](auto& o, auto n) { o.hub.max_connections = static_cast<std::uint32_t>(n); },
     65536},
    {"open", [](auto& o, auto n) { o.hub.access.open = n != 0; }, 1},
    {"push_bytes", [](auto& o, auto n) { o.hub.push.bytes = n; }, most_64},
    {"push_bytes_per_peer", [](auto& o, auto n) { o.hub.push.bytes_per_peer = n; }, most_64},
    {"max_bytes", [](auto& o, auto n) { o.peer.limits.max_bytes = n; }, most_64},
    {"read_from_bytes", [](auto& o, auto n) { o.peer.limits.read_from_bytes = n; }, most_64},
    {"spare_bytes", [](auto& o, auto n) { o.peer.spare_bytes = n; }, most_64},
    {"connect_timeout_ms", [](auto& o, auto n) { o.peer.connect_timeout = std::chrono::milliseconds(n); },
     86'400'000},
};

}  // namespace

int report(weir_tensor_error* to, const Error& error) {
  if (to != nullptr) {
    to->generation = error.generation;
    to->code = static_cast<std::int32_t>(error.code);
    const std::size_t length = std::min(error.what.size(), sizeof to->message - 1);
    std::memcpy(to->message, error.what.data(), length);
    to->message[length] = 0;
  }
  return static_cast<int>(error.code);
}

Result<void> set(weir_tensor_options& options, std::string_view name, std::string_view value) {
  if (const TextRow* text = std::ranges::find(texts, name, &TextRow::name); text != std::end(texts))
    return text->at(options) = value, Result<void>();
  if (name == "token") return set_token(options, value), Result<void>();
  if (const TlsRow* row = std::ranges::find(tls_rows, name, &TlsRow::name); row != std::end(tls_rows))
    return options.hub.tls.*row->at = options.peer.tls.*row->at = value, Result<void>();
  if (name == "rdma.provider") {
    if (const auto choice = rdma::parse_provider_choice(value); !choice)
      return fail(Errc::bad_address, choice.error().what);
    return options.provider_name = value, Result<void>();
  }
  const Row* row = std::ranges::find(rows, name, &Row::name);
  if (row == std::end(rows))
    return fail(Errc::bad_address, "there is no setting '" + std::string(name) + "'");
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (failed != std::errc() || end != value.data() + value.size() || number > row->most)
    return fail(Errc::bad_address, std::string(name) + " takes a number from 0 to " +
                                       std::to_string(row->most) + ", not '" + std::string(value) + "'");
  row->set(options, number);
  return {};
}

Result<std::vector<TensorView>> views_of(const weir_tensor_array* arrays, std::size_t count, int as_tree) {
  if (arrays == nullptr && count > 0) return fail(Errc::bad_array, "arrays are needed");
  if (as_tree == 0 && count != 1)
    return fail(Errc::bad_array, "without as_tree there must be exactly one array");
  std::vector<TensorView> views;
  views.reserve(count);
  for (const weir_tensor_array& each : std::span(arrays, count)) {
    if (each.dimensions > most_dimensions || (each.dimensions > 0 && each.shape == nullptr))
      return fail(Errc::bad_array, "an array needs a shape of at most 64 dimensions");
    if (each.name_size > 0 && each.name == nullptr) return fail(Errc::bad_array, "a name is missing");
    views.push_back({.name = each.name_size > 0 ? std::string(each.name, each.name_size) : std::string(),
                     .dtype = {each.kind, each.bits, each.lanes},
                     .shape = {each.shape, each.shape + each.dimensions},
                     .data = each.data});
  }
  return views;
}

rdma::Result<rdma::Provider> provider_for(const weir_tensor_options& options, std::string_view address) {
  if (!names_rdma(address)) return rdma::fail(rdma::Errc::no_device, "the address does not ask for RDMA");
  return rdma::load_provider_beside(reinterpret_cast<const void*>(&weir_tensor_version),
                                    options.provider_name, options.library_dir);
}

}  // namespace weir::tensor::c

using namespace weir::tensor;

extern "C" {

weir_tensor_options* weir_tensor_options_new() { return new (std::nothrow) weir_tensor_options; }
void weir_tensor_options_free(weir_tensor_options* options) { delete options; }

int weir_tensor_options_set(weir_tensor_options* options, const char* name, const char* value,
                            weir_tensor_error* error) {
  return c::guarded(error, [&]() -> Result<void> {
    if (options == nullptr || name == nullptr || value == nullptr)
      return fail(Errc::bad_address, "options, name and value are needed");
    return c::set(*options, name, value);
  });
}

// name_of() returns literals, which are zero-terminated.
const char* weir_tensor_code_name(int code) { return name_of(static_cast<Errc>(code)).data(); }
const char* weir_tensor_next_step(int code) { return next_step(static_cast<Errc>(code)).data(); }
const char* weir_tensor_version() { return WEIR_VERSION; }

}  // extern "C"
