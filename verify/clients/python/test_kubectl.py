"""Tests of kubectl: the commands of a user, with the output that a real cluster causes.

The files `kubectl/*.txt` have the commands and their output. They are recorded on a real server:
`RECORD=1 bash realserver/run ...`; see README.md.
"""

import os
import pathlib

import simulated_nodes
import steps

FOLDER = pathlib.Path(__file__).parent / "kubectl"

# Minimum number of commands in each file.
COMMANDS = 60


class Kubectl(steps.Steps):
    def test_the_commands_of_a_new_user(self):
        self.run_steps(FOLDER / "steps.txt", "kubectl-steps", os.environ.get("SERVE_KUBECONFIG"), COMMANDS)

    def test_the_commands_of_several_managers(self):
        self.run_steps(FOLDER / "apply.txt", "kubectl-apply", os.environ.get("SERVE_KUBECONFIG"), 50)

    def test_the_commands_of_a_user_of_deployments_and_jobs(self):
        simulated_nodes.start_on_a_real_server(self)
        kubeconfig = os.environ.get("CONTROLLERS_KUBECONFIG")
        self.run_steps(FOLDER / "controllers.txt", "kubectl-rollouts", kubeconfig, COMMANDS)
