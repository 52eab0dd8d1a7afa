"""Tests of the official Python client: lists, pages, watches, their ends, and 410."""

import logging
import os
import queue
import unittest

import urllib3
from kubernetes import client, config, dynamic, informer, watch

from commanded_server import PATIENCE, CommandedServer
from real_server import RealServer


# The informer logs every end of a watch with a stack trace.
logging.disable(logging.CRITICAL)


def configmap(name, **labels):
    return {
        "metadata": {"name": name, "labels": labels},
        "data": {"settings": "x" * 150},
    }


def start():
    """Starts the embedded server, or connects to the real one."""
    kubeconfig = os.environ.get("REAL_KUBECONFIG")
    return RealServer(kubeconfig) if kubeconfig else CommandedServer()


class Scene(unittest.TestCase):
    """A server with configmap `a`, at revision 2."""

    def setUp(self):
        self.server = start()
        self.addCleanup(lambda: self.assertEqual(self.server.close(), 0))
        self.api = client.CoreV1Api(self.server.api_client())
        self.addCleanup(self.api.api_client.close)
        self.create("a")

    def create(self, *names):
        for name in names:
            self.create_labelled(name)

    def create_labelled(self, name, **labels):
        made = self.api.create_namespaced_config_map("default", configmap(name, **labels))
        self.server.wrote(made.metadata.resource_version)

    def label(self, name, **labels):
        patch = {"metadata": {"labels": labels}}
        patched = self.api.patch_namespaced_config_map(name, "default", patch)
        self.server.wrote(patched.metadata.resource_version)

    def delete(self, name):
        self.api.delete_namespaced_config_map(name, "default")
        self.server.deleted(name)

    def other(self, name):
        """Uses a revision that no watch of configmaps receives."""
        self.api.create_node({"metadata": {"name": name}})

    def events(self, watching=None, **options):
        """Returns the events of a watch, by default without a server timeout."""
        watching = watching or watch.Watch()
        # A read that times out fails the test.
        options.setdefault("_request_timeout", PATIENCE)
        return watching.stream(self.api.list_namespaced_config_map, "default", **options)

    def line(self, event):
        metadata = event["raw_object"]["metadata"]
        revision = self.server.rank(metadata["resourceVersion"])
        return f"{event['type']} {metadata.get('name', '')} {revision}"

    def expect(self, events, *lines):
        self.assertEqual([self.line(next(events)) for _ in lines], list(lines))


class Lists(Scene):
    def test_pages_have_one_revision(self):
        self.create("b", "c", "d", "e")
        page = self.api.list_namespaced_config_map("default", limit=2)
        self.assertEqual(page.metadata.remaining_item_count, 3)
        names = [item.metadata.name for item in page.items]
        self.create("aa")
        self.delete("e")
        while page.metadata._continue:
            page = self.api.list_namespaced_config_map(
                "default", limit=2, _continue=page.metadata._continue
            )
            self.assertEqual(self.server.rank(page.metadata.resource_version), "6")
            names += [item.metadata.name for item in page.items]
        self.assertEqual(names, ["a", "b", "c", "d", "e"])

    def test_an_expired_page_is_rejected_with_410(self):
        self.create("b")
        page = self.api.list_namespaced_config_map("default", limit=1)
        self.create("c")
        self.server.inject("expire history")
        with self.assertRaises(client.ApiException) as raised:
            self.api.list_namespaced_config_map(
                "default", limit=1, _continue=page.metadata._continue
            )
        self.assertEqual(raised.exception.status, 410)
        self.assertIn('"reason":"Expired"', raised.exception.body)

    def test_a_request_with_retry_after_is_retried(self):
        self.server.requests()
        self.server.inject("list configmaps: 429 retry-after=1 x2")
        self.assertEqual(len(self.api.list_namespaced_config_map("default").items), 1)
        self.assertEqual(self.server.requests(), ["list -> 429", "list -> 429", "list"])

    def test_a_rejection_without_retry_after_is_an_error(self):
        self.server.inject("list configmaps: 429 x1")
        with self.assertRaises(client.ApiException) as raised:
            self.api.list_namespaced_config_map("default")
        self.assertEqual(raised.exception.status, 429)


