"""A local web server that can misbehave, so that no test needs the network."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from transferable.datasets import _files


@dataclass
class Site:
    """Per path the answers in turn, the last repeated: (status, body, announced length)."""

    url: str
    answers: dict[str, list[tuple[int, bytes, int]]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def serve(self, path: str, body: bytes) -> str:
        return self.answer(path, (200, body, len(body)))

    def answer(self, path: str, *answers: tuple[int, bytes, int]) -> str:
        self.answers[path] = list(answers)
        return f"{self.url}{path}"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(_files, "_PAUSE_S", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append(self.path)
            queue = site.answers.get(self.path, [(404, b"", 0)])
            status, body, length = queue.pop(0) if len(queue) > 1 else queue[0]
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        server.shutdown()
        thread.join()
