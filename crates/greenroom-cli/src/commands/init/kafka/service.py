"""A service that orders are posted to. 2xx: done. 422: a dead letter. 5xx, or no answer: retried, in order."""
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json

class Orders(BaseHTTPRequestHandler):
    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["content-length"])))
        print(self.headers["ce-subject"], self.headers["ce-id"], data["total"], flush=True)
        self.send_response(422 if data["total"] < 0 else 204)
        self.end_headers()
    def log_message(self, *_): pass

ThreadingHTTPServer(("127.0.0.1", 9000), Orders).serve_forever()
