"""Weir's software NIC and `weir`, which come in the same wheel as weir_rpc and weir_tensor. `__main__` runs `weir`."""
