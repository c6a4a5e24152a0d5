#include "rpc/json/json_values.hpp"

#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "hash/keyed.hpp"
#include "rpc/codec/msgpack.hpp"

namespace weir::rpc::json {

namespace {

// Marks a binary value that is MessagePack already.
constexpr Json::binary_t::subtype_type packed_already = 1;

// Keys that a map may be nested in. Text of a key within a key is quoted twice, and each quoting doubles its
// backslashes: thirty maps, each the key of the next, would take gigabytes.
constexpr int most_keys_around = 2;

void write(Bytes& out, const Json& value) {
  MsgpackWriter to(out);
  switch (value.type()) {
    case Json::value_t::boolean:
      return to.boolean(value.get<bool>());
    case Json::value_t::number_integer:
      return to.signed_integer(value.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return to.unsigned_integer(value.get<std::uint64_t>());
    case Json::value_t::number_float:
      return to.real64(value.get<double>());
    case Json::value_t::string:
      return to.text(value.get_ref<const std::string&>());
    case Json::value_t::binary: {
      const auto bytes = std::as_bytes(std::span(value.get_binary()));
      return value.get_binary().has_subtype() ? out.append(bytes) : to.binary(bytes);
    }
    case Json::value_t::array:
      to.array(value.size());
      for (const Json& element : value) write(out, element);
      return;
    case Json::value_t::object:
      to.map(value.size());
      for (const auto& [key, mapped] : value.items()) {
        to.text(key);
        write(out, mapped);
      }
      return;
    default:
      return to.nil();
  }
}

// `keys_around`: the number of map keys that contain the value.
std::optional<Json> read(MsgpackReader& from, int keys_around);

std::optional<Json> read_array(MsgpackReader& from, int keys_around) {
  std::size_t elements = 0;
  if (!from.array(elements)) return std::nullopt;
  Json array = Json::array();
  for (std::size_t i = 0; i < elements; ++i) {
    auto element = read(from, keys_around);
    if (!element) return std::nullopt;
    array.push_back(std::move(*element));
  }
  return array;
}

std::optional<Json> read_map(MsgpackReader& from, int keys_around) {
  std::size_t pairs = 0;
  if (keys_around > most_keys_around || !from.map(pairs)) return std::nullopt;
  Json map = Json::object();
  auto& members = map.get_ref<Json::object_t&>();  // its own search begins at the front for each key
  std::unordered_map<std::string, std::size_t, hash::Keyed> place_of;  // the last one of equal keys counts
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto key = read(from, keys_around + 1);
    if (!key || key->is_binary()) return std::nullopt;
    auto mapped = read(from, keys_around);
    if (!mapped) return std::nullopt;
    std::string name = key->is_string() ? key->get<std::string>()
                                        : key->dump(-1, ' ', false, Json::error_handler_t::replace);
    const auto [known, is_new] = place_of.try_emplace(std::move(name), members.size());
    if (is_new)
      members.emplace_back(known->first, std::move(*mapped));
    else
      std::next(members.begin(), static_cast<std::ptrdiff_t>(known->second))->second = std::move(*mapped);
  }
  return map;
}

std::optional<Json> read_integer(MsgpackReader& from) {
  MsgpackReader again = from;
  std::uint64_t positive = 0;
  if (again.unsigned_integer(positive)) {
    from = again;
    return Json(positive);
  }
  std::int64_t number = 0;
  return from.signed_integer(number) ? std::optional<Json>(number) : std::nullopt;
}

std::optional<Json> read(MsgpackReader& from, int keys_around) {
  bool boolean = false;
  double real = 0;
  std::string_view text;
  std::span<const std::byte> bytes;
  switch (from.peek()) {
    case MsgpackType::nil:
      return from.take_nil() ? std::optional<Json>(nullptr) : std::nullopt;
    case MsgpackType::boolean:
      return from.boolean(boolean) ? std::optional<Json>(boolean) : std::nullopt;
    case MsgpackType::integer:
      return read_integer(from);
    case MsgpackType::real:
      return from.real(real) ? std::optional<Json>(real) : std::nullopt;
    case MsgpackType::text:
      return from.text(text) ? std::optional<Json>(text) : std::nullopt;
    case MsgpackType::binary: {
      if (!from.binary(bytes)) return std::nullopt;
      const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
      return Json::binary(std::vector(first, first + bytes.size()));
    }
    case MsgpackType::array:
      return read_array(from, keys_around);
    case MsgpackType::map:
      return read_map(from, keys_around);
    default:
      return std::nullopt;
  }
}

}  // namespace

namespace {

// Builds a value from what the parser reports, as Json::parse() does with a callback, which however looks at
// all elements of an array for each object in it, and at all members of an object for each key.
class Builder {
 public:
  explicit Builder(int deepest) : deepest_(static_cast<std::size_t>(deepest)) {}
  Json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t& value) { return add(std::move(value)); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    auto& members = open_.back().value->get_ref<Json::object_t&>();
    const auto [known, is_new] = open_.back().place_of.try_emplace(name, members.size());
    if (is_new) members.emplace_back(name, Json());
    member_ = &std::next(members.begin(), static_cast<std::ptrdiff_t>(known->second))->second;
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception& error) {
    throw error;
  }

 private:
  // Its value stays where it is while it is open: nothing is added to what is around it.
  struct Open {
    Json* value;
    std::unordered_map<std::string, std::size_t, hash::Keyed> place_of;  // of an object's keys
  };

  Json* place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json& around = *open_.back().value;
    if (around.is_object()) return &(*member_ = std::move(value));
    return &around.get_ref<Json::array_t&>().emplace_back(std::move(value));
  }
  bool add(Json value) { return place(std::move(value)) != nullptr; }
  bool open(Json value) {
    if (open_.size() >= deepest_) throw TooDeep();
    open_.push_back({place(std::move(value)), {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::size_t deepest_;
  Json root_;
  std::vector<Open> open_;
  Json* member_ = nullptr;  // of the object that is open, for the key that came last
};

}  // namespace

Json parse_no_deeper(std::string_view text, int deepest) {
  Builder builder(deepest);
  Json::sax_parse(text, &builder);
  return builder.take();
}

std::vector<std::byte> pack(const Json& value) {
  Bytes out;
  write(out, value);
  return {out.span().begin(), out.span().end()};
}

std::optional<Json> with_keys_of_json(const Json& map) {
  Bytes out;
  MsgpackWriter(out).map(map.size());
  for (const auto& [text, mapped] : map.items()) {
    try {
      write(out, parse_no_deeper(text, MsgpackReader::deepest));
    } catch (const Json::exception&) {
      return std::nullopt;
    } catch (const TooDeep&) {
      return std::nullopt;
    }
    write(out, mapped);
  }
  const auto* first = reinterpret_cast<const std::uint8_t*>(out.data());
  return Json::binary(std::vector(first, first + out.size()), packed_already);
}

std::optional<Json> unpack(std::span<const std::byte> body) {
  MsgpackReader from(body);
  auto value = read(from, 0);
  return value && !from.failed() && from.at_end() ? std::move(value) : std::nullopt;
}

}  // namespace weir::rpc::json
