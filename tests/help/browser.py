"""Drive a headless Chromium through the DevTools protocol, over two pipes: no driver and no web socket are needed."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final

__all__ = ["NO_BROWSER", "Browser", "Tab", "chromium"]

NO_BROWSER: Final = "no Chromium is installed (apt-get install chromium), or the system has no /dev/fd pipes"
_PATIENCE: Final = 60.0
"""Seconds to wait for an answer: a loaded machine is slow, and a browser that does not answer is an error."""
_START: Final = """
import fcntl, os, sys
first, second = (fcntl.fcntl(int(text), fcntl.F_DUPFD, 10) for text in sys.argv[1:3])
os.dup2(first, 3)
os.dup2(second, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""A program that becomes Chromium, which reads from descriptor 3 and writes to 4."""
_KEYS: Final = {
    "Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowDown": ("ArrowDown", 40, ""), "ArrowLeft": ("ArrowLeft", 37, ""), "ArrowRight": ("ArrowRight", 39, ""),
}  # fmt: skip


def chromium() -> str | None:
    """Return the path of an installed Chromium or Chrome, or None."""
    if os.name != "posix":
        return None
    named = os.environ.get("IRRUN_CHROMIUM")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return named or next((path for name in names if (path := shutil.which(name))), None)


class Browser:
    """A Chromium of its own, with an empty profile, which ends with the ``with`` block."""

    def __init__(self) -> None:
        path = chromium()
        assert path is not None
        self._profile = tempfile.TemporaryDirectory(prefix="irrun-chromium-", ignore_cleanup_errors=True)
        theirs, self._write = os.pipe()
        self._read, answers = os.pipe()
        flags = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
            "--disable-extensions", "--mute-audio", "--hide-scrollbars", "--allow-file-access-from-files",
            "--force-color-profile=srgb", f"--user-data-dir={self._profile.name}",
        ]  # fmt: skip

        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs), str(answers), path, *flags, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(theirs, answers), start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        os.close(answers)
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError, AssertionError):
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._profile.cleanup()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result. Events that come before it are kept in ``events``."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._write, rest) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer.get('error')}"
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        """Return the next message of the browser."""
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 16)
            assert data, f"the browser has ended with {self._process.poll()}"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, address: str, *, width: int = 1280, height: int = 800, dark: bool = False) -> Tab:
        """Open a page in a new tab and wait until its graph is drawn."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, target)
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.call(f"{domain}.enable")
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme, {"name": "prefers-reduced-motion", "value": "reduce"}])
        tab.call("Page.navigate", url=address)
        tab.wait("document.documentElement?.dataset.drawn !== undefined")
        return tab


class Tab:
    """A page that is open in a browser."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser, self.session, self.target = browser, session, target

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until a JavaScript expression is true. Fails with what the page has logged."""
        end = time.monotonic() + _PATIENCE
        while not self.run(expression):
            assert not self.problems(), self.problems()
            assert time.monotonic() < end, f"{expression} does not become true"
            time.sleep(0.02)

    def click(self, selector: str, times: int = 1) -> None:
        """Click in the middle of an element, as a user does. ``times`` is 2 for a double click."""
        place = self.run(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call(
                    "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=count
                )

    def press(self, key: str) -> None:
        """Press and release a key: a character, or a name such as ``ArrowDown``."""
        code, number, text = _KEYS[key] if key in _KEYS else (key, ord(key.upper()) if key.isalnum() else 0, key)
        named = {"key": code, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", **named, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def type(self, text: str) -> None:
        """Type a text, key by key."""
        for character in text:
            self.press(character)

    def text(self, selector: str) -> str:
        """Return the visible text of an element."""
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def problems(self) -> list[str]:
        """Return the exceptions and the errors that the page has logged."""
        found: list[str] = []
        for event in self.browser.events:
            if event.get("sessionId") == self.session:
                if event["method"] == "Runtime.exceptionThrown":
                    found.append(str(event["params"]["exceptionDetails"].get("exception", {}).get("description")))
                elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                    found.append(event["params"]["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Return the addresses that the page has asked for."""
        own = [e for e in self.browser.events if e.get("sessionId") == self.session]
        return [e["params"]["request"]["url"] for e in own if e["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path: Path) -> None:
        """Write a picture of the page to a .png file."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)