class Watches(Scene):
    def test_a_watch_from_a_list_delivers_every_change_once(self):
        listed = self.api.list_namespaced_config_map("default")
        self.create("b")
        events = self.events(resource_version=listed.metadata.resource_version)
        self.expect(events, "ADDED b 3")
        self.label("a", x="y")
        self.delete("b")
        self.expect(events, "MODIFIED a 4", "DELETED b 5")
        self.assertEqual(self.server.requests(), ["list", "watch from 2"])

    def test_a_watch_without_a_revision_starts_with_the_existing_objects(self):
        self.create("b")
        events = self.events()
        self.expect(events, "ADDED a 2", "ADDED b 3")
        self.create("c")
        self.expect(events, "ADDED c 4")

    def test_a_cut_watch_is_resumed(self):
        self.server.requests()
        events = self.events(resource_version="2")
        self.create("b")
        self.expect(events, "ADDED b 3")
        self.server.inject("freeze watch *")
        self.create("c")
        self.server.inject("cut watch *; thaw watch *")
        self.delete("a")
        self.expect(events, "ADDED c 4", "DELETED a 5")
        self.assertEqual(self.server.requests(), ["watch from 2", "watch from 3"])

    def test_a_broken_connection_is_an_error_and_keeps_the_revision(self):
        watching = watch.Watch()
        events = self.events(watching, resource_version="2")
        self.create("b")
        self.expect(events, "ADDED b 3")
        self.server.inject("freeze watch *")
        self.create("c")
        self.server.inject("break watch *; thaw watch *")
        with self.assertRaises(urllib3.exceptions.ProtocolError):
            next(events)
        events = self.events(watching, resource_version=watching.resource_version)
        self.expect(events, "ADDED c 4")

    def test_a_revision_that_is_too_old_is_retried_once_and_is_then_an_error(self):
        self.server.requests()
        events = self.events(resource_version="2")
        self.create("b")
        self.expect(events, "ADDED b 3")
        self.server.inject("freeze watch *")
        self.create("c")
        self.server.inject("expire history; cut watch *; thaw watch *")
        with self.assertRaises(client.ApiException) as raised:
            next(events)
        self.assertEqual(raised.exception.status, 410)
        self.assertEqual(
            raised.exception.reason, "Expired: too old resource version: 3 (4)"
        )
        self.assertEqual(
            self.server.requests(), ["watch from 2", "watch from 3", "watch from 3"]
        )
        events = self.events()
        self.expect(events, "ADDED a 2", "ADDED b 3", "ADDED c 4")

    def test_the_timeout_ends_a_watch(self):
        events = self.events(resource_version=self.server.at(1), timeout_seconds=1)
        self.assertEqual([self.line(event) for event in events], ["ADDED a 2"])

    def test_a_streaming_list_ends_with_its_bookmark(self):
        self.create("b")
        events = self.events(
            send_initial_events=True,
            resource_version_match="NotOlderThan",
            allow_watch_bookmarks=True,
        )
        self.expect(events, "ADDED a 2", "ADDED b 3")
        bookmark = next(events)
        self.assertEqual(self.line(bookmark), "BOOKMARK  3")
        annotations = bookmark["raw_object"]["metadata"]["annotations"]
        self.assertEqual(annotations, {"k8s.io/initial-events-end": "true"})
        self.create("c")
        self.expect(events, "ADDED c 4")

    def test_a_watch_resumes_from_a_bookmark(self):
        self.server.requests()
        watching = watch.Watch()
        events = self.events(watching, resource_version="2", allow_watch_bookmarks=True)
        self.create("b")
        self.expect(events, "ADDED b 3")
        self.other("n")
        self.server.inject("send bookmarks to watch *")
        self.expect(events, "BOOKMARK  4")
        self.server.inject("expire history; cut watch *")
        self.create("c")
        self.expect(events, "ADDED c 5")
        self.assertEqual(self.server.requests(), ["watch from 2", "watch from 4"])

    def test_a_watch_with_a_selector_delivers_objects_that_start_and_stop_matching(self):
        events = self.events(resource_version=self.server.at(2), label_selector="app=web")
        self.create_labelled("b", app="web")
        self.label("b", app="db")
        self.label("a", app="web")
        self.expect(events, "ADDED b 3", "DELETED b 4", "ADDED a 5")


class Informers(Scene):
    def setUp(self):
        super().setUp()
        self.told = queue.Queue()
        self.informer = informer.SharedInformer(
            self.api.list_namespaced_config_map, namespace="default"
        )
        for event_type in (informer.ADDED, informer.MODIFIED, informer.DELETED):
            self.informer.add_event_handler(event_type, self.tell(event_type))
        self.informer.start()
        self.addCleanup(self.informer.stop)
        self.expect_told("ADDED a 2")

    def tell(self, event_type):
        def handler(it):
            metadata = it.metadata
            self.told.put(f"{event_type} {metadata.name} {metadata.resource_version}")

        return handler

    def expect_told(self, *lines):
        self.assertEqual([self.told.get(timeout=PATIENCE) for _ in lines], list(lines))

    def test_an_informer_resumes_after_a_cut_watch(self):
        self.create("b")
        self.expect_told("ADDED b 3")
        self.server.inject("freeze watch *")
        self.create("c")
        self.server.inject("cut watch *; thaw watch *")
        self.delete("a")
        self.expect_told("ADDED c 4", "DELETED a 5")
        self.assertEqual(self.informer.cache.list_keys(), ["default/b", "default/c"])
        self.assertEqual(self.server.requests()[:2], ["list", "watch from 2"])

    def test_an_informer_lists_again_when_its_revision_is_too_old(self):
        self.create("b")
        self.expect_told("ADDED b 3")
        self.server.inject("freeze watch *")
        self.create("c")
        self.delete("a")
        self.server.inject("expire history; cut watch *; thaw watch *")
        self.expect_told("DELETED a 2", "MODIFIED b 3", "ADDED c 4")
        self.create("d")
        self.expect_told("ADDED d 6")


class Others(Scene):
    def test_the_dynamic_client_discovers_and_watches_a_custom_kind(self):
        self.addCleanup(self.server.serve_widgets())
        found = dynamic.DynamicClient(self.api.api_client)
        widgets = found.resources.get(api_version="example.com/v1", kind="Widget")
        body = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w"},
            "spec": {"size": 7},
        }
        before = widgets.get(namespace="default").metadata.resourceVersion
        made = widgets.create(body=body, namespace="default")
        self.server.wrote(made.metadata.resourceVersion)
        listed = widgets.get(namespace="default")
        self.assertEqual([item.spec.size for item in listed.items], [7])
        events = widgets.watch(namespace="default", resource_version=before, timeout=1)
        self.assertEqual([self.line(event) for event in events], ["ADDED w 3"])

    def test_serve_accepts_a_client_of_its_kubeconfig(self):
        path = os.environ["SERVE_KUBECONFIG"]
        with config.new_client_from_config(path) as api_client:
            version = client.VersionApi(api_client).get_code()
            self.assertTrue(version.git_version.startswith("v1.36."), version)
            namespaces = client.CoreV1Api(api_client).list_namespace()
            names = [item.metadata.name for item in namespaces.items]
            self.assertIn("default", names)


if __name__ == "__main__":
    unittest.main()
