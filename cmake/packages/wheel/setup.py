"""What pyproject.toml cannot say: the wheel is for one kind of machine with the C library of the build or a later one, and for every
Python 3, as ctypes loads its libraries."""
import platform

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel


class OfOneMachine(Distribution):
    def has_ext_modules(self):
        return True


class OfEveryPython(bdist_wheel):
    def get_tag(self):
        glibc = platform.libc_ver()[1].replace(".", "_")
        return "py3", "none", super().get_tag()[2].replace("linux_", f"manylinux_{glibc}_")


setup(distclass=OfOneMachine, cmdclass={"bdist_wheel": OfEveryPython})
