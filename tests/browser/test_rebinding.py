"""A page in a real Chromium reaches nothing of the emulator."""

from __future__ import annotations

import functools
import http.server
import threading
from urllib.parse import quote

import boto3
import pytest

from lab_harness import CHROMIUM, DRIVER, MISSING, chromium, wait_for
from local_sagemaker import daemon

PAGE = """<title>waits</title><script>
addEventListener("load", async () => {
  const query = "/?Action=GetTemplateSummary&TemplateBody=" + encodeURIComponent(
    'Resources: !!python/object/apply:subprocess.getoutput ["touch PWNED"]');
  const said = [];
  for (const path of ["/", query]) {
    const answer = await fetch("http://rebound.test:PORT" + path, {mode: "no-cors"});
    said.push(answer.status);
  }
  document.title = JSON.stringify(said);
});
</script><img src="http://127.0.0.1:PORT/moto-api/recorder/start-recording">
<img src="http://rebound.test:PORT/moto-api/seed?a=1">"""


@pytest.fixture
def up(tmp_path):
    """An endpoint's port. The browser asks it under a name of the attacker's, too."""
    state = tmp_path / "state"
    yield daemon.start(state, 0, ["--isolation", "processes", "--grace", "1"]).port
    daemon.stop(state)


@pytest.fixture
def rebound(tmp_path, monkeypatch):
    """A Chromium for which rebound.test is this machine: what DNS rebinding comes to."""
    if not (CHROMIUM and DRIVER):
        pytest.skip(MISSING)
    rule = "--host-resolver-rules=MAP rebound.test 127.0.0.1"
    with chromium(tmp_path / "chromium", rule) as driver:
        yield driver


@pytest.fixture
def site(tmp_path):
    """A web server of the attacker's: its folder and its port."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, server.server_address[1]
    server.shutdown()
    server.server_close()


def test_a_page_cannot_steer_the_endpoint(up, rebound, site, tmp_path):
    folder, port = site
    pwned = tmp_path / "pwned"
    text = PAGE.replace("PWNED", str(pwned)).replace("PORT", str(up))
    (folder / "index.html").write_text(text)
    rebound.get(f"http://127.0.0.1:{port}/index.html")
    statuses = wait_for("the page's answers", lambda: rebound.title.strip("waits"), 60)
    assert statuses == "[0,0]"  # opaque: another origin's page may not read
    # What follows runs in a page OF the endpoint, as after DNS rebinding: it may read answers.
    rebound.get(f"http://rebound.test:{up}/")
    assert "AccessDenied" in rebound.page_source
    script = """const done = arguments[arguments.length - 1];
    const scope = "Credential=local/20260101/us-east-1/cloudformation/aws4_request";
    fetch(arguments[0], {headers: {Authorization: "AWS4-HMAC-SHA256 " + scope + ", Signature=0"}})
      .then(async answer => done([answer.status, await answer.text()]));
    """
    attack = 'Resources: !!python/object/apply:subprocess.getoutput ["touch ' + str(pwned) + '"]'
    for path in ("/", f"/?Action=GetTemplateSummary&TemplateBody={quote(attack)}"):
        status, body = rebound.execute_async_script(script, path)
        assert status == 403 and "AccessDenied" in body
    assert not pwned.exists()
    env = daemon.environment(tmp_path / "state", up)
    keys = {name.lower(): env[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    s3 = boto3.client("s3", endpoint_url=env["AWS_ENDPOINT_URL"], region_name="us-east-1", **keys)
    assert s3.list_buckets()["Buckets"] == []  # 500 once the picture had started a recording
