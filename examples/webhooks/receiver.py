#!/usr/bin/env python3
"""The endpoints of this example, all in one: those of /hooks check the signature, those of /dead never answer.

Run it beside greenroom: python3 receiver.py
It prints the line `webhook ENDPOINT NUMBER` for each webhook that it takes.
"""
import base64
import hashlib
import hmac
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 9180
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "secrets.json"), encoding="ascii") as file:
    SECRETS = json.load(file)
FOREVER = threading.Event()


def is_signed(headers, body, endpoint):
    """As https://www.standardwebhooks.com has it: one of the signatures is made with a secret that is known."""
    known = SECRETS[endpoint]
    # One endpoint knows its next secret only.
    secret = known if isinstance(known, str) else known[-1]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, one) for one in headers["webhook-signature"].split(" "))


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        _, kind, endpoint = self.path.split("/")
        if kind == "dead":
            FOREVER.wait()
        taken = is_signed(self.headers, body, endpoint)
        if taken:
            # In one piece: other threads print, too.
            print(f"webhook {endpoint} {json.loads(body)['number']}\n", end="", flush=True)
        self.send_response(204 if taken else 400)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


Server(("127.0.0.1", PORT), Endpoint).serve_forever()
