"""What the test suites of Redis and Valkey print, read back."""
import re


def read_results(output):
    """(how many tests passed, the names of those that failed or were interrupted, how many of these were interruptions)"""
    plain = re.sub(r"\x1b\[[\d;]*m", "", output)
    during = plain.split("The End")[0]  # what failed is listed again at the end
    passed = len(re.findall(r"^\[ok\]: ", during, re.M))
    failed = re.findall(r"^\[err\]: (.*?)(?: in tests/\S+)?$", during, re.M)
    stopped = re.findall(r"^\[exception\]: (.*)$", during, re.M)
    return passed, failed + stopped, len(stopped)
