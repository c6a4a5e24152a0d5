#include "nccl/plugin.hpp"

#include <dlfcn.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "nccl/log.hpp"
#include "nccl/receiver.hpp"
#include "nccl/sender.hpp"
#include "rdma/provider.hpp"

namespace weir::nccl {
namespace {

using rdma::Result;
using Clock = Connection::Clock;

// A device as NCCL sees it: a real device, or one of several views of it.
struct LogicalDevice {
  FoundDevice found;
  std::string name;
  DeviceShape shape;
  std::uint64_t guid = 0;
  std::shared_ptr<DeviceSwitch> dead = std::make_shared<DeviceSwitch>();
  std::weak_ptr<Nic>* nic = nullptr;  // shared by the views of one device
};

struct Process {
  std::mutex mutex;
  bool ready = false;
  Settings settings;
  std::list<std::weak_ptr<Nic>> nics;
  std::vector<LogicalDevice> devices;
  std::size_t communicators = 0;
  std::uint64_t connections = 0;  // number ever made
  std::uint64_t self = 0;         // tells our attempts from those of a process that copied a handle
  std::uint64_t last_attempt = 0;
  std::map<std::uint64_t, std::unique_ptr<Sender>> attempts;
  // Closed, but a stopped peer process is inside an operation on their queue pairs.
  std::list<std::unique_ptr<Connection>> leaving;

  // Leaks them: the libraries that their destructors call may already be gone at exit.
  ~Process() {
    for (auto& [number, sender] : attempts) static_cast<void>(sender.release());
    for (auto& connection : leaving) static_cast<void>(connection.release());
  }
  void reap() {
    std::erase_if(leaving, [](const auto& connection) { return !connection->busy(); });
  }
};

Process& process() {
  static Process process;
  return process;
}

Status complain(Status status, const std::string& what) {
  log_warning(what);
  return status;
}

Status status_of(const rdma::Error& error) {
  if (error.code == rdma::Errc::refused || error.code == rdma::Errc::unreachable) return Status::remote_error;
  if (error.code == rdma::Errc::bad_setting) return Status::invalid_usage;
  return Status::system_error;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<std::uint64_t>(getpid());
  return number;
}

// Weir's libraries are next to the plugin: in verbs/ in a build tree, in weir/ when installed. Empty if not
// found.
std::string library_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&library_directory), &info) == 0 || info.dli_fname == nullptr)
    return {};
  std::error_code failed;
  const std::filesystem::path here = std::filesystem::canonical(info.dli_fname, failed).parent_path();
  for (const char* name : {"verbs", "weir"})
    if (std::filesystem::exists(here / name / "libibverbs.so.1", failed)) return (here / name).string();
  return {};
}

Result<rdma::Provider> load_nic() {
  const auto variable = [](const char* name) {
    const char* value = secure_getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const Result<rdma::ProviderChoice> choice = rdma::parse_provider_choice(variable("WEIR_RDMA_PROVIDER"));
  if (!choice) return std::unexpected(choice.error());
  rdma::ProviderOptions options;
  options.choice = *choice;
  options.library_dir = library_directory();
  options.library_path = variable("LD_LIBRARY_PATH");
  return rdma::load_provider(options);
}

// The devices that NCCL will see: the real ones, or as many views of them as the settings ask for.
std::vector<LogicalDevice> views(Process& state, const std::vector<FoundDevice>& found) {
  std::vector<std::weak_ptr<Nic>*> nics;
  for (std::size_t i = 0; i < found.size(); ++i) nics.push_back(&state.nics.emplace_back());
  const std::size_t count = state.settings.devices.empty() ? found.size() : state.settings.devices.size();
  std::vector<LogicalDevice> devices(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t of = i % found.size();
    LogicalDevice& device = devices[i];
    device.found = found[of];
    device.nic = nics[of];
    if (!state.settings.devices.empty()) device.shape = state.settings.devices[i];
    // NCCL takes devices with equal guids for ports of one NIC, so each round of views gets its own.
    device.guid = found[of].guid + i / found.size();
    device.name = found[of].name + (i < found.size() ? "" : "." + std::to_string(i / found.size()));
  }
  return devices;
}

std::string describe(const Process& state, const rdma::Provider& provider, int version) {
  std::string line = "using " + provider.describe() + "; interface version " + std::to_string(version) +
                     ", " + std::to_string(state.devices.size()) + " device(s):";
  for (const LogicalDevice& device : state.devices)
    line += " " + device.name + " " +
            std::to_string(device.shape.speed_mbps.value_or(device.found.speed_mbps)) + " Mbit/s at " +
            device.found.address.address().to_string();
  if (state.settings.faults.any()) line += "; makes failures on purpose: " + state.settings.faults_text;
  return line;
}

Result<void> find(Process& state, int version) {
  Result<Settings> settings = read_settings([](const char* name) { return secure_getenv(name); });
  if (!settings) return std::unexpected(settings.error());
  state.settings = std::move(*settings);
  if (state.settings.help) log_info(help_text());
  Result<rdma::Provider> provider = load_nic();
  if (!provider) return std::unexpected(provider.error());
  Result<std::vector<FoundDevice>> found =
      find_devices(state.settings, provider->kind() == rdma::Provider::Kind::weir);
  if (!found) return std::unexpected(found.error());
  state.devices = views(state, *found);
  state.self = random_number();
  log_info(describe(state, *provider, version));
  return {};
}

LogicalDevice* device_at(Process& state, int index) {
  if (index < 0 || static_cast<std::size_t>(index) >= state.devices.size()) return nullptr;
  return &state.devices[static_cast<std::size_t>(index)];
}

// The caller holds the process's lock.
Result<std::shared_ptr<Nic>> nic_of(LogicalDevice& device) {
  if (std::shared_ptr<Nic> open = device.nic->lock()) return open;
  Result<std::shared_ptr<Nic>> nic = Nic::open(device.found);
  if (nic) *device.nic = *nic;
  return nic;
}

bool is_dead(const Process& state, const LogicalDevice& device, int index) {
  const Faults& faults = state.settings.faults;
  return faults.dead_device == index && device.dead->operations.load() >= faults.dead_after;
}

FaultDice dice_for(Process& state, const LogicalDevice& device, int index) {
  return {state.settings.faults, ++state.connections, index, device.dead};
}

Status no_device(int index) {
  return complain(Status::internal_error, "there is no device " + std::to_string(index));
}
Status dead_device(const LogicalDevice& device) {
  return complain(Status::system_error, device.name + ": WEIR_NCCL_FAULTS killed the device");
}

void close(Connection* connection) {
  std::unique_ptr<Connection> closed(connection);
  closed->hang_up();
  Process& state = process();
  const std::lock_guard lock(state.mutex);
  state.reap();
  if (closed->busy()) state.leaving.push_back(std::move(closed));
}

}  // namespace

