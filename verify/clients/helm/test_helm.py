"""Tests of helm: a release from its installation to its removal, with the output that a real cluster causes.

`steps.txt`, `client_side.txt` and `logs.txt` have the commands and their output. The first two are recorded on a
real server; see ../README.md.
"""

import os
import pathlib
import unittest

import simulated_nodes
import steps

FOLDER = pathlib.Path(__file__).parent


class Helm(steps.Steps):
    def test_a_release_with_server_side_apply(self):
        self.run_helm("steps.txt", "helm-steps", 60)

    def test_a_release_with_patches_of_the_client(self):
        self.run_helm("client_side.txt", "helm-client-side", 30)

    @unittest.skipIf(os.environ.get("REAL_KUBECONFIG"), "the simulated nodes of a real server have no logs")
    def test_the_log_of_a_test(self):
        self.run_helm("logs.txt", "helm-logs", 8)

    def run_helm(self, file, namespace, least):
        simulated_nodes.start_on_a_real_server(self)
        self.run_steps(FOLDER / file, namespace, os.environ.get("CONTROLLERS_KUBECONFIG"), least)
