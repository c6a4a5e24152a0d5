"""Boots the guest with one job, and returns the job's output and exit status."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ADDRESS, ADDRESS6 = "10.77.0.2", "fd77::2"
MEGABYTES = 1024
# restrict=on: qemu's own network, from which nothing leaves this machine.
ALONE = ["-netdev", "user,id=net,restrict=on", "-device", "virtio-net-pci,netdev=net,romfile="]
LAST_WORD = re.compile(rb"weir-vm: exit (\d+)\r?\n")


def on_tap(name):
    """The guest's interface is this one of ours. Each packet is what it would be on a wire: nothing is left to the other end to do."""
    left_out = ["csum", "guest_csum", "gso", *(f"{end}_{what}" for end in ("host", "guest") for what in ("tso4", "tso6", "ecn", "ufo"))]
    return ["-netdev", f"tap,id=net,ifname={name},script=no,downscript=no",
            "-device", ",".join(["virtio-net-pci,netdev=net,romfile=", *(f"{each}=off" for each in left_out)])]


def processor():
    """The real one where the kernel lends it; an emulated one is some thirty times slower."""
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR))
        return ["-accel", "kvm", "-cpu", "host"]
    except OSError:
        return ["-accel", "tcg,tb-size=256", "-cpu", "Nehalem"]


def command(kernel, initramfs, console, lines, words, network):
    # One processor, because the emulated kernel is not reliable with more.
    return ["qemu-system-x86_64", "-M", "q35", *processor(), "-m", str(MEGABYTES),
            "-display", "none", "-nodefaults", "-no-user-config", "-no-reboot",
            "-kernel", str(kernel), "-initrd", str(initramfs), "-append", " ".join(words),
            "-serial", f"file:{console}", "-serial", f"file:{lines}",
            "-device", "virtio-rng-pci",
            *network,
            "-virtfs", "local,path=/,mount_tag=host,security_model=none,multidevs=remap,readonly=on"]


def follow(path, seen):
    """Passes on what was written since; the last line, which is ours, is held back."""
    text = path.read_bytes() if path.exists() else b""
    whole = text[:text.rfind(b"\n") + 1]
    sys.stdout.write(LAST_WORD.sub(b"", whole[seen:]).decode(errors="replace"))
    sys.stdout.flush()
    return len(whole)


def run(kernel, initramfs, job, tree, build, seconds, network=ALONE, given_up=lambda: False):
    """The job's exit status; 124: it took longer than `seconds`; 125: the guest did not get that far, or its caller gave up."""
    with tempfile.TemporaryDirectory() as folder:
        console, lines = pathlib.Path(folder) / "console", pathlib.Path(folder) / "lines"
        words = ["console=ttyS0", "quiet", "panic=-1", "oops=panic", "mitigations=off", "nokaslr", "nowatchdog",
                 "rcupdate.rcu_cpu_stall_suppress=1", "random.trust_cpu=on", "ipv6.autoconf=0",
                 f"weir.address={ADDRESS}", f"weir.address6={ADDRESS6}", f"weir.job={job}", f"weir.tree={tree}", f"weir.build={build}"]
        deadline, seen, late = time.monotonic() + seconds, 0, False
        with open(pathlib.Path(folder) / "errors", "w+", encoding="utf-8") as errors:
            guest = subprocess.Popen(command(kernel, initramfs, console, lines, words, network), stdin=subprocess.DEVNULL, stderr=errors)
            try:
                while True:
                    try:
                        guest.wait(timeout=0.2)
                        break
                    except subprocess.TimeoutExpired:
                        seen = follow(lines, seen)
                    if given_up():
                        return 125
                    if time.monotonic() > deadline:
                        late = True
                        break
            finally:
                guest.kill()
                guest.wait()
            follow(lines, seen)
            ended = LAST_WORD.search(lines.read_bytes()) if lines.exists() else None
            if ended:
                return int(ended[1])
            errors.seek(0)
            sys.stderr.write(errors.read())
        if late:
            print(f"vm: not done after {seconds} s", file=sys.stderr)
            return 124
        print("vm: the guest ended without a result; the end of its console:", file=sys.stderr)
        sys.stderr.write(console.read_text(errors="replace")[-4000:] if console.exists() else "")
        return 125
