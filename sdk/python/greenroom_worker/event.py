"""CloudEvents 1.0, as a worker reads and makes them."""

from __future__ import annotations

import base64
import json
import re
import uuid
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any, Dict, Mapping, NoReturn, Optional, Union

#: What an extension attribute may be.
ExtensionValue = Union[str, bool, int]

#: Of the ids that are made from those of other events. The package for Node has the same one.
_NAMESPACE = uuid.UUID("6f0a3b52-8f2e-5c1d-9a77-3d1f5e8b2c40")

_OPTIONAL = ("subject", "time", "datacontenttype", "dataschema")
_KNOWN = frozenset(("specversion", "id", "source", "type", "data", "data_base64") + _OPTIONAL)
_NAME = re.compile(r"[a-z0-9]+")
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))"
)
_JSON_TYPE = re.compile(r"[^;]*[/+]json\s*(;|$)", re.IGNORECASE)
_UNCHANGED: Any = object()

#: What greenroom writes before the data, its last member. No attribute has this in its text.
_BEFORE_DATA = ',"data":'

#: JSON without the numbers that JSON has not: NaN and the infinities are refused.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class Event:
    """One CloudEvent. It does not change; :meth:`derive` and :meth:`replace` make new ones.

    :param id: with ``source`` it names the event among all others
    :param source: where it comes from, as a URI reference such as ``/shop``
    :param type: what has happened, such as ``order.placed``
    :param data: what JSON can hold, or ``bytes``; ``None`` for none
    :param time: a :class:`~datetime.datetime` or an RFC 3339 text
    :param extensions: further attributes; their names are lower-case letters and digits
    :raises ValueError: an attribute is empty or has a name that CloudEvents does not allow
    :raises TypeError: an attribute has a type that CloudEvents does not allow
    """

    __slots__ = (
        "id",
        "source",
        "type",
        "subject",
        "time",
        "datacontenttype",
        "dataschema",
        "extensions",
        "attempt",
        "fence",
        "_data",
        "_base64",
        "_was_read",
        "_raw",
        "_data_text",
        "_made_by",
        "_derived",
    )

    id: str
    source: str
    type: str
    subject: Optional[str]
    #: RFC 3339, as it came; :attr:`timestamp` has it as a datetime.
    time: Optional[str]
    datacontenttype: Optional[str]
    dataschema: Optional[str]
    extensions: Mapping[str, ExtensionValue]
    #: Which attempt this is, from 1.
    attempt: int
    #: Higher in each later assignment of the event's partition, also in another process.
    fence: Optional[int]

    def __init__(
        self,
        *,
        id: str,
        source: str,
        type: str,
        data: Any = None,
        subject: Optional[str] = None,
        time: Union[str, datetime, None] = None,
        datacontenttype: Optional[str] = None,
        dataschema: Optional[str] = None,
        extensions: Optional[Mapping[str, ExtensionValue]] = None,
    ) -> None:
        if isinstance(time, datetime):
            time = _rfc3339(time)
        extensions = dict(extensions or {})
        for name in extensions:
            if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _KNOWN:
                raise ValueError(
                    f"{name!r} is no name for an extension: use lower-case letters and digits"
                )
        values = {
            "id": id,
            "source": source,
            "type": type,
            "subject": subject,
            "time": time,
            "datacontenttype": datacontenttype,
            "dataschema": dataschema,
        }
        self._fill(values, extensions, data, None, None, 1, None)

    def _fill(
        self,
        values: Mapping[str, Any],
        extensions: Dict[str, Any],
        data: Any,
        base64_text: Optional[str],
        raw: Optional[str],
        attempt: int,
        made_by: Optional[str],
    ) -> None:
        put = object.__setattr__
        for name in ("id", "source", "type"):
            put(self, name, _required(name, values.get(name)))
        for name in _OPTIONAL:
            put(self, name, _optional(name, values.get(name)))
        for name, value in extensions.items():
            if not isinstance(value, (str, bool, int)):
                raise TypeError(
                    f"the extension `{name}` must be a str, a bool or an int, "
                    f"not {_kind(value)}"
                )
        put(self, "extensions", MappingProxyType(extensions))
        put(self, "attempt", attempt)
        put(self, "fence", None)
        put(self, "_data", data)
        put(self, "_base64", base64_text)
        put(self, "_was_read", False)
        put(self, "_raw", raw)
        put(self, "_data_text", "")
        put(self, "_made_by", made_by)
        put(self, "_derived", {})

    @classmethod
    def from_json(
        cls, text: Union[str, bytes], *, attempt: int = 1, made_by: Optional[str] = None
    ) -> Event:
        """The event of this text in the JSON format of CloudEvents.

        :raises ValueError: the text is no JSON or no CloudEvent
        :raises TypeError: an attribute has a wrong type
        """
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return cls._from_members(parse_json(text), text, attempt, made_by)

    @classmethod
    def _from_members(
        cls,
        members: Any,
        raw: Optional[str],
        attempt: int,
        made_by: Optional[str],
        fence: Optional[int] = None,
    ) -> Event:
        if not isinstance(members, dict) or members.get("specversion") != "1.0":
            raise ValueError('no CloudEvent: "specversion" is not "1.0"')
        extensions = {
            name: value
            for name, value in members.items()
            if name not in _KNOWN and value is not None
        }
        event = cls.__new__(cls)
        event._fill(
            members,
            extensions,
            members.get("data"),
            members.get("data_base64"),
            raw,
            attempt,
            made_by,
        )
        object.__setattr__(event, "fence", fence)
        return event

    @property
    def data(self) -> Any:
        """The data: what JSON can hold, or ``bytes``. ``None`` where the event has none.

        Binary data is decoded when it is first asked for; binary data of a JSON content type
        becomes what the JSON says.

        :raises ValueError: binary data is not what its content type says
        """
        if self._base64 is not None:
            decoded = base64.b64decode(self._base64, validate=True)
            is_json = self.datacontenttype and _JSON_TYPE.match(self.datacontenttype)
            object.__setattr__(self, "_data", parse_json(decoded) if is_json else decoded)
            object.__setattr__(self, "_base64", None)
            if is_json:
                object.__setattr__(self, "_data_text", decoded.decode("utf-8", "replace"))
        object.__setattr__(self, "_was_read", True)
        return self._data

    @property
    def raw(self) -> str:
        """The event as JSON text: as it came, or as it will go."""
        return self.to_json() if self._raw is None else self._raw

    @property
    def timestamp(self) -> Optional[datetime]:
        """:attr:`time` as a datetime with its offset, to the microsecond; a leap second as the
        second before.

        :raises ValueError: ``time`` is no RFC 3339 time
        """
        return None if self.time is None else _moment(self.time)

    def derive(
        self,
        type: str,
        data: Any = None,
        *,
        id: Optional[str] = None,
        source: Optional[str] = None,
        subject: Any = _UNCHANGED,
        time: Union[str, datetime, None] = None,
        datacontenttype: Optional[str] = None,
        dataschema: Optional[str] = None,
        extensions: Optional[Mapping[str, ExtensionValue]] = None,
    ) -> Event:
        """A new event that this one has led to.

        Its ``source`` is the worker's, its ``subject`` that of this event, its ``time`` now. Its
        ``id`` follows from this event and the new type, so that another attempt at this event
        makes the same id, and whoever reads both can tell. greenroom adds the extensions
        ``correlationid``, ``causationid`` and ``traceparent``.
        """
        if id is None:
            count = self._derived.get(type, 0) + 1
            self._derived[type] = count
            id = _id_of(self.source, self.id, type, count)
        return Event(
            id=id,
            source=source or self._made_by or "/workers",
            type=type,
            data=data,
            subject=self.subject if subject is _UNCHANGED else subject,
            time=time or datetime.now(timezone.utc),
            datacontenttype=datacontenttype,
            dataschema=dataschema,
            extensions=extensions,
        )

    def replace(self, **changes: Any) -> Event:
        """This event with other attributes or other data: the same id from the same source.

        ``extensions`` are added to those of the event; one that is ``None`` is taken away. Data
        that is not replaced keeps its text, with all digits of its numbers.

        :raises TypeError: a name that is no attribute
        """
        values = {name: getattr(self, name) for name in ("id", "source", "type") + _OPTIONAL}
        values.update(changes)
        extensions = {**self.extensions, **(changes.get("extensions") or {})}
        values["extensions"] = {n: v for n, v in extensions.items() if v is not None}
        event = Event(**values)
        object.__setattr__(event, "_made_by", self._made_by)
        if "data" not in changes:
            put = object.__setattr__
            put(event, "_data", self._data)
            put(event, "_base64", self._base64)
            came = (self._raw or "").partition(_BEFORE_DATA)[2][:-1]
            put(event, "_data_text", self._data_text or came)
            # Both events share the data now: a change in place through one changes the other.
            put(self, "_was_read", True)
        return event

    def to_dict(self) -> Dict[str, Any]:
        """The members of the JSON format."""
        members: Dict[str, Any] = {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type,
        }
        for name in _OPTIONAL:
            value = getattr(self, name)
            if value is not None:
                members[name] = value
        members.update(self.extensions)
        if self._base64 is not None:
            members["data_base64"] = self._base64
        elif isinstance(self._data, (bytes, bytearray, memoryview)):
            members["data_base64"] = base64.b64encode(self._data).decode("ascii")
        elif self._data is not None:
            members["data"] = self._data
        return members

    def to_json(self) -> str:
        """The event in the JSON format, on one line; an event that came in and was not changed
        keeps its text.

        :raises ValueError: the data has NaN or an infinity, or contains itself
        :raises TypeError: the data has something that JSON cannot hold
        """
        if self._raw is not None and not self._is_changed():
            return self._raw
        members = self.to_dict()
        if "data" not in members or not _says(self._data_text, self._data):
            return _encoded(members)
        del members["data"]
        return f"{_encoded(members)[:-1]}{_BEFORE_DATA}{self._data_text}}}"

    def _is_changed(self) -> bool:
        """Whether a handler has changed the data in place, which nothing keeps it from."""
        if self._raw is None or not self._was_read or not isinstance(self._data, (dict, list)):
            return False
        return not _is_same(Event.from_json(self._raw).data, self._data)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an event does not change; use event.replace({name}=..)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("an event does not change")

    def __reduce__(self) -> Any:
        return _restored, (self.to_json(), self.attempt, self._made_by, self.fence)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.source, self.id))

    def __repr__(self) -> str:
        return f"Event(id={self.id!r}, source={self.source!r}, type={self.type!r})"


