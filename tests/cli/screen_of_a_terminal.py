"""What a person sees of a program: its screen, by tmux."""
import subprocess
import tempfile
import time


class Terminal:
    """A tmux server with one window, whose contents are polled until they are as wanted."""

    def __init__(self, command, columns, lines, environment):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-tmux-")
        self.socket = self.folder.name + "/s"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), "sh", environment=environment)
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))
        self.keys("PS1='$ '", "Enter", "clear", "Enter")
        self.expect(lambda screen: screen.strip() == "$", "a shell")
        self.keys(command, "Enter")

    def tmux(self, *words, environment=None):
        return subprocess.run(["tmux", "-u", "-f", "/dev/null", "-S", self.socket, *words], env=environment, check=True,
                              capture_output=True, text=True, timeout=60).stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self, colours=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def expect(self, wanted, what):
        deadline = time.monotonic() + 60
        while not wanted(screen := self.screen()):
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what} on this screen:\n{screen}")
            time.sleep(0.05)  # tmux cannot be waited on for a change
        return screen

    def close(self):
        self.tmux("kill-server")
        self.folder.cleanup()
