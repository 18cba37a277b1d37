import asyncio
import contextlib
import functools
import io
import unittest
from datetime import timedelta

from greenroom_worker import Reject, Release, Retry, Worker
from greenroom_worker.pattern import covers, parse
from greenroom_worker.testing import event, handle


def quietly(handler, *args, **more):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        outcome = handle(handler, *args, **more)
    return outcome, said.getvalue()


def raising(error):
    def handler(event):
        raise error

    return handler


class Results(unittest.TestCase):
    def test_what_a_handler_returns_decides(self):
        cases = [
            (lambda e: None, "success", 0),
            (lambda e: e, "pass", 0),
            (lambda e: e.derive("x"), "success", 1),
            (lambda e: [e.derive("x"), e], "success", 2),
            (lambda e: (e.derive("x") for _ in range(3)), "success", 3),
            (lambda e: [], "success", 0),
        ]
        for handler, kind, count in cases:
            outcome = handle(handler, event())
            self.assertEqual((outcome.kind, len(outcome.events)), (kind, count))

    def test_an_event_that_was_changed_in_place_goes_on_as_it_is_now(self):
        def handler(event):
            event.data["seen"] = True
            return event

        outcome = handle(handler, event(data={"n": 1}))
        self.assertEqual(outcome.events[0].to_json().count('"seen":true'), 1)

    def test_coroutines_and_asynchronous_generators_work_the_same(self):
        async def one(event):
            await asyncio.sleep(0)
            return event.derive("x")

        async def several(event):
            yield event.derive("x")
            await asyncio.sleep(0)
            yield event.derive("x")

        class Callable:
            async def __call__(self, event):
                return None

        counts = [len(handle(h, event()).events) for h in (one, several, Callable())]
        self.assertEqual(counts, [1, 2, 0])
        self.assertEqual(handle(functools.partial(one), event()).kind, "success")

    def test_an_awaitable_of_a_plain_function_is_a_mistake_that_is_said(self):
        async def inner():
            return None

        self.assertIn("async def", handle(lambda e: inner(), event()).error)

    def test_what_a_handler_raises_decides(self):
        cases = [
            (Retry(after=timedelta(seconds=2)), ("failure", None, 2.0)),
            (Retry("busy", after=0.5), ("failure", "busy", 0.5)),
            (Reject("no"), ("reject", "no", None)),
            (Release(), ("released", None, None)),
            (ValueError("odd"), ("failure", "ValueError: odd", None)),
            (asyncio.CancelledError(), ("failure", "CancelledError", None)),
        ]
        for error, expected in cases:
            outcome, _ = quietly(raising(error), event())
            self.assertEqual((outcome.kind, outcome.error, outcome.retry_after), expected)
            self.assertIs(outcome.exception, error)

    def test_only_what_was_not_expected_has_its_traceback_on_standard_error(self):
        self.assertIn("in handler", quietly(raising(KeyError("x")), event())[1])
        self.assertEqual(quietly(raising(Retry("x")), event())[1], "")

    def test_waits_that_are_none_are_refused(self):
        for after in (-1, float("nan"), float("inf"), 1e12):
            with self.assertRaises(ValueError):
                Retry(after=after)

    def test_an_error_half_way_through_a_generator_sends_nothing(self):
        def handler(event):
            yield event.derive("x")
            raise ValueError("half")

        outcome, _ = quietly(handler, event())
        self.assertEqual((outcome.kind, outcome.events), ("failure", []))

    def test_what_cannot_be_sent_rejects_the_event(self):
        loop = []
        loop.append(loop)
        for data in (float("nan"), object(), loop, {("a",): 1}):
            outcome, _ = quietly(lambda e: e.derive("x", data), event())
            self.assertEqual(outcome.kind, "reject", data)
            self.assertIn("cannot be written", outcome.error)
        outcome, _ = quietly(lambda e: e.derive("x", b"x" * 13_000_000), event())
        self.assertIn("more than 16777216", outcome.error)

    def test_results_of_a_wrong_kind_reject_the_event(self):
        for result in (True, 3, "text", {"a": 1}, [None]):
            self.assertEqual(handle(lambda e: result, event()).kind, "reject", result)

    def test_errors_without_a_proper_text_are_told_all_the_same(self):
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError

        self.assertIn("without a text", quietly(raising(Odd()), event())[0].error)
        outcome, _ = quietly(raising(ValueError("\ud800" * 10_000)), event())
        self.assertEqual(outcome.kind, "failure")


class Types(unittest.TestCase):
    def test_the_most_specific_handler_gets_the_event(self):
        worker = Worker()
        seen = []
        for text in ("order.**", "order.*", "order.placed", "*.placed"):
            worker.on(text)(lambda e, text=text: seen.append(text))
        for type in ("order.placed", "order.changed", "order.line.added", "bill.placed", "order"):
            handle(worker, event(type))
        expected = ["order.placed", "order.*", "order.**", "*.placed", "order.**"]
        self.assertEqual(seen, expected)
        self.assertIn("no handler", handle(worker, event("other")).error)

    def test_patterns_cover_as_those_of_greenroom_do(self):
        cases = [
            ("**", "a.b", True),
            ("a.**", "a", True),
            ("a.**.b", "a.b", True),
            ("a.**.b", "a.x.b.y.b", True),
            ("a.**.b", "a.x", False),
            ("a.*", "a", False),
            ("a.*", "a.b.c", False),
            ("*", "a", True),
            ("**.a.**.b", "x.a.a.b.a", False),
        ]
        for text, type, expected in cases:
            self.assertEqual(covers(parse(text), type), expected, (text, type))

    def test_patterns_that_cannot_be_used_are_refused(self):
        worker = Worker()
        worker.on("a")(print)
        for text in ("", "a..b", "a.b*", "a"):
            with self.assertRaises(ValueError):
                worker.on(text)(print)
        with self.assertRaises(ValueError):
            worker.on(print)
        with self.assertRaises(TypeError):
            worker.on("b")("no function")

    def test_recycling_after_a_part_of_an_event_is_refused(self):
        for wrong in (0, 1.5):
            with self.assertRaises(ValueError):
                Worker(recycle_after=wrong)

    def test_a_worker_gives_its_source_to_what_it_derives(self):
        worker = Worker(source="/prices")
        worker.on("**")(lambda e: e.derive("x"))
        self.assertEqual(handle(worker, event()).events[0].source, "/prices")
        worker.on("test.*")(lambda e: e.replace(subject="b").derive("x"))
        self.assertEqual(handle(worker, event()).events[0].source, "/prices")


if __name__ == "__main__":
    unittest.main()
