"""A test of kubectl: the commands of a new user, with the output that a real kube-apiserver causes.

`kubectl/steps.txt` has the commands and their output. It is recorded on a real server:
`RECORD=1 bash realserver/run ...`; see README.md.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).parent / "kubectl"
STEPS = FOLDER / "steps.txt"

# The namespace of the steps, which the last step deletes.
NAMESPACE = "kubectl-steps"

# What differs between two runs on the same server.
CHANGING = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r'resourceVersion: "\d+"'), 'resourceVersion: "<revision>"'),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "<address>"),
    (re.compile(r"/tmp/\S+"), "<file>"),
    (re.compile(r"\b\d+m?\d*s$", re.M), "<age>"),
]

# Maximum time of a command in seconds. Each takes less than 1 s.
COMMAND_MAX = 60


def read():
    """Returns the lines of the steps in groups: a comment, an empty line, or a command with its output."""
    groups = []
    for line in STEPS.read_text().splitlines():
        starts = not line or line.startswith(("# ", "$ ")) or not groups or not groups[-1][0].startswith("$ ")
        if starts:
            groups.append([line])
        else:
            groups[-1].append(line)
    return groups


def shown(text):
    """Returns the output in lines, without what changes, and with single spaces between columns."""
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    lines = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        rest = re.sub(r" {2,}", "  ", line.strip())
        if rest:
            lines.append("  " + line[:indent] + rest)
    return lines


def run(command, environment):
    return subprocess.run(
        ["bash", "-c", command],
        cwd=FOLDER,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_MAX,
    )


class Kubectl(unittest.TestCase):
    def test_the_commands_of_a_new_user(self):
        self.maxDiff = None
        real, record = os.environ.get("REAL_KUBECONFIG"), os.environ.get("RECORD")
        if record and not real:
            self.fail("RECORD needs a real server: the output of the embedded server is not recorded")
        with tempfile.TemporaryDirectory() as home:
            kubeconfig = pathlib.Path(home) / "config"
            shutil.copy(real or os.environ["SERVE_KUBECONFIG"], kubeconfig)
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": home,
                "KUBECONFIG": str(kubeconfig),
                "LC_ALL": "C.UTF-8",
            }
            groups, results = read(), []
            self.assertGreaterEqual(sum(group[0].startswith("$ ") for group in groups), 40)
            self.check_is_new(environment)
            for group in groups:
                results.append(self.run_step(group, environment))
        expected = [line for group in groups for line in group]
        lines = [line for group in results for line in group]
        if record:
            STEPS.write_text("\n".join(lines) + "\n")
            return
        self.assertEqual("\n".join(lines), "\n".join(expected))

    def check_is_new(self, environment):
        """Fails if the server has the namespace of an earlier run.

        A server without controllers never removes a namespace that is being deleted.
        """
        done = run(f"kubectl get namespace {NAMESPACE} --ignore-not-found -o name", environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        found = done.stdout.strip()
        self.assertEqual(found, "", f"the server has {found} of an earlier run; use a new server")

    def run_step(self, group, environment):
        if not group[0].startswith("$ "):
            return group
        done = run(group[0][2:], environment)
        lines = shown(done.stdout)
        if done.returncode:
            lines.append(f"  exit code {done.returncode}")
        return [group[0]] + lines
