weir_fuzz_target(lua_pattern SOURCES lua_pattern_fuzz.cpp LINK weir_kv)
target_include_directories(lua_pattern SYSTEM PRIVATE ${WEIR_LUA_INCLUDE})
