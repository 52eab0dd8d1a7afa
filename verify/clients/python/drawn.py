"""Draws objects from the schemas of definitions: mostly valid ones, with a few errors in many places.

The same seed always draws the same objects from the same definitions.
"""

import random
import re

# Texts that patterns, formats and rules of everyday definitions accept or reject.
TEXTS = [
    *("a", "", "A", "a-b", "a.b", "example.com", "10.0.0.1", "fe80::1", "5m", "1h", "1Gi", "100m"),
    *("-1", "0", "5%", "*.example.com", "http://example.com/a", "/path", "2020-01-01T00:00:00Z", "GET", "Exact"),
    *("a" * 70, "a" * 300, "x/y", "x:1", "=", "1.5", "true", "Kind", "apps", "v1", "é", "{}", "a_b", "YQ=="),
    "user@example.com",
]
ORDINARY = TEXTS[:12]

NO_TYPE = [1, "x", None, {}, {"a": 1}, [1]]
WRONG = [None, 1, "x", [], {}, True, 1.5, [None], {"a": 1}]
WRONG_NUMBERS = [0, -1, 2**31 - 1, 2**31, 2**53, 65536, 1.5, "1", True]
IN_FORMAT = {"date-time": "2020-01-01T00:00:00Z", "byte": "YQ=="}


class Draw:
    """A source of objects."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        # The part of the optional properties that an object has.
        self._density = 0.25

    def request(self, definitions):
        """Returns the path and the object of a request that creates an object of one of the kinds."""
        spec = self._random.choice(definitions)["spec"]
        version = self._random.choice([version for version in spec["versions"] if version["served"]])
        self._density = self._random.choice([0.12, 0.25, 0.45])
        drawn = self._members(version["schema"]["openAPIV3Schema"], 1)
        drawn["apiVersion"] = f"{spec['group']}/{version['name']}"
        drawn["kind"] = spec["names"]["kind"]
        drawn["metadata"] = {"name": "x"}
        namespace = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
        validation = self._random.choice(["Strict", "Warn", "Ignore", "Ignore"])
        collection = f"/apis/{drawn['apiVersion']}{namespace}/{spec['names']['plural']}"
        return f"{collection}?dryRun=All&fieldValidation={validation}", drawn

    def _happens(self, probability):
        return self._random.random() < probability

    def _value(self, schema, depth):
        if self._happens(0.012):
            return self._random.choice(WRONG)
        if schema.get("x-kubernetes-int-or-string"):
            return self._random.choice([1, "5%", "x", 0, -1, 80])
        match schema.get("type"):
            case "string":
                return self._text(schema)
            case "integer" | "number":
                return self._number(schema)
            case "boolean":
                return self._happens(0.5)
            case "array":
                number = self._random.choice([0, 1, 1, 1, 2, 2, 3])
                if self._happens(0.8):
                    number = max(number, schema.get("minItems", 0))
                return [self._value(schema.get("items", {}), depth + 1) for _ in range(number)]
            case "object":
                return self._members(schema, depth)
        return self._random.choice(NO_TYPE)

    def _members(self, schema, depth):
        if schema.get("x-kubernetes-embedded-resource") and self._happens(0.7):
            kind = self._random.choice(["Pod", "ConfigMap"])
            return {"apiVersion": "v1", "kind": kind, "metadata": {"name": self._random.choice(TEXTS)}}
        members = {}
        required = schema.get("required", [])
        for name, property in schema.get("properties", {}).items():
            if depth == 1 and name in ("apiVersion", "kind", "metadata"):
                continue
            probability = self._density / (1 + depth * 0.35)
            if name in required or (depth == 1 and name == "spec"):
                probability = 0.96
            if self._happens(probability):
                members[name] = self._value(property, depth + 1)
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            for _ in range(self._random.choice([0, 1, 2])):
                members[self._random.choice(ORDINARY)] = self._value(others, depth + 1)
        if schema.get("x-kubernetes-preserve-unknown-fields") or self._happens(0.03):
            members[self._random.choice(["unknown", "é"])] = self._random.choice(NO_TYPE)
        return members

    def _text(self, schema):
        fits = schema.get("enum", [])
        if not fits and schema.get("format") in IN_FORMAT:
            fits = [IN_FORMAT[schema["format"]]]
        if not fits and "pattern" in schema:
            fits = [text for text in TEXTS if matches(schema["pattern"], text)]
        if fits and self._happens(0.8):
            return self._random.choice(fits)
        return self._random.choice(ORDINARY if self._happens(0.7) else TEXTS)

    def _number(self, schema):
        least = int(schema.get("minimum", 0))
        most = max(least, int(schema.get("maximum", least + 100)))
        if self._happens(0.75):
            return self._random.randint(least, most)
        return self._random.choice([least - 1, most + 1, *WRONG_NUMBERS])


def matches(pattern, text):
    """Returns whether a pattern of Go matches, and false if Python can't read it."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False
