weir_fuzz_target(aof_manifest SOURCES aof_manifest_fuzz.cpp LINK weir_kv)
weir_fuzz_target(aof_log SOURCES aof_log_fuzz.cpp LINK weir_kv)
