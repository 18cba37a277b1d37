#!/usr/bin/env python3
"""Writes events.ndjson, the data of this example: the same bytes every time.

Run it in this directory, or give the file to write: python3 make-events.py [FILE]

First acme, which posts 1,000 events of 250 orders at once. Behind them stand bolt, which has paid for more, with 160
events, and eight others with ten each.
"""
import json
import sys

STEPS = ["placed", "paid", "packed", "shipped"]


def lines():
    for tenant, orders in [("acme", 250), ("bolt", 40)]:
        for step in STEPS:
            for order in range(1, orders + 1):
                yield tenant, f"{tenant}-{order:03}", step
    for n in range(10):
        for tenant in ["cobalt", "delta", "ember", "fjord", "garnet", "harbor", "indigo", "jasper"]:
            yield tenant, f"{tenant}-{n % 2 + 1:03}", (STEPS * 2)[n // 2 % 4]


def event(number, tenant, order, step):
    return json.dumps({"specversion": "1.0", "id": f"t{number:05}", "source": "/shop", "type": f"order.{step}",
                       "subject": order, "data": {"tenant": tenant, "step": step}}, separators=(",", ":"))


with open(sys.argv[1] if len(sys.argv) > 1 else "events.ndjson", "w", encoding="ascii", newline="\n") as out:
    for number, line in enumerate(lines(), 1):
        out.write(event(number, *line) + "\n")