Status init(LogFunction log, int version) {
  set_log_function(log);
  Process& state = process();
  const std::lock_guard lock(state.mutex);
  if (state.ready) return Status::success;
  if (Result<void> found = find(state, version); !found)
    return complain(status_of(found.error()), "not used: " + found.error().what);
  state.ready = true;
  return Status::success;
}

Communicator* open_communicator(int traffic_class) {
  Process& state = process();
  const std::lock_guard lock(state.mutex);
  ++state.communicators;
  return new Communicator{traffic_class};
}

Status finalize(Communicator* communicator) {
  Process& state = process();
  std::map<std::uint64_t, std::unique_ptr<Sender>> abandoned;  // destroyed outside the lock
  const std::lock_guard lock(state.mutex);
  delete communicator;
  state.reap();
  if (--state.communicators == 0) abandoned.swap(state.attempts);
  return Status::success;
}

Status devices(int* count) {
  Process& state = process();
  const std::lock_guard lock(state.mutex);
  *count = static_cast<int>(state.devices.size());
  return Status::success;
}

Status properties(int index, DeviceProperties& properties) {
  Process& state = process();
  const std::lock_guard lock(state.mutex);
  const LogicalDevice* device = device_at(state, index);
  if (device == nullptr) return no_device(index);
  properties.name = device->name.c_str();
  properties.pci_path = device->shape.pci_path.empty() ? nullptr : device->shape.pci_path.c_str();
  properties.guid = device->guid;
  properties.speed_mbps = device->shape.speed_mbps.value_or(device->found.speed_mbps);
  properties.port = device->found.port;
  properties.max_bytes = std::min<std::size_t>(max_message, device->found.max_message_bytes);
  properties.rail = device->shape.rail;
  properties.plane = device->shape.plane;
  return Status::success;
}

Status listen(int index, void* handle, void** listen_comm) {
  Process& state = process();
  const std::lock_guard lock(state.mutex);
  state.reap();
  LogicalDevice* device = device_at(state, index);
  if (device == nullptr) return no_device(index);
  if (is_dead(state, *device, index)) return dead_device(*device);
  Result<std::shared_ptr<Nic>> nic = nic_of(*device);
  if (!nic) return complain(status_of(nic.error()), nic.error().what);
  Result<std::unique_ptr<Listener>> listener =
      Listener::listen(*nic, random_number(), [&state, device, index] {
        const std::lock_guard hold(state.mutex);
        return dice_for(state, *device, index);
      });
  if (!listener) return complain(status_of(listener.error()), listener.error().what);
  const Handle made = (*listener)->handle();
  std::memcpy(handle, &made, sizeof made);
  *listen_comm = listener->release();
  return Status::success;
}

