"""Programs that open the software NIC and keep it until their input ends, for `weir stat` to show."""
import subprocess
import sys

OPEN_A_DEVICE = """
import ctypes, sys
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.restype = ctypes.c_void_p
verbs.ibv_open_device.argtypes = [ctypes.c_void_p]
assert verbs.ibv_open_device(verbs.ibv_get_device_list(None)[0])
print("open", flush=True)
sys.stdin.read()
"""


def start(weir, environment):
    """A program that has not opened the NIC yet: it then prints "open". communicate() ends it."""
    return subprocess.Popen([weir, "run", "--", sys.executable, "-c", OPEN_A_DEVICE], env=environment,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
