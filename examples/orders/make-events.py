#!/usr/bin/env python3
"""Writes events.ndjson, the data of this example: the same bytes every time.

Run it in this directory, or give the file to write: python3 make-events.py [FILE]

A shop's morning: orders that are placed, paid, packed and shipped; prices that change; stock that moves; and at
its end, audits. In it are three things that every real stream has:
  - the events of one order (order-0042, which is audited twelve times) take far longer than all others,
  - one event (a recount for a warehouse that is closed) cannot be handled, ever,
  - one line is not JSON: its writer died in the middle of it.
"""
import json
import random
import sys

ORDERS, STEPS = 300, ["placed", "paid", "packed", "shipped"]
SKUS, PRICES, STOCK, AUDITS = 80, 1000, 600, 12
POISON_AT, TORN_AT = 700, 1500
START = 9 * 3600  # the first event is of nine o'clock

chance = random.Random(2026)


def pick(n):
    """A number below n. Only random() is promised to give the same numbers in every version of Python."""
    return int(chance.random() * n)


def order_lines():
    """Each order's steps in their order, the orders interleaved as customers would have it."""
    place = {}
    for order in range(1, ORDERS + 1):
        at = chance.random()
        for step in STEPS:
            place[order, step] = at
            at += 0.02 + chance.random() * 0.2
    for order, step in sorted(place, key=lambda key: (place[key], key)):
        subject = f"order-{order:04}"
        yield "/shop", f"order.{step}", subject, {"order": subject, "step": step, "total": 10 + pick(200)}


def price_lines():
    for _ in range(PRICES):
        sku = f"sku-{1 + pick(SKUS):03}"
        yield "/pricing", "price.changed", sku, {"sku": sku, "price": 100 + pick(900)}


def stock_lines():
    for n in range(STOCK):
        sku = f"sku-{1 + pick(SKUS):03}"
        kind = "low" if n % 200 == 199 else "checked" if n % 3 == 0 else "moved"
        yield "/warehouse", f"inventory.{kind}", sku, {"sku": sku, "change": pick(21) - 10}


def audit_lines():
    """Audits of orders. Twelve are of one order, the slow key; the others are of an order each."""
    for n in range(AUDITS):
        yield "/finance", "order.audited", "order-0042", {"order": "order-0042", "page": n + 1}
        other = f"order-{100 + n:04}"
        yield "/finance", "order.audited", other, {"order": other, "page": 1}


def shuffled(*streams):
    """All streams in one, each in its own order."""
    streams, lines = [list(stream) for stream in streams], []
    while any(streams):
        left = pick(sum(map(len, streams)))
        for stream in streams:
            if left < len(stream):
                lines.append(stream.pop(0))
                break
            left -= len(stream)
    return lines


def event(number, source, kind, subject, data):
    at = START + number * 2
    time = f"2026-01-05T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z"
    envelope = {"specversion": "1.0", "id": f"e{number:05}", "source": source, "type": kind, "subject": subject,
                "time": time, "datacontenttype": "application/json", "data": data}
    return json.dumps(envelope, separators=(",", ":"))


def main():
    lines = [*shuffled(order_lines(), price_lines(), stock_lines()), *audit_lines()]
    lines.insert(POISON_AT, ("/warehouse", "inventory.recounted", "sku-013", {"sku": "sku-013", "warehouse": "closed"}))
    text = [event(number, *line) for number, line in enumerate(lines, 1)]
    text[TORN_AT] = text[TORN_AT][:90]
    with open(sys.argv[1] if len(sys.argv) > 1 else "events.ndjson", "w", encoding="ascii", newline="\n") as out:
        out.write("\n".join(text) + "\n")


main()
