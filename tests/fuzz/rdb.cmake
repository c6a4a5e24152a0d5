weir_fuzz_target(rdb_payload SOURCES rdb_payload_fuzz.cpp LINK weir_kv)
weir_fuzz_target(rdb_file SOURCES rdb_file_fuzz.cpp LINK weir_kv)
