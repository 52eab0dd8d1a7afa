"""A test of well-known definitions: those of cert-manager, Gateway API, Argo CD and the Prometheus operator.

Each is installed, and `definitions.txt` has what a real kube-apiserver answers to drawn objects of their kinds:
the code, and the start of a hash of the rest. It is recorded on a real server: `RECORD=1 bash realserver/run ...`;
see README.md.
"""

import collections
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time
import unittest

from kubernetes import client, config

from drawn import Draw
from real_server import require_loopback

ANSWERS = pathlib.Path(__file__).parent / "definitions.txt"

# The Go modules that contain the definitions, with the hashes of their contents, and the folders.
MODULES = [
    (
        "github.com/cert-manager/cert-manager@v1.21.2",
        "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
        "deploy/crds",
    ),
    (
        "sigs.k8s.io/gateway-api@v1.6.3",
        "h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc=",
        "config/crd/experimental",
    ),
    (
        "github.com/argoproj/argo-cd/v3@v3.5.0",
        "h1:iqnPFSKaQ0l3hREMH2Rk55VDcxrvBFaSO0g9bifZKzc=",
        "manifests/crds",
    ),
    (
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        "example/prometheus-operator-crd",
    ),
]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = re.compile(r"^kind: CustomResourceDefinition\nmetadata:\n(?:  .*\n)*?  name: (\S+)$", re.M)

# Maximum time in seconds until a definition is established, or gone. A real server on a busy machine needs 10 s.
CHANGE_MAX = 60

OBJECTS = 500


def files():
    """Returns the paths of the definitions. Go loads the modules if its cache does not have them."""
    found = []
    # The hashes are compared here.
    environment = {**os.environ, "GOSUMDB": "off"}
    for module, expected, folder in MODULES:
        command = ["go", "mod", "download", "-json", module]
        loaded = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        loaded = json.loads(loaded.stdout)
        if loaded["Sum"] != expected:
            raise RuntimeError(f"{module} has the hash {loaded['Sum']} instead of {expected}")
        found += sorted(pathlib.Path(loaded["Dir"], folder).glob("*.yaml"))
    return found


class Server:
    """Requests to the server of a kubeconfig, without models."""

    def __init__(self, kubeconfig):
        configuration = client.Configuration()
        config.load_kube_config(kubeconfig, client_configuration=configuration)
        require_loopback(configuration.host)
        self._host = configuration.host
        self._pool = client.ApiClient(configuration).rest_client.pool_manager
        self._headers = {"Accept": "application/json"}
        if token := configuration.get_api_key_with_prefix("BearerToken", "authorization"):
            self._headers["Authorization"] = token

    def send(self, method, path, body=None, content_type="application/json"):
        """Returns the code and the JSON of the response."""
        headers = {**self._headers, "Content-Type": content_type}
        done = self._pool.request(method, self._host + path, body=body, headers=headers)
        return done.status, json.loads(done.data)


def until(check):
    """Waits for a true result of `check`, and returns it."""
    ends = time.monotonic() + CHANGE_MAX
    while time.monotonic() < ends:
        if found := check():
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing after {CHANGE_MAX} s")


def digest(answer):
    """Returns the start of a hash of a response, without what changes from run to run.

    Go checks the members of an object in a random order, so the causes of an error have none.
    """
    if answer["kind"] != "Status":
        for member in ("uid", "creationTimestamp", "managedFields"):
            answer["metadata"].pop(member, None)
    elif causes := answer.get("details", {}).get("causes"):
        causes.sort(key=lambda cause: json.dumps(cause, sort_keys=True))
        answer["message"] = "".join(sorted(answer["message"]))
    return hashlib.sha256(json.dumps(answer, sort_keys=True).encode()).hexdigest()[:12]


class Definitions(unittest.TestCase):
    def setUp(self):
        real = os.environ.get("REAL_KUBECONFIG")
        self.record = os.environ.get("RECORD")
        if self.record and not real:
            self.fail("RECORD needs a real server: the answers of the embedded server are not recorded")
        self.server = Server(real or os.environ["SERVE_KUBECONFIG"])

    def test_well_known_definitions_are_installed_and_validate_objects(self):
        definitions = [self.install(path) for path in files() if NAME.search(path.read_text())]
        self.assertEqual(len(definitions), 32)
        lines, draw = [], Draw(1)
        expected = None
        if not self.record:
            expected = ANSWERS.read_text().splitlines()
            self.assertEqual(len(expected), OBJECTS)
        for number in range(OBJECTS):
            path, sent = draw.request(definitions)
            code, answer = self.server.send("POST", path, json.dumps(sent))
            shown = json.dumps(answer)
            lines.append(f"{code} {digest(answer)}")
            if expected is not None:
                self.assertEqual(lines[-1], expected[number], f"{number}: {path}\n{json.dumps(sent)}\n{shown}")
        codes = collections.Counter(line.split()[0] for line in lines)
        self.assertGreater(codes["201"], OBJECTS / 3, codes)
        self.assertGreater(codes["422"], OBJECTS / 3, codes)
        if self.record:
            ANSWERS.write_text("\n".join(lines) + "\n")

    def install(self, path):
        """Installs the definition in a file, and returns it when it is established."""
        text = path.read_text()
        name = NAME.search(text)[1]
        code, answer = self.server.send("POST", DEFINITIONS, text, "application/yaml")
        self.assertEqual(code, 201, f"{name}: {answer}")
        self.addCleanup(self.remove, name)
        return until(lambda: self.established(name))

    def established(self, name):
        _, found = self.server.send("GET", f"{DEFINITIONS}/{name}")
        conditions = found.get("status", {}).get("conditions") or []
        states = {condition["type"]: condition["status"] for condition in conditions}
        return found if states.get("Established") == "True" else None

    def remove(self, name):
        self.server.send("DELETE", f"{DEFINITIONS}/{name}")
        until(lambda: self.server.send("GET", f"{DEFINITIONS}/{name}")[0] == 404)
