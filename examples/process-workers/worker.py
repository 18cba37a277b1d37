"""Answers each event with one new event. Run by greenroom's `exec` handler; stdout is for answers alone."""
import json
import sys

for line in sys.stdin:
    job = json.loads(line)
    event = job["event"]
    total = event["data"]["price"] * event["data"]["count"]
    out = {"specversion": "1.0", "id": event["id"] + "-total", "source": "/examples/python",
           "type": "total.computed", "subject": event["subject"], "data": {"total": total}}
    print(json.dumps({"token": job["token"], "outcome": "success", "events": [out]}), flush=True)
