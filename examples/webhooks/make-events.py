#!/usr/bin/env python3
"""Writes events.ndjson and secrets.json, the data of this example: the same bytes every time.

Run it in this directory, or give the directory to write to: python3 make-events.py [DIRECTORY]

Twenty endpoints have six webhooks each. One of them, ep_13, never answers. The secrets are made up: a real one comes
from a generator of random bytes, and stands in no repository.
"""
import base64
import hashlib
import json
import os
import sys

ENDPOINTS, EACH, DEAD, PORT = 20, 6, "ep_13", 9180


def secret(endpoint):
    return "whsec_" + base64.b64encode(hashlib.sha256(endpoint.encode()).digest()).decode()


def events(endpoints):
    for n in range(1, EACH + 1):
        for endpoint in endpoints:
            path = "dead" if endpoint == DEAD else "hooks"
            url = f"http://127.0.0.1:{PORT}/{path}/{endpoint}"
            yield {"specversion": "1.0", "id": f"{endpoint}-{n:02}", "source": "/billing", "type": "webhook.due",
                   "subject": endpoint, "data": {"endpoint": {"id": endpoint, "url": url}, "number": n}}


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "."
    endpoints = [f"ep_{n:02}" for n in range(1, ENDPOINTS + 1)]
    with open(os.path.join(directory, "events.ndjson"), "w", encoding="ascii", newline="\n") as out:
        for event in events(endpoints):
            out.write(json.dumps(event, separators=(",", ":")) + "\n")
    with open(os.path.join(directory, "secrets.json"), "w", encoding="ascii", newline="\n") as out:
        # The last endpoint gets another secret: until it knows only that one, both sign.
        secrets = {endpoint: secret(endpoint) for endpoint in endpoints}
        secrets[endpoints[-1]] = [secret(endpoints[-1]), secret(endpoints[-1] + " next")]
        json.dump(secrets, out, indent=1)
        out.write("\n")


main()
