#include "rpc/json/json_body.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "rpc/codec/codec.hpp"
#include "rpc/json/json_values.hpp"

namespace weir::rpc::json {

namespace {

// The part of a text that a message shows: at most one line, around the place.
std::string excerpt(std::string_view text, std::size_t at) {
  constexpr std::size_t most = 60;
  const std::size_t from =
      text.size() <= most ? 0 : std::min(at - std::min(at, most / 2), text.size() - most);
  std::string shown(text.substr(from, most));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ' || (shown.size() != text.size() && c < 0)) c = ' ';
  return (from != 0 ? "..." : "") + shown + (from + most < text.size() ? "..." : "");
}

// Walks a type and the value of that type side by side, and returns the value with names. A server's
// description of its types is not trusted: one that does not parse or nests too deeply ends the walk, and
// the value is left as it is.
class Namer {
 public:
  explicit Namer(std::string_view schema) : rest_(schema) {}

  // Skips what comes before: later types may refer to its definitions.
  Json named(const Json& plain, BodyOf part) {
    walk(nullptr);
    expect(" -> ");
    const bool gives = take("stream ");
    Json named = walk(gives && part == BodyOf::result ? nullptr : &plain);
    if (gives && part == BodyOf::result) {
      expect(", ");
      named = walk(&plain);
    }
    const bool whole = rest_.empty() || part == BodyOf::item;
    return broken_ || !whole ? plain : named;
  }

  // The other direction: returns what is wrong with the names in arguments, or in an item of the stream among
  // them. Empty: no type contradicts them.
  // The value itself becomes what is packed: bytes and map keys get the types of the schema.
  std::string wrong_in_arguments(Json& arguments) {
    packs_ = true;
    Json packable = walk(&arguments);
    if (!broken_) arguments = std::move(packable);
    return broken_ ? "" : wrong_;
  }
  std::string wrong_in_item(Json& item) {
    packs_ = true;
    item_ = &item;
    walk(nullptr);
    if (!broken_ && packable_item_) item = std::move(*packable_item_);
    return broken_ ? "" : wrong_;
  }

 private:
  static constexpr int deepest = 64;

  // With null the type is only skipped.
  Json walk(const Json* plain) {
    if (++depth_ > deepest) broken_ = true;
    Json named = plain != nullptr ? *plain : Json();
    if (broken_) return named;
    skip_spaces();
    if (take("?")) {
      const bool there = plain != nullptr && !plain->is_null();
      Json one = walk(there ? plain : nullptr);
      if (there) named = std::move(one);
    } else if (take("[")) {
      named = list(plain);
    } else if (take("(")) {
      named = tuple(plain);
    } else if (take("<")) {
      named = variant(plain);
    } else if (take("{")) {
      named = map(plain);
    } else {
      named = name(plain);
    }
    --depth_;
    return named;
  }

  // Reads bytes as they are shown; any other text stands for its own bytes.
  static Json bytes_of(const Json& plain) {
    const std::string_view text = plain.get_ref<const std::string&>();
    std::vector<std::uint8_t> bytes;
    if (!text.starts_with("0x") || text.size() % 2 != 0) return plain;
    for (std::size_t i = 2; i < text.size(); i += 2) {
      const auto [end, error] = std::from_chars(&text[i], &text[i] + 2, bytes.emplace_back(), 16);
      if (error != std::errc() || end != &text[i] + 2) return plain;
    }
    return Json::binary(std::move(bytes));
  }

  static Json as_it_is(const Json* plain) { return plain != nullptr ? *plain : Json(); }

  Json list(const Json* plain) {
    const std::string_view element = rest_;
    Json named = Json::array();
    if (plain != nullptr && plain->is_array())
      for (const Json& one : *plain) {
        rest_ = element;
        named.push_back(walk(&one));
      }
    rest_ = element;
    walk(nullptr);
    expect("]");
    return plain != nullptr && plain->is_array() ? named : as_it_is(plain);
  }

  Json tuple(const Json* plain) {
    Json named = Json::array();
    std::size_t i = 0, may_miss = 0;
    for (; !take(")") && !broken_; ++i) {
      if (take("optional ")) ++may_miss;
      if (take("stream ")) {
        Json packable = walk(item_);
        if (item_ != nullptr) packable_item_ = std::move(packable);
        --i;  // it is not one of the arguments
        continue;
      }
      const bool there = plain != nullptr && plain->is_array() && i < plain->size();
      Json one = walk(there ? &plain->at(i) : nullptr);
      if (there) named.push_back(std::move(one));
      skip(", ");
    }
    const bool fits =
        plain != nullptr && plain->is_array() && plain->size() <= i && plain->size() + may_miss >= i;
    return fits ? named : as_it_is(plain);
  }

