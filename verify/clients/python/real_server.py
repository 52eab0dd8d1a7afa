"""The real kube-apiserver of the tests without faults. Its kubeconfig is REAL_KUBECONFIG.

Its revisions are large numbers, and its own objects use some of them, so tests compare the rank of a revision
among those of their writes.
"""

import bisect
import re
import time
from urllib.parse import parse_qsl, urlsplit

from kubernetes import client, config, watch

from commanded_server import PATIENCE, request_line

WIDGETS = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def require_loopback(host):
    """Fails if the server of a kubeconfig is on another machine."""
    if urlsplit(host).hostname not in ("127.0.0.1", "::1"):
        raise RuntimeError(
            f"{host} is no loopback address; the tests delete objects, so they need a server of their own"
        )


class RealServer:
    """A real server, with the log of the test's requests and the revisions of its writes."""

    def __init__(self, kubeconfig):
        self._configuration = client.Configuration()
        config.load_kube_config(kubeconfig, client_configuration=self._configuration)
        require_loopback(self._configuration.host)
        self._own_client = client.ApiClient(self._configuration)
        self._api = client.CoreV1Api(self._own_client)
        self._api.delete_collection_namespaced_config_map("default")
        left = self._api.list_namespaced_config_map("default")
        assert not left.items, left.items
        # The first write has rank 2, as on the embedded server.
        self._revisions = [int(left.metadata.resource_version)]
        self._requests = []

    def inject(self, plan):
        raise AssertionError(f"a real server has no faults: {plan}")

    def requests(self, resource="configmaps"):
        """Returns the lists and watches of a resource since the last call, one line each."""
        asked = self._requests.copy()
        self._requests.clear()
        return [
            request_line(request | {"resourceVersion": self.rank(request["resourceVersion"])})
            for request in asked
            if request["resource"] == resource
        ]

    def api_client(self):
        """Returns a client of this server."""
        return LoggedClient(self._configuration, self._requests)

    def wrote(self, revision):
        """Records the revision of a write."""
        self._revisions.append(int(revision))

    def deleted(self, name):
        """Records the revision of the deletion of a configmap, which its event has."""
        events = watch.Watch().stream(
            self._api.list_namespaced_config_map,
            "default",
            resource_version=str(self._revisions[-1]),
            field_selector=f"metadata.name={name}",
            _request_timeout=PATIENCE,
        )
        for event in events:
            if event["type"] == "DELETED":
                self.wrote(event["raw_object"]["metadata"]["resourceVersion"])
                return

    def rank(self, revision):
        """Returns the number of writes up to a revision, plus one.

        Does not replace revisions before the test, and texts that are no revision.
        """
        if not revision or int(revision) < self._revisions[0]:
            return revision
        return str(bisect.bisect_right(self._revisions, int(revision)))

    def at(self, rank):
        """Returns the revision of a rank."""
        return str(self._revisions[rank - 1])

    def serve_widgets(self):
        """Creates the custom kind Widget, waits until clients can discover it, and returns its removal."""
        definitions = client.ApiextensionsV1Api(self._own_client)
        definitions.create_custom_resource_definition(WIDGETS)
        until = time.monotonic() + PATIENCE
        while not self._serves_widgets():
            if time.monotonic() > until:
                raise TimeoutError("the kind Widget is not served")
            time.sleep(0.05)
        return lambda: definitions.delete_custom_resource_definition("widgets.example.com")

    def _serves_widgets(self):
        groups = client.ApisApi(self._own_client).get_api_versions().groups
        if "example.com" not in [group.name for group in groups]:
            return False
        try:
            client.CustomObjectsApi(self._own_client).list_cluster_custom_object(
                "example.com", "v1", "widgets"
            )
        except client.ApiException as e:
            if e.status == 404:
                return False
            raise
        return True

    def close(self):
        """Closes the connections and returns 0, as if the server had ended."""
        self._own_client.close()
        return 0


class LoggedClient(client.ApiClient):
    """A client that adds its lists and watches to a log."""

    COLLECTION = re.compile(r"/apis?(?:/[^/]+){1,2}(?:/namespaces/[^/]+)?/([^/]+)")

    def __init__(self, configuration, log):
        super().__init__(configuration)
        self._log = log

    def call_api(self, method, url, *arguments, **options):
        parts = urlsplit(url)
        path = self.COLLECTION.fullmatch(parts.path)
        if method != "GET" or not path:
            return super().call_api(method, url, *arguments, **options)
        query = dict(parse_qsl(parts.query))
        logged = {
            "verb": "watch" if "watch" in query else "list",
            "resource": path[1],
            "resourceVersion": query.get("resourceVersion"),
            "sendInitialEvents": query.get("sendInitialEvents"),
            "continue": query.get("continue"),
            "status": 0,
        }
        self._log.append(logged)
        response = super().call_api(method, url, *arguments, **options)
        logged["status"] = response.status
        return response
