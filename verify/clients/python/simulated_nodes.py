"""Two simulated nodes and a scheduler, for a real kube-apiserver with kube-controller-manager and without kubelets.

They do what the loops `scheduler` and `node-agent` of `serve --controllers` do, as far as `kubectl/controllers.txt`
needs it, so that a real server can record its output.
"""

import datetime
import os
import threading
import time

from kubernetes import client, config

NODES = ["node-1", "node-2"]

# Seconds between two looks at all pods.
PAUSE = 0.1

CONDITIONS = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"]


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def start_on_a_real_server(test):
    """Starts the nodes if REAL_KUBECONFIG names a server, until the end of the test."""
    real = os.environ.get("REAL_KUBECONFIG")
    if real:
        nodes = SimulatedNodes(real)
        nodes.start()
        test.addCleanup(nodes.stop)


class SimulatedNodes(threading.Thread):
    def __init__(self, kubeconfig):
        super().__init__(daemon=True)
        self.api = client.CoreV1Api(config.new_client_from_config(kubeconfig))
        self.ended = threading.Event()
        self.started = {}
        for name in NODES:
            node = {"metadata": {"name": name}}
            self.api.create_node(node)
            room = {"cpu": "32", "memory": "64Gi", "pods": "1000"}
            ready = [{"type": "Ready", "status": "True"}]
            self.api.patch_node_status(name, {"status": {"capacity": room, "allocatable": room, "conditions": ready}})

    def run(self):
        while not self.ended.wait(PAUSE):
            cordoned = {node.metadata.name for node in self.api.list_node().items if node.spec.unschedulable}
            for pod in self.api.list_pod_for_all_namespaces().items:
                try:
                    self.look_at(pod, [name for name in NODES if name not in cordoned])
                except client.ApiException as error:
                    # Another controller has changed or deleted the pod; the next look sees it.
                    if error.status not in (404, 409):
                        raise

    def stop(self):
        self.ended.set()
        self.join()
        for name in NODES:
            self.api.delete_node(name)

    def look_at(self, pod, nodes):
        name, namespace = pod.metadata.name, pod.metadata.namespace
        if pod.metadata.deletion_timestamp:
            self.api.delete_namespaced_pod(name, namespace, grace_period_seconds=0)
        elif not pod.spec.node_name:
            target = {"apiVersion": "v1", "kind": "Node", "name": nodes[hash(name) % len(nodes)]}
            binding = {"metadata": {"name": name}, "target": target}
            self.api.create_namespaced_binding(namespace, binding, _preload_content=False)
        elif pod.status.phase == "Pending":
            never = (pod.metadata.annotations or {}).get("kubectl-informer/ready-delay") == "never"
            self.started[pod.metadata.uid] = time.monotonic()
            self.write(pod, "Running", {"running": {"startedAt": now()}}, not never)
        elif pod.status.phase == "Running":
            self.end_if_due(pod)

    def end_if_due(self, pod):
        annotations = pod.metadata.annotations or {}
        seconds = annotations.get("kubectl-informer/run-time", "inf").rstrip("s")
        if time.monotonic() - self.started[pod.metadata.uid] < float(seconds):
            return
        code = int(annotations.get("kubectl-informer/exit-code", "0"))
        state = {"terminated": {"exitCode": code, "finishedAt": now(), "reason": "Error" if code else "Completed"}}
        self.write(pod, "Failed" if code else "Succeeded", state, False)

    def write(self, pod, phase, state, ready):
        of_ready = {"status": "True" if ready else "False", "lastTransitionTime": now()}
        containers = [
            {"name": it.name, "image": it.image, "imageID": "", "ready": ready, "restartCount": 0, "state": state}
            for it in pod.spec.containers
        ]
        status = {
            "phase": phase,
            "conditions": [{"type": kind, **of_ready} for kind in CONDITIONS],
            "containerStatuses": containers,
        }
        self.api.patch_namespaced_pod_status(pod.metadata.name, pod.metadata.namespace, {"status": status})
