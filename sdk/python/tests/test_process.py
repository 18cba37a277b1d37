"""Workers as processes, with this test in greenroom's place."""

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
UNDER_GREENROOM = {"GREENROOM_PROTOCOL": "1", "PYTHONUNBUFFERED": "1"}
HEAD = "from greenroom_worker import *\nimport os, sys, time, asyncio, threading\n"


class Process:
    """A worker with this program, and what it is told and tells."""

    def __init__(self, program: str, *options: str, stdin=subprocess.PIPE, env=UNDER_GREENROOM):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8")
        self.file.write(HEAD + program)
        self.file.flush()
        self.process = subprocess.Popen(
            [sys.executable, *options, self.file.name],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": ROOT, **env},
        )
        self.token = 0

    def send(self, data=None, **attributes):
        self.token += 1
        event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": data}
        line = {"token": str(self.token), "attempt": 1, "event": {**event, **attributes}}
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        line = json.loads(self.process.stdout.readline())
        if "heartbeat" not in line:
            assert line["token"] == str(self.token), line
        return line

    def ask(self, data=None, **attributes):
        self.send(data, **attributes)
        return self.answer()

    def end(self):
        """Closes its standard input: the code, what else it printed, and its standard error."""
        out, err = self.process.communicate(timeout=20)
        self.file.close()
        return self.process.returncode, out.decode(), err.decode()


