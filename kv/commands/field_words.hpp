// Shared by the commands on fields that expire: their words, and what they report of a change.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kv/commands/collection.hpp"
#include "kv/commands/expiry_option.hpp"

namespace weir::kv {

// Fields may expire up to here, in ms since 1970: Redis's limit.
inline constexpr std::int64_t latest_field_time_ms = (std::int64_t{1} << 46) - 1;

// Converts the time in argument `argument` to ms since 1970; it may be past, but not negative. Replies with
// the error and returns false if it is wrong.
bool field_time(const Call& call, std::size_t argument, ExpiryForm form, std::int64_t& at_ms);

// Parses "FIELDS numfields field [field ...]" from argument `at` to the end. Replies with the error and
// returns false if it is wrong.
bool counted_fields(const Call& call, std::size_t at, std::string_view not_positive, Arguments& fields);

// Call after the hash at the call's key changed: these say the change in words, report its event, and keep
// the database's index of hashes. Fields are not none.
void fields_deleted(const Call& call, const Hash& hash, std::span<const std::string_view> fields);
void fields_expire(const Call& call, std::span<const std::string_view> fields, std::int64_t at_ms);
void fields_persist(const Call& call, std::span<const std::string_view> fields);

// Gives fields that exist a time; a past one deletes them. Then the hash may be gone.
void set_times(const Call& call, Hash& hash, std::span<const std::string_view> fields, std::int64_t at_ms);

// For any command on hashes: what a field holds, which is removed if its time has come. The hash goes with
// its last field: `hash` is null then.
std::optional<StoredText> living(const Call& call, Hash*& hash, std::string_view field);

}  // namespace weir::kv
