#include "cli/weir/telemetry/receiver.hpp"

#include <dial_out.grpc.pb.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <charconv>
#include <cmath>
#include <string>
#include <vector>

namespace weir::command {
namespace {

using namespace std::chrono_literals;

// gRPC uses a thread for each stream; peers beyond this many wait.
constexpr int most_threads = 256;
constexpr int most_message_bytes = 16 << 20;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else
      out += c;
  }
  return out + "\"";
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";  // JSON has no other word for it
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), value).ptr};
}

std::string json_of(const gnmi::TypedValue& value) {
  switch (value.value_case()) {
    case gnmi::TypedValue::kJsonIetfVal:
      return value.json_ietf_val();
    case gnmi::TypedValue::kJsonVal:
      return value.json_val();
    case gnmi::TypedValue::kStringVal:
      return quoted(value.string_val());
    case gnmi::TypedValue::kAsciiVal:
      return quoted(value.ascii_val());
    case gnmi::TypedValue::kIntVal:
      return std::to_string(value.int_val());
    case gnmi::TypedValue::kUintVal:
      return std::to_string(value.uint_val());
    case gnmi::TypedValue::kBoolVal:
      return value.bool_val() ? "true" : "false";
    case gnmi::TypedValue::kFloatVal:
      return number(value.float_val());
    case gnmi::TypedValue::kDoubleVal:
      return number(value.double_val());
    case gnmi::TypedValue::VALUE_NOT_SET:
      break;
  }
  return "null";
}

std::string text_of(const gnmi::Path& path) {
  std::string text;
  for (const auto& elem : path.elem()) text += (text.empty() ? "" : "/") + elem.name();
  return text;
}

// The device that a notification is about: the key that publisher.cpp writes, or the peer's address if a
// switch streams for itself.
std::string device_of(const gnmi::Notification& notification, const std::string& peer) {
  for (const auto& elem : notification.prefix().elem())
    if (const auto name = elem.key().find("name"); elem.name() == "device" && name != elem.key().end())
      return name->second;
  return peer;
}

}  // namespace

class Receiver::Service final : public gnmi::sonic::gNMIDialOut::Service {
 public:
  Service(void* self, Receive receive) : self_(self), receive_(receive) {}

  grpc::Status Publish(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<gnmi::sonic::PublishResponse, gnmi::SubscribeResponse>* stream) override {
    const auto sender = context->client_metadata().find("weir-sender");
    const std::string name = sender == context->client_metadata().end()
                                 ? std::string()
                                 : std::string(sender->second.data(), sender->second.size());
    gnmi::SubscribeResponse message;
    while (stream->Read(&message)) {
      if (!message.has_update()) continue;
      if (!forward(message.update(), name, context->peer()))
        return {grpc::StatusCode::RESOURCE_EXHAUSTED, "the collector cannot write"};
      gnmi::sonic::PublishResponse acknowledgement;
      acknowledgement.set_timestamp(message.update().timestamp());
      if (!stream->Write(acknowledgement)) break;
    }
    return grpc::Status::OK;
  }

 private:
  bool forward(const gnmi::Notification& notification, const std::string& sender, const std::string& peer) {
    std::vector<std::string> texts;
    for (const auto& update : notification.update()) {
      texts.push_back(text_of(update.path()));
      texts.push_back(json_of(update.val()));
    }
    std::vector<TelemetryValue> values;
    for (std::size_t i = 0; i < texts.size(); i += 2)
      values.push_back({texts[i].c_str(), texts[i + 1].c_str()});
    const std::string device = device_of(notification, peer);
    const TelemetryNotification given{sender.c_str(), notification.timestamp(), device.c_str(), values.data(),
                                      values.size()};
    return receive_(self_, &given);
  }

  void* self_;
  Receive receive_;
};

struct Receiver::Parts {
  Service service;
  std::unique_ptr<grpc::Server> server;
};

Receiver::Receiver(void* self, Receive receive) : parts_(new Parts{Service(self, receive), nullptr}) {}

Receiver::~Receiver() {
  if (parts_->server) parts_->server->Shutdown(std::chrono::system_clock::now() + 1s);
}

std::string Receiver::listen(const std::string& address) {
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(most_threads);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(most_message_bytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // two collectors on one port would each get half
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&parts_->service);
  gpr_set_log_function([](gpr_log_func_args*) {});  // the caller reports the error in one line
  parts_->server = builder.BuildAndStart();
  gpr_set_log_function(nullptr);
  if (!parts_->server || port == 0) return {};
  return address.substr(0, address.rfind(':')) + ":" + std::to_string(port);
}

}  // namespace weir::command
