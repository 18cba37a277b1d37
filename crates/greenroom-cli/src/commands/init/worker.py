"""A worker: one event per line on standard input, one answer per line on standard output.

Use standard error for your own messages; they go to the log. The end of standard input means: finish and exit.
"""

import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    event = request["event"]
    answer = {"token": request["token"], "outcome": "pass"}  # handled: the event goes to the outputs
    if event["type"] == "order.placed" and event["data"]["total"] < 0:
        # No attempt will help: a dead letter. "failure" instead of "reject" would be retried.
        answer = {"token": request["token"], "outcome": "reject", "error": "the total is below zero"}
    print(json.dumps(answer), flush=True)
