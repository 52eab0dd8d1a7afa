"""One server for each test: a child of this process that fails on command.

It ends with its standard input, so none is left behind, however a test ends.
"""

import json
import os
import subprocess
import threading
import urllib.request

from kubernetes import client

# Seconds that anything may take before a test gives up.
PATIENCE = 30


class CommandedServer:
    """A server, the pipe that asks for its requests, and the address that takes its faults."""

    def __init__(self):
        path = os.environ.get("COMMANDED_SERVER")
        if not path:
            raise RuntimeError(
                "COMMANDED_SERVER must name the example commanded_server, built;"
                " verify/clients/run does that"
            )
        self._child = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        # A server that does not answer must not hold up the tests.
        self._late = threading.Timer(5 * PATIENCE, self._child.kill)
        self._late.daemon = True
        self._late.start()
        self.url = self._child.stdout.readline().strip()

    def inject(self, plan):
        """Adds a fault plan; its actions have happened when this returns."""
        request = urllib.request.Request(self.url + "/faults", data=plan.encode())
        with urllib.request.urlopen(request, timeout=PATIENCE):
            pass

    def requests(self, resource="configmaps"):
        """The lists and watches of a resource since the last call, a line each."""
        self._child.stdin.write("requests\n")
        self._child.stdin.flush()
        asked = json.loads(self._child.stdout.readline())
        return [
            _line(request)
            for request in asked
            if request["resource"] == resource and request["verb"] in ("list", "watch")
        ]

    def api_client(self):
        """A client of this server."""
        configuration = client.Configuration()
        configuration.host = self.url
        return client.ApiClient(configuration)

    def close(self):
        """Ends the server, and says whether it ended well."""
        self._child.stdin.close()
        code = self._child.wait(PATIENCE)
        self._late.cancel()
        self._child.stdout.close()
        return code


def _line(request):
    line = request["verb"]
    if request["sendInitialEvents"]:
        line += " all"
    if request["resourceVersion"]:
        line += f" from {request['resourceVersion']}"
    if request["continue"]:
        line += " continued"
    if request["status"] != 200:
        line += f" -> {request['status']}"
    return line
