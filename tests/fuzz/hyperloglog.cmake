weir_fuzz_target(hyperloglog SOURCES hyperloglog_fuzz.cpp LINK weir_kv)