Status connect(int index, int traffic_class, void* opaque, void** send_comm) {
  *send_comm = nullptr;
  Handle handle;
  std::memcpy(&handle, opaque, sizeof handle);
  Process& state = process();
  const std::lock_guard lock(state.mutex);
  auto attempt = handle.attempter == state.self ? state.attempts.find(handle.attempt) : state.attempts.end();
  const auto fail = [&](const rdma::Error& error) {
    if (attempt != state.attempts.end()) state.attempts.erase(attempt);
    handle.attempt = handle.attempter = 0;
    std::memcpy(opaque, &handle, sizeof handle);
    return complain(status_of(error), "cannot connect: " + error.what);
  };
  if (attempt == state.attempts.end()) {
    state.reap();
    LogicalDevice* device = device_at(state, index);
    if (device == nullptr) return no_device(index);
    if (is_dead(state, *device, index)) return dead_device(*device);
    Result<std::shared_ptr<Nic>> nic = nic_of(*device);
    if (!nic) return fail(nic.error());
    const Sender::Options options{state.settings.ack_timeout, state.settings.connect_timeout, traffic_class,
                                  dice_for(state, *device, index)};
    Result<std::unique_ptr<Sender>> sender = Sender::connect(*nic, handle, options, Clock::now());
    if (!sender) return fail(sender.error());
    attempt = state.attempts.emplace(++state.last_attempt, std::move(*sender)).first;
    handle.attempt = attempt->first;
    handle.attempter = state.self;
  }
  const Result<bool> connected = attempt->second->connected(Clock::now());
  if (!connected) return fail(connected.error());
  if (*connected) {
    *send_comm = static_cast<Connection*>(attempt->second.release());
    state.attempts.erase(attempt);
    handle.attempt = handle.attempter = 0;  // the handle may be used to connect again
  }
  std::memcpy(opaque, &handle, sizeof handle);
  return Status::success;
}

Status accept(void* listen_comm, void** receive_comm) {
  *receive_comm = nullptr;
  Result<std::unique_ptr<Receiver>> receiver = static_cast<Listener*>(listen_comm)->accept(Clock::now());
  if (!receiver) return complain(status_of(receiver.error()), "cannot accept: " + receiver.error().what);
  *receive_comm = static_cast<Connection*>(receiver->release());
  return Status::success;
}

Status close_listen(void* listen_comm) {
  delete static_cast<Listener*>(listen_comm);
  return Status::success;
}
Status close_send(void* send_comm) {
  if (send_comm != nullptr) close(static_cast<Connection*>(send_comm));
  return Status::success;
}
Status close_receive(void* receive_comm) { return close_send(receive_comm); }

Status reg_mr(void* comm, void* data, std::size_t bytes, int type, void** region) {
  *region = nullptr;
  if (type != pointer_host)
    return complain(Status::invalid_usage,
                    "regMr of memory of type " + std::to_string(type) +
                        ": only host memory (1) is supported; NCCL copies GPU memory through it");
  Result<Region*> enrolled = static_cast<Connection*>(comm)->nic().enroll(data, bytes);
  if (!enrolled) return complain(status_of(enrolled.error()), enrolled.error().what);
  *region = *enrolled;
  return Status::success;
}

Status dereg_mr(void*, void* region) {
  if (region != nullptr) Nic::release(static_cast<Region*>(region));
  return Status::success;
}

Status isend(void* send_comm, void* data, std::size_t bytes, int tag, void* region, void** request) {
  *request = nullptr;
  if (region == nullptr) return complain(Status::internal_error, "isend without a registration");
  Request* made = nullptr;
  const Status status = static_cast<Sender*>(static_cast<Connection*>(send_comm))
                            ->isend(data, bytes, tag, *static_cast<Region*>(region), &made);
  *request = made;
  return status;
}

Status irecv(void* receive_comm, std::span<void* const> data, const std::size_t* bytes, const int* tags,
             void* const* regions, void** request) {
  const bool optional = reinterpret_cast<std::uintptr_t>(*request) == optional_completion;
  *request = nullptr;
  if (data.empty() || data.size() > max_group)
    return complain(Status::internal_error, "irecv of a group of " + std::to_string(data.size()) + "; 1 to " +
                                                std::to_string(max_group) + " are supported");
  std::array<Region*, max_group> enrolled{};
  for (std::size_t i = 0; i < data.size(); ++i) enrolled[i] = static_cast<Region*>(regions[i]);
  Request* made = nullptr;
  const Status status = static_cast<Receiver*>(static_cast<Connection*>(receive_comm))
                            ->irecv(data, {bytes, data.size()}, {tags, data.size()},
                                    std::span(enrolled).first(data.size()), optional, &made);
  *request = made;
  return status;
}

// No flush is needed: host memory is coherent once its completion was seen.
Status iflush(void** request) {
  *request = nullptr;
  return Status::success;
}

Status test(void* request, int* done, int* bytes) {
  Request& asked = *static_cast<Request*>(request);
  return asked.owner->test(asked, done, bytes);
}

}  // namespace weir::nccl
