#!/usr/bin/env python3
"""containers/: the Dockerfile and the compose file, parsed and executed here, because no container engine is assumed.

  containers_test.py BUILD_DIRECTORY SOURCE services   each service of the compose file, in namespaces of its own, with the build's programs
  containers_test.py BUILD_DIRECTORY SOURCE image      the image: the last stage's steps in a bare Debian 12, then the services in there

Both end with 77 (skipped) and say why where this machine forbids them. `image` wants root, debootstrap and a package mirror; in place
of the stage that compiles it takes the packages of this build. What Docker itself adds (layers, seccomp, dropped capabilities,
its own bridge and names) is tried by neither: engine.py says what stands for it.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import dockerfile
import yaml
from engine import Engine

BUILD, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
HERE = SOURCE / "containers"
SERVICES = yaml.safe_load((HERE / "compose.yaml").read_text())["services"]
STAGES = dockerfile.read((HERE / "Dockerfile").read_text())
APT_QUIETLY = {"DEBIAN_FRONTEND": "noninteractive"}
IMAGE = {}  # arguments for Engine: in `image`, where the image is and as whom it runs


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def why_no_namespaces():
    try:
        with Engine({"one": {"command": ["true"]}}) as engine:
            status, said = engine.run("one")
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return "" if status == 0 else said


class Files(unittest.TestCase):
    def test_each_stage_takes_from_one_before_it(self):
        seen = set()
        for name, base, steps in STAGES:
            for words in (dockerfile.copied(text) for step, text in steps if step == "COPY"):
                self.assertIn(words[0], seen | {""})
            self.assertRegex(base, r"^(debian:12(-slim)?|scratch)$")
            seen.add(name)

    def test_what_is_made_is_a_target_and_what_is_installed_a_package(self):
        text = (HERE / "Dockerfile").read_text()
        targets = set(re.findall(r"^([a-z-]+):", (SOURCE / "Makefile").read_text(), re.M))
        made = re.findall(r"^RUN make (\S+)$", text, re.M)
        self.assertEqual(made, ["packages"])
        self.assertLessEqual(set(made), targets)
        packages = set(re.findall(r"^weir_package\(\w+ (\S+) ", (SOURCE / "cmake/WeirPackages.cmake").read_text(), re.M))
        installed = re.findall(r"/packages/([a-z-]+)_\*\.deb", text)
        self.assertGreater(len(installed), 2)
        self.assertLessEqual(set(installed), packages)

    def test_services_name_the_one_image_and_each_other(self):
        for name, service in SERVICES.items():
            self.assertEqual(service["image"], "weir", name)
            shared = [service.get(key, "").partition("service:")[2] for key in ("network_mode", "ipc", "pid")]
            for other in [*filter(None, shared), *service.get("depends_on", [])]:
                self.assertIn(other, SERVICES, name)
        built, = (service["build"] for service in SERVICES.values() if "build" in service)
        self.assertTrue((HERE / built["context"] / built["dockerfile"]).samefile(HERE / "Dockerfile"))

    def test_what_is_not_known_here_is_refused(self):
        with self.assertRaises(ValueError):
            Engine({"one": {"command": ["true"], "privileged": True}})
        with self.assertRaises(ValueError):
            dockerfile.read("FROM debian:12\nONBUILD RUN true\n")


class Services(unittest.TestCase):
    def engine(self):
        path = "/usr/bin:/bin" if IMAGE else f"{BUILD}/bin:{os.environ['PATH']}"
        engine = Engine(SERVICES, path=path, **IMAGE)
        engine.__enter__()
        self.addCleanup(engine.__exit__)
        return engine

    def test_clients_reach_the_server_from_another_host_and_beside_it(self):
        engine = self.engine()
        engine.start("server")
        self.assertIn("software NIC", engine.await_healthy("server"))
        status, said = engine.run("client")
        self.assertEqual((status, said), (0, "OK\n"))
        self.assertEqual(engine.run("neighbour", ["weir-cli", "--rdma", "get", "greeting"]), (0, "hello\n"))
        status, said = engine.run("neighbour")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"SET: .*\nGET: ")

    def test_a_program_of_others_runs_between_two_hosts(self):
        if not IMAGE and not shutil.which("ib_write_bw"):
            self.skipTest("perftest is not installed")
        engine = self.engine()
        engine.start("perftest-server")
        for _ in range(100):  # restart: on-failure
            status, said = engine.run("perftest-client")
            if status == 0:
                break
        self.assertEqual(status, 0, said)
        self.assertIn("BW average", said)
        self.assertEqual(engine.started["perftest-server"].wait(timeout=60), 0)


def quietly(*words, **more):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **more)
    return done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def make_image(root):
    """Executes the last stage, step by step."""
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        skip("the image needs root and debootstrap")
    done, said = quietly("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm")
    done, said = quietly("debootstrap", "--variant=minbase", "bookworm", root, *(said.split()[:1] if done else []))
    if not done:
        skip("debootstrap made no root: " + said.strip()[-300:])
    for file in ("etc/resolv.conf", "etc/hosts"):
        shutil.copy(f"/{file}", root / file)
    (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    (root / "usr/sbin/policy-rc.d").chmod(0o755)
    made = root.parent / "packages"
    done, said = quietly("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", made, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
    assert done, said
    for step, text in STAGES[-1][2]:
        if step == "COPY":
            stage, sources, target = dockerfile.copied(text)
            assert stage == "packages", stage
            (root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)
            for path in (path for pattern in sources for path in made.glob(pattern)):
                shutil.copy(path, root / target.lstrip("/"))
        elif step == "RUN":
            done, said = quietly("unshare", "--mount", "sh", "-ec", 'mount --rbind /proc "$1/proc"; mount --rbind /dev "$1/dev"; exec chroot "$1" sh -ec "$2"',
                                 "sh", root, text, env={**os.environ, **APT_QUIETLY, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"})
            assert done, f"{text}\n{said}"
        elif step == "USER":
            IMAGE["user"] = text
    IMAGE["root"] = str(root)


def main():
    what = sys.argv[3]
    if what == "services":
        if why := why_no_namespaces():
            skip(f"this machine lets its user make no namespaces: {why}")
        return unittest.main(argv=sys.argv[:1], verbosity=2)
    with tempfile.TemporaryDirectory(prefix="weir-image-") as folder:
        make_image(pathlib.Path(folder) / "root")
        unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == "__main__":
    main()
