"""A real browser for tests of pages: headless Chromium, driven over a pipe with the DevTools protocol.

Nothing beyond the standard library is needed: `--remote-debugging-pipe` speaks JSON, ended by a zero byte, on
the file descriptors 3 and 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# Chromium wants its pipe on the descriptors 3 and 4; a tiny Python between us and it puts it there.
PLUG = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""

# What a test wants to know of a page once it is drawn.
MEASURE = """(() => ({
    dom: (() => {
        const copy = document.documentElement.cloneNode(true);
        copy.querySelectorAll("script").forEach(s => s.remove());
        return copy.outerHTML;
    })(),
    width: innerWidth,
    scroll_width: document.documentElement.scrollWidth,
    formulas: [...document.querySelectorAll("math")].filter(m => m.getBoundingClientRect().width > 0).length,
    figures: Object.fromEntries([...document.querySelectorAll(".plot")].map(p => [p.id, {
        traces: p.querySelectorAll("svg.main-svg .trace").length,
        width: p.querySelector("svg.main-svg")?.getBoundingClientRect().width ?? 0,
    }])),
}))()"""
DRAWN = """document.readyState === "complete"
    && (!document.querySelector(".plot") || document.documentElement.dataset.figures === "drawn")"""
# Go to the next figure that is not drawn yet; its id, or null at the end of the page.
ONWARD = """(() => {
    const next = document.querySelector(".plot:not([data-drawn])");
    next?.scrollIntoView();
    return next?.id ?? null;
})()"""


@dataclass(frozen=True)
class Opened:
    """A page as the browser shows it."""

    dom: str  # without its scripts
    console: list[str]  # errors and warnings, uncaught exceptions and refused requests among them
    requests: list[str]  # every address asked for, except the page's own and data: and blob:
    width: int  # of the window
    scroll_width: int  # of the document; more than the window means that the page scrolls sideways
    formulas: int  # MathML elements that take up space
    figures: dict[str, dict[str, Any]]  # by id: number of traces drawn, width in pixels
    screenshot: Path | None


def find() -> str | None:
    """The browser's program, or None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One running Chromium; every page opens in a fresh tab."""

    def __init__(self, receive: int, send: int) -> None:
        self._receive, self._send = receive, send
        self._buffer, self._last = b"", 0
        self._events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer; events that come meanwhile are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params} | ({"sessionId": session} if session else {})
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._send, data) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def open_page(
        self,
        path: Path,
        width: int = 1200,
        *,
        height: int = 900,
        dark: bool = False,
        media: str = "",
        screenshot: Path | None = None,
        pdf: Path | None = None,
    ) -> Opened:
        """Open a file, go through it until all its figures are drawn, and say what is there.

        `screenshot` (of the whole page) and `pdf` are written where a path is given; the rest is as in `tab`.
        """
        with self.tab(path, width, height=height, dark=dark, media=media) as session:
            while figure := self.evaluate(session, ONWARD):
                self.wait(session, f'document.getElementById("{figure}").dataset.drawn')
            self.evaluate(session, "scrollTo(0, 0)")
            measured = self.evaluate(session, MEASURE)
            if screenshot is not None:
                shot = self.call("Page.captureScreenshot", session, captureBeyondViewport=True)
                screenshot.write_bytes(base64.b64decode(shot["data"]))
            if pdf is not None:
                paper = {
                    "printBackground": False,
                    "preferCSSPageSize": True,
                    "paperWidth": 8.27,
                    "paperHeight": 11.69,
                }
                pdf.write_bytes(base64.b64decode(self.call("Page.printToPDF", session, **paper)["data"]))
            console, requests = self._heard(session, path.resolve().as_uri())
        return Opened(console=console, requests=requests, screenshot=screenshot, **measured)

    @contextmanager
    def tab(
        self, path: Path, width: int = 1200, *, height: int = 900, dark: bool = False, media: str = ""
    ) -> Iterator[str]:
        """A file in a fresh tab, with the figures at its beginning drawn: the session for `call` and the like.

        Below 600 pixels the browser plays a phone with a touch screen. `media="print"` shows the page as printed.
        """
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        phone = width < 600
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", session, **metrics)
        self.call("Emulation.setTouchEmulationEnabled", session, enabled=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", session, media=media, features=[scheme])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        self._events.clear()
        self.call("Page.navigate", session, url=path.resolve().as_uri())
        self.wait(session, f"location.href !== 'about:blank' && {DRAWN}")
        yield session
        self.call("Target.closeTarget", targetId=target)

    def evaluate(self, session: str, expression: str) -> Any:
        """The value of a JavaScript expression in a tab."""
        answer = self.call("Runtime.evaluate", session, expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def wait(self, session: str, condition: str, seconds: float = 30) -> None:
        """Until a JavaScript expression is true in a tab."""
        end = time.monotonic() + seconds
        while not self.evaluate(session, condition):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition}: not after {seconds} s; heard {self._heard(session, '')}")
            time.sleep(0.05)

    def _heard(self, session: str, url: str) -> tuple[list[str], list[str]]:
        console, requests = [], []
        for event in self._events:
            if event.get("sessionId") != session:
                continue
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                console.append(json.dumps(params["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning", "assert"}:
                console.append(json.dumps(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
                console.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                asked = params["request"]["url"]
                if asked != url and not asked.startswith(("data:", "blob:")):
                    requests.append(asked)
        return console, requests

    def _next(self, seconds: float = 60) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._receive], [], [], seconds)[0]:
                raise TimeoutError(f"Chromium was silent for {seconds} s")
            chunk = os.read(self._receive, 1 << 20)
            if not chunk:
                raise RuntimeError("Chromium has ended")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded


@contextmanager
def started(program: str) -> Iterator[Browser]:
    """A browser with a profile of its own, ended on leaving."""
    hear, say = os.pipe(), os.pipe()  # each is (read end, write end)
    with tempfile.TemporaryDirectory(prefix="offtangent-browser-", ignore_cleanup_errors=True) as profile:
        command = [
            sys.executable,
            "-c",
            PLUG,
            str(say[0]),
            str(hear[1]),
            program,
            *FLAGS,
            f"--user-data-dir={profile}",
        ]
        process = subprocess.Popen(
            command, pass_fds=(say[0], hear[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(say[0])
        os.close(hear[1])
        browser = Browser(hear[0], say[1])
        try:
            yield browser
            browser.call("Browser.close")
        finally:
            os.close(hear[0])
            os.close(say[1])
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