  Json variant(const Json* plain) {
    const bool fits =
        plain != nullptr && plain->is_array() && plain->size() == 2 && plain->at(0).is_number_unsigned();
    Json chosen = plain != nullptr ? *plain : Json();
    for (std::size_t i = 0; !take(">") && !broken_; ++i) {
      const bool this_one = fits && plain->at(0).get<std::size_t>() == i;
      Json one = walk(this_one ? &plain->at(1) : nullptr);
      if (this_one) (packs_ ? chosen[1] : chosen) = std::move(one);
      skip(" | ");
    }
    return chosen;
  }

  Json map(const Json* plain) {
    const std::string_view before = rest_;
    walk(nullptr);
    const std::string_view key_type = before.substr(0, before.size() - rest_.size());
    skip(": ");
    const std::string_view mapped = rest_;
    Json named = Json::object();
    if (plain != nullptr && plain->is_object())
      for (const auto& [key, one] : plain->items()) {
        rest_ = mapped;
        named.get_ref<Json::object_t&>().emplace_back(key, walk(&one));  // no key occurs twice
      }
    rest_ = mapped;
    walk(nullptr);
    expect("}");
    if (plain == nullptr || !plain->is_object()) return as_it_is(plain);
    if (!packs_ || key_type == "str" || key_type == "any") return named;
    return with_keys_of_json(named).value_or(named);
  }

  Json name(const Json* plain) {
    const std::size_t end = rest_.find_first_of("{}[](),:|<> ");
    const std::string word(rest_.substr(0, end));
    rest_.remove_prefix(word.size());
    if (word.empty()) broken_ = true;
    if (take("{")) {
      records_.emplace(word, rest_);
      return record(word, plain);
    }
    if (take("[")) {  // a unit, as in i64[ms]
      rest_.remove_prefix(std::min(rest_.find(']'), rest_.size()));
      expect("]");
      return as_it_is(plain);
    }
    if (take("<")) return enumerator(plain);
    if (packs_ && word == "bin" && plain != nullptr && plain->is_string()) return bytes_of(*plain);
    const auto known = records_.find(word);
    if (known == records_.end() || plain == nullptr) return plain != nullptr ? *plain : Json();
    const std::string_view after = std::exchange(rest_, known->second);
    Json named = record(word, plain);
    rest_ = after;
    return named;
  }

  // A value of an enum has its name, and its number where it has none.
  Json enumerator(const Json* plain) {
    Json found = as_it_is(plain);
    std::string names;
    bool known = false;
    while (!take(">") && !broken_) {
      const std::size_t equals = rest_.find(" = ");
      const std::string_view one = rest_.substr(0, equals);
      rest_.remove_prefix(std::min(equals, rest_.size()));
      expect(" = ");
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      broken_ |= error != std::errc();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (plain != nullptr && packs_ && plain->is_string() && plain->get_ref<const std::string&>() == one)
        found = number, known = true;
      if (plain != nullptr && !packs_ && plain->is_number_integer() && plain->get<std::int64_t>() == number)
        found = one;
      names.append(names.empty() ? "" : ", ").append(one);
      skip(", ");
    }
    if (packs_ && plain != nullptr && plain->is_string() && !known && wrong_.empty())
      wrong_ = "there is no '" + excerpt(plain->get_ref<const std::string&>(), 0) + "' among " + names;
    return found;
  }

  Json record(const std::string& type, const Json* plain) {
    Json named = packs_ ? as_it_is(plain) : Json::object();
    std::vector<std::string> fields;
    const bool by_name = plain != nullptr && plain->is_object();
    for (std::size_t i = 0; !take("}") && !broken_; ++i) {
      const std::size_t colon = rest_.find(": ");
      if (colon == std::string_view::npos) {
        broken_ = true;
        break;
      }
      const std::string field(rest_.substr(0, colon));
      rest_.remove_prefix(colon + 2);
      const bool there = plain != nullptr && plain->is_array() && i < plain->size();
      const Json* value = there ? &plain->at(i) : nullptr;
      if (by_name && plain->contains(field)) value = &plain->at(field);
      Json one = walk(value);
      if (packs_ && there)
        named[i] = std::move(one);
      else if (there || (packs_ && value != nullptr))
        named[field] = std::move(one);
      fields.push_back(field);
      skip(", ");
    }
    if (by_name) see_names(type, fields, *plain);
    if (packs_) return named;
    const bool fits = plain != nullptr && plain->is_array() && plain->size() <= fields.size();
    return fits ? named : as_it_is(plain);
  }

  void see_names(const std::string& type, const std::vector<std::string>& fields, const Json& object) {
    for (const auto& [name, value] : object.items()) {
      if (!wrong_.empty() || std::ranges::find(fields, name) != fields.end()) continue;
      wrong_ = type + " has no field '" + excerpt(name, 0) + "'; it has ";
      for (const std::string& field : fields) wrong_ += (&field == fields.data() ? "" : ", ") + field;
    }
  }

  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void skip(std::string_view token) { static_cast<void>(take(token)); }
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }
  void expect(std::string_view token) { broken_ |= !take(token); }

