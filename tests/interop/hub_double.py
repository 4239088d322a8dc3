"""A server that imitates the Hugging Face Hub for our requests."""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading
from urllib import parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def _send(self, status, content=b"", **headers):
        if isinstance(content, dict | list):
            content = json.dumps(content).encode()
            headers["Content-Type"] = "application/json"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_GET(self):
        path = parse.unquote(parse.urlsplit(self.path).path)
        self.server.asked.append(path)
        info = re.fullmatch(r"/api/models/(\w+/\w+)(?:/revision/(\S+))?", path)
        tree = re.fullmatch(r"/api/models/(\w+/\w+)/tree/(\S+)", path)
        file = re.fullmatch(r"/(\w+/\w+)/resolve/([^/]+)/(.+)", path)
        if path in ("", "/"):
            self._send(200, b"here")
        elif tree and tree[2] in {*self.server.branches, COMMIT}:
            found = [
                {"type": "file", "path": name, "size": len(content), "oid": "0"}
                for name, content in self._files(tree[1]).items()
            ]
            self._send(200, found)
        elif info:
            self._info(*info.groups())
        elif file:
            self._file(*file.groups())
        else:
            self._send(404)

    do_HEAD = do_GET  # noqa: N815

    def _files(self, repository):
        # The Hub adds this file when it makes a repository.
        return {".gitattributes": b"", **self.server.repositories[repository]}

    def _info(self, repository, revision):
        revisions = {None, COMMIT, *self.server.branches}
        is_there = repository in self.server.repositories
        if not is_there or revision not in revisions:
            self._send(404, {"error": "no such"}, X_Error_Code="RepoNotFound")
            return
        siblings = [{"rfilename": name} for name in self._files(repository)]
        facts = {"id": repository, "sha": COMMIT, "siblings": siblings}
        is_private = self.server.visibility.get(repository) == "private"
        self._send(200, {**facts, "private": is_private, "tags": []})

    def _file(self, repository, revision, name):
        content = self._files(repository)[name]
        if name in self.server.broken and self.command == "GET":
            self.close_connection = True
            return
        etag = f'"{hashlib.sha1(content).hexdigest()}"'
        self._send(200, content, ETag=etag, X_Repo_Commit=COMMIT)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") != "Bearer hf_token":
            self._send(401, {"error": "Invalid credentials"})
            return
        if self.path == "/api/repos/create":
            wanted = json.loads(body)
            name = f"{wanted.get('organization', 'me')}/{wanted['name']}"
            if name not in self.server.repositories:
                self.server.repositories[name] = {}
                self.server.visibility[name] = wanted.get("visibility")
            url = f"http://{self.headers['Host']}/{name}"
            self._send(200, {"url": url, "name": name})
        elif self.path == "/api/validate-yaml":
            self._send(200, {"errors": [], "warnings": []})
        elif "/branch/" in self.path:
            branch = parse.unquote(self.path.rpartition("/")[2])
            is_new = branch not in self.server.branches
            self.server.branches.add(branch)
            self._send(200 if is_new else 409, {})
        elif "/preupload/" in self.path:
            files = json.loads(body)["files"]
            found = [
                {
                    "path": file["path"],
                    "uploadMode": "regular",
                    "shouldIgnore": False,
                }
                for file in files
            ]
            self._send(200, {"files": found})
        else:
            self._commit(body)

    def _commit(self, body):
        repository = re.match(r"/api/models/(\w+/\w+)/commit/", self.path)[1]
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                value = entry["value"]
                content = base64.b64decode(value["content"])
                self.server.repositories[repository][value["path"]] = content
            elif entry["key"] == "deletedFile":
                del self.server.repositories[repository][entry["value"]["path"]]
        url = f"http://{self.headers['Host']}/{repository}/commit/{COMMIT}"
        self._send(200, {"commitUrl": url, "commitOid": COMMIT})


@contextlib.contextmanager
def serve(repositories):
    """Serves repositories, and stores pushed files.

    Args:
        repositories: Dict from `owner/name` to a dict from path to bytes.

    Yields:
        The server: `address`, the paths it was `asked` for, the wanted
        `visibility` of each new repository, the names of `branches`, which
        all have the same files, and those of `broken` files, whose download
        ends early.
    """
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.repositories, server.asked = repositories, []
    server.visibility, server.branches = {}, {"main", "v1"}
    server.broken = set()
    server.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
