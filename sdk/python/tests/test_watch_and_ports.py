"""Changes of files, and the ports of a space, against a real daemon."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from agentbox import Agentbox, NotFoundError, Space

SERVER = """
from http.server import *
class Pages(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"page " + self.path.encode())
HTTPServer(("127.0.0.1", 8080), Pages).serve_forever()
"""


@pytest.fixture
def space(client: Agentbox) -> Iterator[Space]:
    with client.spaces.create(runtime="heavy") as made:
        yield made


def test_the_changes_of_a_folder_are_told_and_go_on_after_a_cursor(space: Space) -> None:
    space.exec("mkdir -p seen/below beside")
    started = threading.Event()

    def change() -> None:
        assert started.wait(30)
        space.exec("echo 1 > seen/one; echo 1 > beside/other; echo 1 > seen/below/deep")

    changing = threading.Thread(target=change)
    changing.start()
    told: set[str] = set()
    cursor = 0
    for change_of in space.files.watch("seen", recursive=True, on_start=started.set):
        told.add(change_of["path"])
        cursor = change_of["cursor"]
        if {"seen/one", "seen/below/deep"} <= told:
            break
    changing.join()
    assert "beside/other" not in told
    space.exec("echo 2 > seen/later")
    after = next(iter(space.files.watch("seen", recursive=True, after=cursor)))
    while after["path"] in told:  # a file that is made may also be told as changed
        after = next(iter(space.files.watch("seen", recursive=True, after=after["cursor"])))
    assert after["path"] == "seen/later"
    lost = next(iter(space.files.watch("seen", after=1)))
    assert lost["kind"] == "overflow"
    with pytest.raises(NotFoundError):
        next(iter(space.files.watch("missing")))


def test_a_port_has_an_address_until_it_is_closed(space: Space) -> None:
    space.files.write("server.py", SERVER)
    serving = space.start("python3 server.py")
    listed: list[Any] = []
    end = time.monotonic() + 60
    while 8080 not in [p["port"] for p in listed]:
        assert time.monotonic() < end, listed
        listed = space.ports.list()
    preview = space.ports.preview(8080, ttl_seconds=600)
    at = urlsplit(preview["url"])
    base = f"http://127.0.0.1:{at.port}"
    with httpx.Client() as browser:
        first = browser.get(f"{base}{at.path}?{at.query}", headers={"Host": at.netloc})
        assert first.status_code == 303
        cookie = first.headers["set-cookie"].split(";")[0]
        page = browser.get(f"{base}/a%20page", headers={"Host": at.netloc, "Cookie": cookie})
        assert (page.status_code, page.text) == (200, "page /a%20page")
        assert space.ports.close(8080) == 1
        assert browser.get(f"{base}/", headers={"Host": at.netloc, "Cookie": cookie}).status_code in (401, 403, 404, 410)
    serving.kill()
