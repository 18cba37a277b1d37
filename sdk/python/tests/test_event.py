import copy
import json
import pickle
import unittest
from datetime import datetime, timedelta, timezone

from greenroom_worker import Event
from greenroom_worker.testing import event


def parsed(data_member: str, **attributes) -> Event:
    head = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", **attributes}
    return Event.from_json(json.dumps(head)[:-1] + data_member + "}")


class Events(unittest.TestCase):
    def test_attributes_and_extensions_are_typed(self):
        found = parsed("", subject="a", tenant="x", size=3, hot=True, gone=None)
        self.assertEqual((found.subject, found.time), ("a", None))
        self.assertEqual(dict(found.extensions), {"tenant": "x", "size": 3, "hot": True})

    def test_binary_data_is_decoded_when_it_is_asked_for(self):
        self.assertEqual(parsed(',"data_base64":"/wA="').data, b"\xff\x00")
        found = parsed(',"data_base64":"eyJhIjoxfQ=="', datacontenttype="application/json")
        self.assertEqual(found.data, {"a": 1})
        broken = parsed(',"data_base64":"%%"')
        with self.assertRaises(ValueError):
            broken.data

    def test_an_event_keeps_its_text_until_its_data_is_changed(self):
        text = '{"specversion":"1.0","id":"1","source":"/s","type":"t","data": {"n": 1.50}}'
        found = Event.from_json(text)
        self.assertEqual(found.data["n"], 1.5)
        self.assertEqual(found.to_json(), text)
        found.data["n"] = 2
        self.assertEqual(json.loads(found.to_json())["data"], {"n": 2})

    def test_writing_and_reading_gives_the_same_event(self):
        for data in [None, 1, "tëxt\u2028\ud800", {"a": [1.5, None]}, b"\x00\xff", 2**70]:
            made = event(data=data, subject="s", extensions={"tenant": "x"})
            self.assertEqual(Event.from_json(made.to_json()), made)
            made.to_json().encode("utf-8")

    def test_numbers_that_json_has_not_are_refused_either_way(self):
        for number in [float("nan"), float("inf")]:
            with self.assertRaises(ValueError):
                event(data={"n": number}).to_json()
        with self.assertRaises(ValueError):
            parsed(',"data":NaN')

    def test_an_event_does_not_change(self):
        made = event(data={})
        with self.assertRaises(AttributeError):
            made.subject = "x"
        with self.assertRaises(TypeError):
            made.extensions["a"] = "b"

    def test_what_cloudevents_does_not_allow_is_refused_at_once(self):
        for attributes in [{"id": ""}, {"extensions": {"Tenant": "x"}}, {"extensions": {"data": 1}}]:
            with self.assertRaises(ValueError):
                event(**attributes)
        for attributes in [{"subject": 3}, {"id": None, "time": 3}, {"extensions": {"a": 1.5}}]:
            with self.assertRaises((TypeError, ValueError)):
                event(**attributes)
        for text in ["[]", '{"specversion":"0.3"}', '{"specversion":"1.0","id":"1"}']:
            with self.assertRaises(ValueError):
                Event.from_json(text)

    def test_a_derived_event_has_the_same_id_at_each_attempt(self):
        first = [parsed("", subject="a").derive(type).id for type in ("x", "x", "y")]
        self.assertEqual(len(set(first)), 2, "each of these is the first of its kind")
        cause = parsed("", subject="a")
        ids = [cause.derive(type).id for type in ("x", "x", "y")]
        self.assertEqual(len(set(ids)), 3)
        self.assertEqual(ids[0], first[0])
        # The test of the package for Node has the same.
        self.assertEqual(event("a.b").derive("x").id, "43ee13ef-2832-572b-b71d-5122df979065")

    def test_a_derived_event_has_the_subject_of_its_cause_and_its_own_time(self):
        made = parsed("", subject="a").derive("x", {"n": 1})
        self.assertEqual((made.type, made.subject, made.data), ("x", "a", {"n": 1}))
        self.assertLess(datetime.now(timezone.utc) - made.timestamp, timedelta(minutes=1))
        self.assertIsNone(parsed("", subject="a").derive("x", subject=None).subject)

    def test_replace_keeps_what_is_not_named(self):
        found = parsed(',"data":{"n":1}', subject="a", tenant="x")
        made = found.replace(subject="b", extensions={"tenant": None, "zone": "y"})
        self.assertEqual((made.id, made.subject, made.data), ("1", "b", {"n": 1}))
        self.assertEqual(dict(made.extensions), {"zone": "y"})

    def test_replace_keeps_the_text_of_data_that_it_does_not_touch(self):
        data = '{"n":0.12345678901234567890123,"m":1.10,"big":1E400}'
        found = parsed(',"data":' + data)
        made = found.replace(subject="b")
        self.assertTrue(made.to_json().endswith('"subject":"b","data":' + data + "}"))
        self.assertIn(data, made.replace(subject="c").to_json())
        self.assertIn(data, pickle.loads(pickle.dumps(made)).to_json())
        self.assertEqual(json.loads(found.replace(data=1).to_json())["data"], 1)
        self.assertEqual(found.to_json(), found.raw)

    def test_replace_keeps_the_text_of_binary_data(self):
        found = parsed(',"data_base64":"eyJhIjoxLjEwfQ=="', datacontenttype="application/json")
        self.assertIn('"eyJhIjoxLjEwfQ=="', found.replace(subject="b").to_json())
        self.assertEqual(found.data, {"a": 1.1})
        self.assertIn('"data":{"a":1.10}', found.replace(subject="b").to_json())

    def test_data_that_is_changed_in_place_around_a_replace_goes_on_as_it_is_now(self):
        for first, then in [(1, 2), (1, True), (1, 1.0)]:
            found = parsed(f',"data":{{"n":{first}}}')
            made = found.replace(subject="b")
            made.data["n"] = then
            for event_ in (found, made, made.replace(subject="c")):
                self.assertIn(f'"data":{{"n":{json.dumps(then)}}}', event_.to_json())

    def test_the_text_of_data_is_found_only_where_it_is_the_last_member(self):
        head = '"specversion":"1.0","id":"1","source":"/s","type":"t"'
        for text in ['{"data":{"a":1,"data":2},%s}', '{"a":"b","data":{"a":1,"data":2},%s}']:
            made = Event.from_json(text % head).replace(subject="b")
            self.assertEqual(json.loads(made.to_json())["data"], {"a": 1, "data": 2})

    def test_replace_refuses_what_is_no_attribute(self):
        with self.assertRaises(TypeError):
            event().replace(Foo="x")

    def test_times_are_read_with_their_offset(self):
        for text, expected in [
            ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=timezone.utc)),
            (
                "2026-01-31t12:00:60.1234567+01:30",
                datetime(2026, 1, 31, 10, 30, 59, 123456, tzinfo=timezone.utc),
            ),
        ]:
            self.assertEqual(event(time=text).timestamp, expected)
        with self.assertRaises(ValueError):
            event(time=datetime(2026, 1, 31))

    def test_events_can_be_copied_and_sent_to_other_processes(self):
        found = parsed(',"data":[1]', subject="a")
        self.assertEqual(copy.copy(found), found)
        self.assertEqual(pickle.loads(pickle.dumps(found)), found)


if __name__ == "__main__":
    unittest.main()
