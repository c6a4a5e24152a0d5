"""The guest's kernel and initramfs, made once from Debian's packages and kept in a folder."""
import lzma
import os
import pathlib
import shutil
import subprocess
import tempfile

# In loading order: access to the host's files, the device under test, its checksum modules, and what makes a wire bad in both
# directions (impair() in run_wire.py).
MODULES = ["virtio_pci", "virtio_net", "virtio_rng", "9p", "9pnet_virtio", "overlay", "af_packet",
           "crc32_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm",
           "sch_netem", "sch_ingress", "sch_prio", "cls_flower", "act_mirred", "ifb"]
NEEDED = ["qemu-system-x86_64", "busybox", "cpio", "depmod", "modprobe", "dpkg-deb", "apt-get", "rdma"]
HERE = pathlib.Path(__file__).resolve().parent


class Missing(Exception):
    """This machine lacks something to run a virtual machine."""


def say(words):
    print(f"vm: {words}", flush=True)


def output(*words, cwd=None):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"'{' '.join(map(str, words))}' failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def package():
    """Debian's current kernel package; its cloud flavour has no rdma_rxe."""
    for line in output("apt-cache", "depends", "linux-image-amd64").splitlines():
        kind, _, name = line.strip().partition(" ")
        if kind == "Depends:" and name.startswith("linux-image-"):
            return name
    raise Missing("apt-cache knows no linux-image-amd64; 'apt-get update' fetches the lists")


def uncompressed(vmlinuz):
    """Extracts the ELF kernel from a bzImage: booting that saves the emulated processor minutes of unpacking."""
    begin = vmlinuz.find(b"\xfd7zXZ\x00")
    if begin < 0:
        return vmlinuz  # compressed differently: the guest unpacks it itself
    kernel = lzma.LZMADecompressor().decompress(vmlinuz[begin:])
    return kernel if kernel.startswith(b"\x7fELF") else vmlinuz


def module_files(unpacked, version):
    files = {}
    for module in MODULES:
        listed = subprocess.run(["modprobe", "-d", unpacked, "-S", version, "--show-depends", module], capture_output=True, text=True)
        for line in listed.stdout.splitlines():
            if line.startswith("insmod "):
                path = pathlib.Path(line.split()[1])
                files[path.relative_to(unpacked)] = path
    if not any("rdma_rxe" in str(name) for name in files):
        raise Missing(f"kernel {version} has no Soft-RoCE (rdma_rxe)")
    return files


def make_initramfs(unpacked, version, target):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("bin", "proc", "sys", "dev", "run", "tmp", "host", "changes", "root"):
            (root / name).mkdir()
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        for name, path in module_files(unpacked, version).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".xz":
                (root / name.with_suffix("")).write_bytes(lzma.decompress(path.read_bytes()))
            else:
                shutil.copy(path, root / name)
        for name in ("modules.builtin", "modules.order", "modules.builtin.modinfo"):
            if (unpacked / "lib/modules" / version / name).exists():
                shutil.copy(unpacked / "lib/modules" / version / name, root / "lib/modules" / version / name)
        output("depmod", "-b", str(root), version)
        (root / "modules").write_text("\n".join(MODULES) + "\n")
        shutil.copy(HERE / "guest-init", root / "init")
        (root / "init").chmod(0o755)
        names = "\0".join(sorted(str(path.relative_to(root)) for path in root.rglob("*"))) + "\0"
        with open(target, "wb") as archive:
            subprocess.run(["cpio", "--null", "-o", "-H", "newc", "-R", "0:0", "--quiet"], cwd=root, input=names.encode(), stdout=archive,
                           check=True)


def prepare(folder):
    """The paths of kernel and initramfs in `folder`; made if they are missing. Raises Missing."""
    for program in NEEDED:
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            raise Missing(f"no {program} here; 'make vm' installs what tools/packages-vm.txt lists")
    name = package()
    place = folder / name
    kernel, initramfs = place / "vmlinux", place / "initramfs.cpio"
    with tempfile.TemporaryDirectory() as temporary:
        unpacked = place / "unpacked"
        if not kernel.exists():
            say(f"fetching {name} (70 MB, once; nothing is installed)")
            output("apt-get", "download", "-q", name, cwd=temporary)
            (archive,) = pathlib.Path(temporary).glob("*.deb")
            shutil.rmtree(place, ignore_errors=True)
            unpacked.mkdir(parents=True)
            output("dpkg-deb", "-x", str(archive), str(unpacked))
            (version,) = [path.name for path in (unpacked / "lib/modules").iterdir()]
            output("depmod", "-b", str(unpacked), version)
            (image,) = (unpacked / "boot").glob("vmlinuz-*")
            fresh = place / "vmlinux.new"
            fresh.write_bytes(uncompressed(image.read_bytes()))
            fresh.rename(kernel)
        if not initramfs.exists() or initramfs.stat().st_mtime < max((HERE / each).stat().st_mtime for each in ("guest-init", "kernel.py")):
            (version,) = [path.name for path in (unpacked / "lib/modules").iterdir()]
            fresh = place / "initramfs.new"
            make_initramfs(unpacked, version, fresh)
            fresh.rename(initramfs)
    return kernel, initramfs
