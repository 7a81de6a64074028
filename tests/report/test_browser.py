"""The report in a browser without a screen."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from matplotlib.image import imread

from report.examples import report_data
from transferable.report import write_report

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium on the PATH")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, report_data())
    return path


@pytest.fixture
def browse(tmp_path):
    """Open a page; give what the console said and the addresses that were asked for."""

    def run(page, *options):
        log = tmp_path / "net.json"
        command = [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
            *("--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--hide-scrollbars"),
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
            *("--enable-logging=stderr", f"--log-net-log={log}", *options, page.as_uri()),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        events = json.loads(log.read_text())["events"]
        # What the browser asks for on its own account has no origin.
        requests = [event["params"] for event in events if "initiator" in event.get("params", {})]
        asked = {r["url"] for r in requests if r["initiator"] != "not an origin"}
        return console, {url for url in asked if url.startswith("http")}, done.stdout

    return run


def test_renders_without_errors_and_no_request_leaves_the_page(report, browse):
    console, asked, shown = browse(report, "--dump-dom")
    assert console == []
    assert asked == set()
    assert "least certain" in shown


def test_the_two_checks_above_would_notice(tmp_path, browse):
    page = tmp_path / "bad.html"
    page.write_text("<img src='http://127.0.0.1:9/x.png'><script>nonsense()</script>")
    console, asked, _ = browse(page, "--dump-dom")
    assert any("nonsense" in line for line in console)
    assert "http://127.0.0.1:9/x.png" in asked


def test_follows_the_colour_scheme_of_the_reader(report, browse, tmp_path):
    dark = "--blink-settings=preferredColorScheme=0"
    papers = []
    for options in ([], ["--force-dark-mode", dark]):
        picture = tmp_path / "page.png"
        browse(report, f"--screenshot={picture}", "--window-size=900,1200", *options)
        pixels = np.round(255 * imread(picture)[..., :3]).astype(int)
        assert pixels.shape[:2] == (1200, 900)
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20, "something is drawn"
        papers.append(pixels[1, 1].mean())
    assert papers[0] > 240
    assert papers[1] < 40


def test_prints(report, browse, tmp_path):
    printed = tmp_path / "report.pdf"
    browse(report, f"--print-to-pdf={printed}", "--no-pdf-header-footer")
    assert printed.read_bytes().startswith(b"%PDF")
