weir_fuzz_target(server_config SOURCES server_config_fuzz.cpp LINK weir_kv)
