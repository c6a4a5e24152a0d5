// Lua's blocks of some megabytes: tables and texts that a script lets grow.
//
// No step of Lua divides them: it lets a table double, or copies a text, in one go, and the server's other
// clients wait meanwhile. From the C library's heap much of that time went to a copy when a block grew
// elsewhere. So these blocks are mappings of their own, which grow without a copy.
//
// They do not ask for huge pages: half of the steps end sooner with them, and the longest takes twice as long
// (docs/threat-model.md, "Scripts").
//
// Threading: any; nothing is shared.
#pragma once

#include <cstddef>

namespace weir::kv {

// A block of that many bytes or more is a mapping; a smaller one belongs to the C library's heap.
constexpr std::size_t smallest_large_block = std::size_t{2} << 20;

// Like realloc(); what `block` is follows from old_size, the bytes it was asked for with. new_size is not 0.
// Null: there is no memory, and `block` is as it was.
void* reallocate_block(void* block, std::size_t old_size, std::size_t new_size);

void free_block(void* block, std::size_t size);

}  // namespace weir::kv
