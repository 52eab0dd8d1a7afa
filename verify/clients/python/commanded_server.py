"""The embedded server of a test: a child process that accepts fault plans.

It ends when its standard input is closed, so it ends with the process of the test.
"""

import json
import os
import subprocess
import threading
import urllib.request

from kubernetes import client

# Timeout of every wait in a test, in seconds.
PATIENCE = 30


class CommandedServer:
    """A server, with the pipe that returns its requests and the URL that accepts its faults."""

    def __init__(self):
        path = os.environ.get("COMMANDED_SERVER")
        if not path:
            raise RuntimeError(
                "COMMANDED_SERVER must name the built example commanded_server;"
                " verify/clients/run sets it"
            )
        self._child = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        # A server that does not respond must not block the tests.
        self._late = threading.Timer(5 * PATIENCE, self._child.kill)
        self._late.daemon = True
        self._late.start()
        self.url = self._child.stdout.readline().strip()

    def inject(self, plan):
        """Adds a fault plan. Its actions take effect before this returns."""
        request = urllib.request.Request(self.url + "/faults", data=plan.encode())
        with urllib.request.urlopen(request, timeout=PATIENCE):
            pass

    def requests(self, resource="configmaps"):
        """Returns the lists and watches of a resource since the last call, one line each."""
        self._child.stdin.write("requests\n")
        self._child.stdin.flush()
        asked = json.loads(self._child.stdout.readline())
        return [
            request_line(request)
            for request in asked
            if request["resource"] == resource and request["verb"] in ("list", "watch")
        ]

    def api_client(self):
        """Returns a client of this server."""
        configuration = client.Configuration()
        configuration.host = self.url
        return client.ApiClient(configuration)

    # The first write has revision 2, each write increases the revision by one, and the server has the kind
    # Widget. A real server differs, see real_server.py.

    def wrote(self, revision):
        pass

    def deleted(self, name):
        pass

    def rank(self, revision):
        return revision

    def at(self, rank):
        return str(rank)

    def serve_widgets(self):
        return lambda: None

    def close(self):
        """Ends the server and returns its exit code."""
        self._child.stdin.close()
        code = self._child.wait(PATIENCE)
        self._late.cancel()
        self._child.stdout.close()
        return code


def request_line(request):
    """Returns a request as a line of text."""
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
