#!/usr/bin/env python3
"""What exporting by OTLP costs: processor time per event at a fixed rate, with and without.

usage: measure.py GREENROOM [--rate N] [--seconds N] [--rounds N] [--workers N] [--sample SHARE] [--every TIME]

GREENROOM is a binary that was built with the feature `otlp`. Each round runs it twice, without and with `telemetry`, in turn
first; events come from a generator and their handler does nothing. The receiver is a process of its own. It prints
each round, and the median of the ratios with the least and the greatest. A run that does not keep to the rate, or whose spans
do not arrive, is an error.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONFIG = """
inputs: {{ in: {{ generator: {{ count: {count}, rate: {rate}/s, keys: 10000 }} }} }}
pools: {{ default: {{ workers: {workers} }} }}
handlers: {{ all: {{ on: "**", order_by: subject, drop: {{}} }} }}
"""
OTLP = "telemetry: {{ otlp: {{ endpoint: 'http://127.0.0.1:{port}', sample: {sample}, every: {every} }} }}\n"


def receive(told, requests):
    """Takes all that it is sent, and counts the requests for traces."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/v1/traces":
                with requests.get_lock():
                    requests.value += 1
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.put(server.server_address[1])
    server.serve_forever()


def run(options, directory, telemetry):
    """Processor time per event of one run, in nanoseconds."""
    count = options.rate * options.seconds
    config = pathlib.Path(directory) / "greenroom.yaml"
    config.write_text(CONFIG.format(count=count, rate=options.rate, workers=options.workers) + telemetry)
    command = [options.greenroom, "run", str(config), "--report", "json", "--log-level", "warn"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    report = json.loads(child.stdout.read())
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0 or report["handled"] != count:
        sys.exit(f"the run failed with {child.returncode}: {report}")
    if report["elapsed_s"] > options.seconds * 1.05 + 1:
        sys.exit(f"it did not keep to the rate: {report['elapsed_s']} s for {options.seconds} s; lower --rate")
    return (used.ru_utime + used.ru_stime) / count * 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("greenroom")
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--workers", type=int, default=1_024)
    parser.add_argument("--sample", type=float, default=0.01)
    parser.add_argument("--every", default="1s")
    options = parser.parse_args()
    options.greenroom = os.path.abspath(options.greenroom)
    told, requests = multiprocessing.Queue(), multiprocessing.Value("q", 0)
    receiver = multiprocessing.Process(target=receive, args=(told, requests), daemon=True)
    receiver.start()
    telemetry = OTLP.format(port=told.get(), sample=options.sample, every=options.every)
    ratios = []
    with tempfile.TemporaryDirectory() as directory:
        for round_ in range(options.rounds):
            order = ["", telemetry] if round_ % 2 == 0 else [telemetry, ""]
            took = {text: run(options, directory, text) for text in order}
            ratios.append(took[telemetry] / took[""])
            print(f"round {round_ + 1}: {took['']:.0f} ns off, {took[telemetry]:.0f} ns on, {ratios[-1]:.3f}", flush=True)
    receiver.terminate()
    if options.sample > 0 and requests.value == 0:
        sys.exit("no spans arrived")
    median = statistics.median(ratios)
    print(f"on / off: {median:.3f} ({min(ratios):.3f} to {max(ratios):.3f}), {requests.value} requests with spans")


if __name__ == "__main__":
    main()