def parse_json(text: Union[str, bytes]) -> Any:
    """What JSON says, and nothing that Python takes for JSON beside it (``NaN``)."""
    return json.loads(text, parse_constant=_refuse_constant)


def _encoded(members: Mapping[str, Any]) -> str:
    text = _ENCODER.encode(members)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8, but an escape.
        text = _ASCII_ENCODER.encode(members)
    return text


def _says(text: str, data: Any) -> bool:
    """Whether this is JSON and says this data."""
    try:
        return bool(text) and _is_same(parse_json(text), data)
    except ValueError:
        return False


def _is_same(came: Any, data: Any) -> bool:
    """Whether both are the same JSON. For ``==``, ``1``, ``1.0`` and ``True`` are the same."""
    try:
        return json.dumps(came) == json.dumps(data)
    except (TypeError, ValueError, RecursionError):
        return False


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _restored(
    text: str, attempt: int, made_by: Optional[str], fence: Optional[int] = None
) -> Event:
    event = Event.from_json(text, attempt=attempt, made_by=made_by)
    object.__setattr__(event, "fence", fence)
    return event


def _required(name: str, value: Any) -> str:
    text = _optional(name, value)
    if text is None:
        raise ValueError(f"an event needs its `{name}`")
    return text


def _optional(name: str, value: Any) -> Optional[str]:
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a str, not {_kind(value)}")
    if not value:
        raise ValueError(f"`{name}` must not be empty")
    return value


def _kind(value: Any) -> str:
    return type(value).__name__


def _id_of(source: str, id: str, type: str, count: int) -> str:
    name = "\n".join((source, id, type, str(count)))
    return str(uuid.uuid5(_NAMESPACE, name.encode("utf-8", "replace").decode("utf-8")))


def _rfc3339(time: datetime) -> str:
    if time.tzinfo is None:
        raise ValueError("`time` has no time zone; use datetime.now(timezone.utc)")
    return time.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    found = _TIME.fullmatch(text)
    if not found:
        raise ValueError(f"`time` is no RFC 3339 time: {text!r}")
    date, clock, fraction, _, sign, hours, minutes = found.groups()
    if clock.endswith("60"):
        clock = clock[:-2] + "59"
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    zone = timezone(-offset if sign == "-" else offset)
    moment = datetime.strptime(f"{date} {clock}", "%Y-%m-%d %H:%M:%S")
    return moment.replace(microsecond=int((fraction or "0").ljust(6, "0")[:6]), tzinfo=zone)
