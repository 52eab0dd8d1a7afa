#!/usr/bin/env python3
"""Records how a real kube-apiserver writes lists and watches, for the tests of bench/source.

usage: capture.py SERVER TOKEN FOLDER      (capture.py https://127.0.0.1:16443 admintoken .)

Creates a namespace with pods, config maps and custom resources, and writes one file per request to
FOLDER. A file is gzip of the response as HTTP/1.1 frames it: the head, then the body in chunks. A
response over HTTP/2 is written in the same form, one chunk per DATA frame, below a status line that
says HTTP/2. The values of headers and fields that differ from server to server are replaced by
others of the same length, so the chunks keep their sizes. Needs only Python 3.11.
"""

import gzip
import http.client
import json
import pathlib
import re
import socket
import ssl
import struct
import sys
import threading
import time

NAMESPACE = "shop"
JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
STREAMING = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
# Sizes on both sides of the 2,048 and 4,096 bytes that Go's HTTP servers buffer.
SIZES = [0, 350, 900, 1400, 1900, 2600, 5000, 9000]
# A watch has no end; nothing more is expected after this many seconds of silence.
SILENCE = 2.0

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "applications.argoproj.io"},
    "spec": {
        "group": "argoproj.io",
        "scope": "Namespaced",
        "names": {"plural": "applications", "kind": "Application"},
        "versions": [{
            "name": "v1alpha1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }],
    },
}


class Server:
    def __init__(self, url, token):
        host, port = re.fullmatch(r"https://(.+):(\d+)/?", url).groups()
        self.address, self.token = (host, int(port)), token
        # What is recorded is the framing; the certificate is one that the server made for itself.
        self.tls = ssl._create_unverified_context()

    def ask(self, method, path, body=None, content_type=JSON):
        connection = http.client.HTTPSConnection(*self.address, context=self.tls)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        answer = response.read()
        if response.status >= 300 and response.status != 409:
            raise SystemExit(f"{method} {path}: {response.status} {answer.decode()}")

    def connect(self, protocol):
        tls = ssl._create_unverified_context()
        tls.set_alpn_protocols([protocol])
        stream = tls.wrap_socket(socket.create_connection(self.address))
        stream.settimeout(SILENCE)
        return stream

    def http1(self, path, accept):
        """The bytes of the response."""
        stream = self.connect("http/1.1")
        stream.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {self.address[0]}\r\nAuthorization: Bearer {self.token}\r\n"
            f"Accept: {accept}\r\n\r\n".encode())
        data = b""
        try:
            while not data.endswith(b"\r\n0\r\n\r\n") and (more := stream.recv(65536)):
                data += more
        except TimeoutError:
            pass
        return data

    def http2(self, path, accept):
        """The same, with each DATA frame as a chunk; the windows are never full."""
        stream = self.connect("h2")
        headers = {":method": "GET", ":scheme": "https", ":authority": self.address[0], ":path": path,
                   "authorization": f"Bearer {self.token}", "accept": accept}
        block = b"".join(b"\0" + text(name) + text(value) for name, value in headers.items())
        stream.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack(">HI", 4, 1 << 28))
            + frame(8, 0, 0, struct.pack(">I", 1 << 29)) + frame(1, 5, 1, block))
        buffer, data = b"", f"HTTP/2 200 OK\r\nContent-Type: {accept}\r\n\r\n".encode()
        try:
            while more := stream.recv(65536):
                buffer += more
                while len(buffer) >= 9 and len(buffer) >= 9 + (length := int.from_bytes(buffer[:3])):
                    kind, flags, payload = buffer[3], buffer[4], buffer[9:9 + length]
                    buffer = buffer[9 + length:]
                    if kind == 0 and payload:
                        data += b"%x\r\n%s\r\n" % (len(payload), payload)
                    if kind == 0 and flags & 1:
                        return data + b"0\r\n\r\n"
        except TimeoutError:
            pass
        return data


def text(value):
    """An HPACK string, as it is."""
    value = value.encode()
    length = bytes([len(value)]) if len(value) < 127 else bytes([127, len(value) - 127])
    return length + value


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3) + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def filler(size):
    return ("twenty bytes of text" * (size // 20 + 1))[:size]


def create(server):
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    time.sleep(3)  # until the kind is served
    for at, size in enumerate(SIZES * 3):
        name = f"web-{at:02}"
        metadata = {"name": name, "namespace": NAMESPACE, "labels": {"app": "web"}}
        container = {"name": "c", "image": "registry.example/web:1", "env": [{"name": "A", "value": "1 < 2 && 2 > 1"}]}
        noted = metadata | {"annotations": {"example.com/note": filler(size)}}
        server.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/pods",
                   {"metadata": noted, "spec": {"containers": [container]}})
        server.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps",
                   {"metadata": metadata, "data": {"text": filler(size)}})
        server.ask("POST", f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications",
                   {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata,
                    "spec": {"text": filler(size)}})


def change(server, plural_path):
    """Three changes with pauses, each of an object of another size."""
    for at in (0, 6, 7):
        time.sleep(0.3)
        patch = {"metadata": {"labels": {"changed": str(time.time_ns())}}}
        server.ask("PATCH", f"{plural_path}/web-{at:02}", patch, "application/merge-patch+json")


def sanitized(data):
    """Replaces what identifies one server."""
    head, body = data.split(b"\r\n\r\n", 1)
    head = re.sub(rb"(?m)^(Audit-Id|X-Kubernetes-[^:]+): .*\r\n", b"", head + b"\r\n")
    uid = rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    return head + b"\r\n" + re.sub(uid, b"00000000-0000-4000-8000-000000000000", body)


def main():
    url, token, folder = sys.argv[1:]
    server = Server(url, token)
    create(server)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    config_maps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    applications = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications"
    watched = PROTOBUF + ";stream=watch"
    for name, path, query, accept, record in [
        ("pods-list-json", pods, "", JSON, server.http1),
        ("pods-page-json", pods, "limit=10", JSON, server.http1),
        ("pods-list-protobuf", pods, "", PROTOBUF, server.http1),
        ("pods-watch-json", pods, STREAMING, JSON, server.http1),
        ("pods-watch-protobuf", pods, STREAMING, watched, server.http1),
        ("pods-list-json-http2", pods, "", JSON, server.http2),
        ("pods-watch-json-http2", pods, STREAMING, JSON, server.http2),
        ("configmaps-list-json", config_maps, "", JSON, server.http1),
        ("configmaps-watch-json", config_maps, STREAMING, JSON, server.http1),
        ("applications-list-json", applications, "", JSON, server.http1),
        ("applications-watch-json", applications, STREAMING, JSON, server.http1),
    ]:
        changes = threading.Timer(1.0, change, (server, path))
        if "watch" in query:
            changes.start()
        data = sanitized(record(f"{path}?{query}", accept))
        if "watch" in query:
            changes.join()
        file = pathlib.Path(folder, f"{name}.http.gz")
        file.write_bytes(gzip.compress(data, mtime=0))
        print(f"{file}: {len(data)} bytes, {file.stat().st_size} compressed")


if __name__ == "__main__":
    main()