  std::string_view rest_;
  std::map<std::string, std::string_view> records_;  // where the fields of each record begin
  const Json* item_ = nullptr;                       // an item of the stream among the arguments
  std::optional<Json> packable_item_;
  bool packs_ = false;  // false: it names
  std::string wrong_;
  int depth_ = 0;
  bool broken_ = false;
};

// Shows bytes that are no text as hexadecimal digits.
void show_binary(Json& value) {
  if (value.is_binary()) {
    std::string text = "0x";
    for (const std::uint8_t byte : value.get_binary()) {
      constexpr char digits[] = "0123456789abcdef";
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
    value = text;
  } else if (value.is_structured()) {
    for (Json& inner : value) show_binary(inner);
  }
}

}  // namespace

namespace {
// Of arrays and objects within each other; the codec's limit, because a walk recurses once for each.
constexpr int deepest = MsgpackReader::deepest;

std::expected<Json, std::string> parse(std::string_view text) {
  try {
    return parse_no_deeper(text, deepest);
  } catch (const TooDeep&) {
    return std::unexpected("'" + excerpt(text, 0) + "' nests more than " + std::to_string(deepest) + " deep");
  } catch (const Json::parse_error& error) {
    return std::unexpected("'" + excerpt(text, error.byte) + "' is no JSON: it goes wrong at byte " +
                           std::to_string(error.byte));
  } catch (const Json::out_of_range&) {
    return std::unexpected("'" + excerpt(text, 0) + "' has a number in it that is out of range");
  }
}

bool nests_too_deeply(std::span<const std::byte> body) {
  MsgpackReader reader(body);
  std::vector<std::size_t> left;  // values that are still to come in each open array and map
  while (!reader.failed() && !reader.at_end()) {
    std::size_t inside = 0;
    const MsgpackType type = reader.peek();
    if (type == MsgpackType::array)
      reader.array(inside);
    else if (type == MsgpackType::map && reader.map(inside))
      inside *= 2;
    else if (type != MsgpackType::map)
      reader.skip();
    if (type == MsgpackType::array || type == MsgpackType::map) {
      left.push_back(inside + 1);
      if (left.size() > std::size_t{deepest}) return true;
    }
    while (!left.empty() && --left.back() == 0) left.pop_back();
  }
  return false;
}
}  // namespace

std::optional<std::string> no_json_for(std::string_view function, std::string_view schema,
                                       std::string_view codec) {
  if (codec.empty() || codec == MessagePack::name) return std::nullopt;
  std::string why(function);
  why.append(schema).append(" speaks ").append(codec);
  return why +
         ", and JSON becomes MessagePack only: call it from a program that has its types "
         "(docs/rpc-reference.md)";
}

std::string json_of_word(const std::string& word) {
  return Json::accept(word) ? word : Json(word).dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool takes_stream(std::string_view schema) {
  const std::string_view arguments = schema.substr(0, schema.find(" -> "));
  return arguments.starts_with("(stream ") || arguments.find(", stream ") != std::string_view::npos;
}

bool gives_stream(std::string_view schema) { return schema.find(" -> stream ") != std::string_view::npos; }

std::expected<std::vector<std::byte>, std::string> body_from_json(std::string_view json,
                                                                  std::string_view schema) {
  Json arguments = Json::array();
  if (!json.empty()) {
    auto parsed = parse(json);
    if (!parsed) return std::unexpected(parsed.error());
    if (parsed->is_array())
      arguments = std::move(*parsed);
    else
      arguments.push_back(std::move(*parsed));
  }
  if (auto wrong = Namer(schema).wrong_in_arguments(arguments); !wrong.empty()) return std::unexpected(wrong);
  return pack(arguments);
}

std::expected<std::vector<std::byte>, std::string> item_from_json(std::string_view json,
                                                                  std::string_view schema) {
  auto parsed = parse(json.substr(0, json.find_last_not_of(" \t\r\n") + 1));
  if (!parsed) return std::unexpected(parsed.error());
  if (auto wrong = Namer(schema).wrong_in_item(*parsed); !wrong.empty()) return std::unexpected(wrong);
  return pack(*parsed);
}

std::expected<std::string, std::string> json_from_body(std::span<const std::byte> body,
                                                       std::string_view schema, BodyOf part, Layout layout) {
  if (nests_too_deeply(body))
    return std::unexpected("the result nests more than " + std::to_string(deepest) + " deep");
  auto unpacked = unpack(body);
  if (!unpacked) return std::unexpected("the result is no MessagePack that JSON can show");
  Json value = std::move(*unpacked);
  if (!schema.empty()) value = Namer(schema).named(value, part);
  show_binary(value);
  const bool one_line = part == BodyOf::item || layout == Layout::one_line;
  return value.dump(one_line ? -1 : 2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weir::rpc::json
