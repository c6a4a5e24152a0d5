# NCCL's network plugin on the system's device: the driver's scenarios through the oldest and the newest version of the
# interface, as on the software NIC. Two ranks that poll share one emulated processor.
set -eu
"$WEIR_BUILD/bin/nccl_driver_test" --gtest_brief=1 --gtest_filter='*/v8_*:*/v12_*'