class Processes(unittest.TestCase):
    def test_events_are_answered_until_standard_input_ends(self):
        worker = Process("run(lambda e: [e.derive('x', e.data)] * e.data)\nprint('cleaned up')")
        for count in (2, 0, 1):
            answer = worker.ask(count)
            self.assertEqual(len(answer.get("events", [])), count)
        code, out, err = worker.end()
        self.assertEqual((code, out), (0, ""))
        self.assertIn("cleaned up", err)

    def test_a_worker_is_told_the_fence_of_an_event_which_keeps_its_text(self):
        worker = Process("run(lambda e: e.derive('x', [e.fence, e.raw]))")
        event = '{"specversion":"1.0","id":"1","source":"/s","type":"t","data":1.50}'
        line = f'{{"token":"1","attempt":1,"greenroom-fence":7,"event":{event}}}\n'
        worker.process.stdin.write(line.encode())
        worker.process.stdin.flush()
        worker.token = 1
        self.assertEqual(worker.answer()["events"][0]["data"], [7, event])
        self.assertEqual(worker.ask()["events"][0]["data"][0], None)
        self.assertEqual(worker.end()[0], 0)

    def test_the_first_worker_of_the_readme_works(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            program = file.read().split("```python\n")[1].split("```")[0]
        worker = Process(program)
        answer = worker.ask({"price": 7, "count": 2}, subject="a")
        made = answer["events"][0]
        self.assertEqual((made["type"], made["subject"]), ("price.set", "a"))
        self.assertEqual(made["data"], {"total": 14})
        self.assertEqual(worker.ask({"count": 0})["error"], "nothing was ordered")
        self.assertEqual(worker.end()[0], 0)

    def test_what_user_code_prints_and_reads_does_not_touch_the_protocol(self):
        program = """
print("before")
def handler(event):
    assert "GREENROOM_PROTOCOL" not in os.environ
    print("printed \\ud800", flush=True)
    os.system("echo from a child; cat")
    os.write(1, b"raw\\n")
    assert sys.stdin.read() == ""
    return event
run(handler)
"""
        worker = Process(program)
        for _ in range(2):
            self.assertEqual(worker.ask()["outcome"], "pass")
        code, out, err = worker.end()
        self.assertEqual((code, out), (0, ""))
        for said in ("before", "printed", "from a child", "raw"):
            self.assertIn(said, err)

    def test_a_failure_is_told_and_its_traceback_is_on_standard_error(self):
        worker = Process("def f(event):\n    raise ValueError('odd')\nrun(f)")
        answer = worker.ask()
        self.assertEqual((answer["outcome"], answer["error"]), ("failure", "ValueError: odd"))
        code, _, err = worker.end()
        self.assertEqual(code, 0)
        self.assertIn("Traceback", err)

    def test_retries_have_their_time_in_whole_milliseconds(self):
        worker = Process("def f(event):\n    raise Retry('busy', after=0.0501)\nrun(f)")
        answer = worker.ask()
        self.assertEqual(answer["retry_after_ms"], 51)
        worker.end()

    def test_large_lines_and_every_text_go_both_ways(self):
        worker = Process("run(lambda e: e.derive('x', e.data))")
        for data in ("x" * 5_000_000, "ü\u2028\u2029\r\U0001f600", "\ud800", 1e300, 2**80):
            self.assertEqual(worker.ask(data)["events"][0]["data"], data)
        self.assertEqual(worker.end()[0], 0)

    def test_an_error_text_is_always_what_greenroom_can_read(self):
        worker = Process("def f(event):\n    raise Reject('\\ud800' + 'x' * 100_000)\nrun(f)")
        answer = worker.ask()
        self.assertTrue(answer["error"].startswith("?") and len(answer["error"]) == 4096)
        worker.end()

    def test_an_event_that_is_nested_too_deeply_is_rejected_and_ends_no_process(self):
        for handler in ("def f(event): return event", "async def f(event): return event"):
            worker = Process(f"{handler}\nrun(f)")
            for depth in (900, 1_000, 5_000, 200_000):
                worker.token += 1
                data = "[" * depth + "]" * depth
                event = f'{{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{data}}}'
                line = f'{{"token":"{worker.token}","attempt":1,"event":{event}}}\n'
                worker.process.stdin.write(line.encode())
                worker.process.stdin.flush()
                answer = worker.answer()
                if depth >= 1_000:
                    self.assertEqual(answer["outcome"], "reject", answer)
                    self.assertIn("nested too deeply", answer["error"])
            self.assertEqual(worker.ask()["outcome"], "pass")
            self.assertEqual(worker.end()[0], 0)

    def test_a_worker_that_is_out_of_memory_answers_and_ends(self):
        program = """
import resource
kept = []
def handler(event):
    if event.data:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (1 << 28, most))
        while True:
            kept.append(bytearray(1 << 20))
    return event
"""
        asynchronous = program.replace("def handler", "async def handler")
        for handler in (program, asynchronous):
            worker = Process(handler + "run(handler)")
            self.assertEqual(worker.ask()["outcome"], "pass")
            answer = worker.ask(True)
            self.assertEqual((answer["outcome"], answer["error"]), ("failure", "MemoryError"))
            self.assertEqual(worker.process.wait(20), 0)
            self.assertIn("out of memory", worker.end()[2])

    def test_a_line_that_does_not_fit_into_memory_is_answered_and_ends_the_process(self):
        program = """
import json
def full(*given, **named):
    raise MemoryError
run(lambda event: setattr(json, "loads", full))
"""
        worker = Process(program)
        self.assertEqual(worker.ask()["outcome"], "success")
        self.assertEqual(worker.ask()["error"], "MemoryError")
        self.assertEqual(worker.process.wait(20), 0)
        worker.end()

    def test_at_sigterm_what_is_in_hand_is_finished(self):
        program = """
def handler(event):
    print("begun", file=sys.stderr, flush=True)
    time.sleep(0.2)
    return event
"""
        asynchronous = program.replace("def", "async def").replace("time.", "await asyncio.")
        for handler in (program, asynchronous):
            worker = Process(handler + "run(handler)\nprint('cleaned up')")
            worker.send()
            self.assertEqual(worker.process.stderr.readline(), b"begun\n")
            worker.process.send_signal(signal.SIGTERM)
            self.assertEqual(worker.answer()["outcome"], "pass")
            self.assertEqual(worker.process.wait(20), 0)
            self.assertIn("cleaned up", worker.end()[2])

    def test_an_idle_worker_ends_at_sigterm(self):
        for handler in ("def f(event): return event", "async def f(event): return event"):
            worker = Process(handler + "\nrun(f)")
            worker.ask()
            worker.process.send_signal(signal.SIGTERM)
            self.assertEqual(worker.process.wait(20), 0)
            worker.end()

    def test_a_worker_that_is_to_be_recycled_ends_with_code_0(self):
        worker = Process("run(lambda e: e, recycle_after=2)")
        worker.ask()
        worker.ask()
        self.assertEqual(worker.process.wait(20), 0)
        worker.end()

    def test_a_handler_that_ends_the_process_is_a_crash(self):
        for leaving, code in (("sys.exit(0)", 1), ("sys.exit(7)", 7), ("os._exit(9)", 9)):
            for head in ("def", "async def"):
                worker = Process(f"{head} f(event):\n    {leaving}\nrun(f)")
                worker.send()
                self.assertEqual(worker.process.wait(20), code)
                self.assertEqual(worker.end()[1], "")

    def test_a_line_that_is_no_event_ends_the_worker_with_a_reason(self):
        for line in (b"hello\n", b'{"specversion":"1.0"}\n', b'{"token":"1","attempt":1,"event":{}}\n'):
            worker = Process("run(print)")
            worker.process.stdin.write(line)
            code, out, err = worker.end()
            self.assertEqual((code, out), (1, ""))
            self.assertIn("no event from greenroom", err)

    def test_an_unfinished_line_at_the_end_is_no_event(self):
        worker = Process("run(lambda e: print('called'))")
        worker.process.stdin.write(b'{"token":"1","attempt":1,"event":{"specversion"')
        self.assertEqual(worker.end(), (0, "", ""))

    def test_in_a_terminal_a_worker_says_what_to_do_instead(self):
        master, terminal = pty.openpty()
        worker = Process("run(print)", stdin=terminal, env={})
        code, out, err = worker.end()
        os.close(master)
        os.close(terminal)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("exec: { command:", err)
        self.assertIn("greenroom run", err)

    def test_tasks_of_an_asynchronous_worker_run_between_its_events(self):
        program = """
ticks = 0
async def tick():
    global ticks
    while True:
        ticks += 1
        await asyncio.sleep(0.001)
async def handler(event):
    return event.derive("x", ticks)
async def main():
    task = asyncio.create_task(tick())
    worker = Worker()
    worker.on("**")(handler)
    await worker.serve()
asyncio.run(main())
"""
        worker = Process(program)
        first = worker.ask()["events"][0]["data"]
        while worker.ask()["events"][0]["data"] < first + 20:
            pass
        self.assertEqual(worker.end()[0], 0)

    def test_heartbeats_come_while_an_event_is_in_hand(self):
        worker = Process("run(lambda e: time.sleep(e.data), heartbeat=0.02)")
        worker.send(0.3)
        beats = 0
        while "heartbeat" in worker.answer():
            beats += 1
        self.assertGreater(beats, 1)
        self.assertEqual(worker.end()[:2], (0, ""))

    def test_a_worker_whose_greenroom_is_gone_ends(self):
        worker = Process("run(lambda e: e)")
        worker.process.stdout.close()
        worker.send()
        self.assertEqual(worker.process.wait(20), 1)
        self.assertIn(b"greenroom is gone", worker.process.stderr.read())
        worker.process.stderr.close()
        worker.process.stdin.close()
        worker.file.close()

    def test_by_hand_what_was_printed_before_is_kept_from_the_answers_as_far_as_it_is_buffered(self):
        worker = Process("print('before')\nrun(lambda e: e)", env={"PYTHONUNBUFFERED": ""})
        self.assertEqual(worker.ask()["outcome"], "pass")
        self.assertIn("before", worker.end()[2])

    def test_a_worker_without_handlers_says_so(self):
        code, _, err = Process("Worker().run()").end()
        self.assertEqual(code, 1)
        self.assertIn("no handler", err)


if __name__ == "__main__":
    unittest.main()
