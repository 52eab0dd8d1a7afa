"""Scripts of commands with their output, which a real server causes and the embedded server must cause too.

A script has a command in each line that starts with `$ `, and its output in the lines after it. It is recorded on
a real server: `RECORD=1 bash realserver/run ...`; see README.md.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

# What differs between two runs on the same server.
CHANGING = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000 UTC"), "<time>"),
    (re.compile(r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\b"), "<time>"),
    (re.compile(r'resourceVersion: "\d+"'), 'resourceVersion: "<revision>"'),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "<address>"),
    (re.compile(r"/tmp/\S+"), "<file>"),
    # The hash of a pod template, and the random end of a pod's name.
    (re.compile(r"\b(web)-[bcdfghjklmnpqrstvwxz2456789]{6,10}(-[a-z0-9]{5})?\b"), r"\1-<hash>"),
    (re.compile(r"pod-template-hash=\w+"), "pod-template-hash=<hash>"),
    (re.compile(r"\b\d+m?\d*s$", re.M), "<age>"),
]

# Maximum time of a command in seconds. Each takes less than 1 s.
COMMAND_MAX = 60


def read(steps):
    """Returns the lines of the steps in groups: a comment, an empty line, or a command with its output."""
    groups = []
    for line in steps.read_text().splitlines():
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
        rest = re.sub(r" {2,}", "  ", re.sub(r" +\t", "\t", line.strip()))
        if rest:
            lines.append("  " + line[:indent] + rest)
    return lines


def run(command, folder, environment):
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_MAX,
    )


class Steps(unittest.TestCase):
    """A test that runs the commands of a script in a folder, one after another."""

    def run_steps(self, steps, namespace, kubeconfig, least):
        """Runs the commands, the last of which deletes `namespace`, and compares their output.

        Fails if the script has fewer commands than `least`.
        """
        self.maxDiff = None
        real, record = os.environ.get("REAL_KUBECONFIG"), os.environ.get("RECORD")
        if record and not real:
            self.fail("RECORD needs a real server: the output of the embedded server is not recorded")
        with tempfile.TemporaryDirectory() as home:
            path = pathlib.Path(home) / "config"
            shutil.copy(real or kubeconfig, path)
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": home,
                "KUBECONFIG": str(path),
                "LC_ALL": "C.UTF-8",
            }
            groups, results = read(steps), []
            self.assertGreaterEqual(sum(group[0].startswith("$ ") for group in groups), least)
            self.check_is_new(namespace, environment)
            for group in groups:
                results.append(self.run_step(group, steps.parent, environment))
        expected = [line for group in groups for line in group]
        lines = [line for group in results for line in group]
        if record:
            steps.write_text("\n".join(lines) + "\n")
            return
        self.assertEqual("\n".join(lines), "\n".join(expected))

    def check_is_new(self, namespace, environment):
        """Fails if the server has the namespace of an earlier run.

        A server without controllers never removes a namespace that is being deleted.
        """
        done = run(f"kubectl get namespace {namespace} --ignore-not-found -o name", "/", environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        found = done.stdout.strip()
        self.assertEqual(found, "", f"the server has {found} of an earlier run; use a new server")

    def run_step(self, group, folder, environment):
        if not group[0].startswith("$ "):
            return group
        done = run(group[0][2:], folder, environment)
        lines = shown(done.stdout)
        if done.returncode:
            lines.append(f"  exit code {done.returncode}")
        return [group[0]] + lines
