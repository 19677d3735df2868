"""Runs the steps of a check in checks.txt.

A step is one of these:

    OPERATION NAME=VALUE … -> SEE   call AWS and select values of the answer
    until SECONDS: CALL; … -> SEE   repeat calls until the first selected value is true
    each GROUP …: CALL; … -> SEE    call for each output or resource ($one), select one value
    refuse CALL                     call AWS, which must refuse it
    undo CALL                       call at the end, even after an error
    empty OUTPUT                    delete the messages of a queue, now and at the end
    hide SECONDS                    set the visibility timeout of the empty express queue
    pause SECONDS                   wait
    skip if no NAME: REASON         skip the check if the value is missing or 0
    run FUNCTION                    call a Python function of own.py, reads.py or probes.py

SEE selects values of the answer by name with JMESPath. A value whose name begins with "_" is not
reported. If SEE selects "Error.Code", a refused call is no failure. VALUE is JSON or a word. In it,
$NAME means a selected value, a `let` of checks.txt, an output of the stack, or a setting. $x_5
means "xxxxx", and $NAME_5 repeats a `let` for the numbers 0 to 4. NAME|json=VALUE passes JSON
as a text. Texts in an answer that are JSON objects are decoded.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import jmespath  # type: ignore[import-untyped] # botocore requires it
from botocore.exceptions import ClientError, ParamValidationError

from localstack.doctor.ground import Finding, Ground, Seen, failed, safe, skipped

HANDLERS = ("worker", "renderer", "exporter", "api", "starter", "notifier", "delivery")
VERBS = ("run", "until", "each", "refuse", "undo", "empty", "hide", "pause", "skip")
SPLIT = ("until", "each", "skip")  # verbs with two arguments, which ": " divides
RECEIVE: Seen = {"MaxNumberOfMessages": 10, "VisibilityTimeout": 30, "WaitTimeSeconds": 1}
ALL = {"AttributeNames": ["All"]}
RECEIVE |= {**ALL, "MessageAttributeNames": ["All"]}
DEFAULTS: Seen = {"sqs.receive_message": RECEIVE, "sqs.get_queue_attributes": ALL}
GONE = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
PARAMETER = re.compile(r"\s*(\w+(?:\|json)?)=")
EXPRESS = "QueueUrl=$ExpressQueueUrl"
HIDDEN = "_arn: Attributes.QueueArn, _hidden: Attributes.VisibilityTimeout"
HIDE = (
    "empty ExpressQueueUrl",
    f"sqs.get_queue_attributes {EXPRESS} -> {HIDDEN}",
    f'undo sqs.set_queue_attributes {EXPRESS} Attributes={{"VisibilityTimeout": "$_hidden"}}',
    f'sqs.set_queue_attributes {EXPRESS} Attributes={{"VisibilityTimeout": "$_seconds"}}',
)


class Script:
    """Runs the steps of a check.

    `names` has all selected values, and `seen` only the values that are reported.
    """

    def __init__(self, ground: Ground, lets: Seen, functions: Mapping[str, Any]) -> None:
        self.ground, self._lets, self._functions = ground, lets, functions
        self.seen: Seen = {}
        self.raw: Seen = {}  # values that `each` selected, before texts of AWS are replaced
        now = datetime.now(UTC)
        then = now - timedelta(hours=1)
        self.names: Seen = {"key": f"doctor_{secrets.token_hex(8)}", "now": now, "hour_ago": then}
        # On AWS, a removed event source can still receive messages for a while.
        hidden_s = 10 if ground.emulator else 30
        self.names |= {"hour_ago_s": f"{then.timestamp():.0f}", "hidden_s": hidden_s}
        self.undo = ExitStack()

    def run(self, steps: tuple[str, ...]) -> Finding | None:
        """Take all steps in order. Returns a result if one step decides it, else None."""
        with self.undo:
            for step in steps:
                if found := self.take(step):
                    return found
        return None

    def take(self, step: str) -> Finding | None:
        verb, _, rest = step.partition(" ")
        if verb in VERBS:
            found: Finding | None = getattr(self, f"_{verb}")(*rest.split(": ", verb in SPLIT))
            return found
        line, _, see = step.partition(" -> ")
        self.select(see, self.call(line, may_fail="Error.Code" in see))
        return None

    def _run(self, name: str) -> Finding | None:
        found = self._functions[name](self)
        if isinstance(found, Finding):
            return found
        self.seen |= found
        return None

    def _until(self, seconds: str, line: str) -> None:
        calls, _, see = line.partition(" -> ")
        limit_s = int(self._filled(seconds))
        self.ground.until(lambda: self.select(see, self._answers(calls)), limit_s)

    def _each(self, groups: str, line: str) -> None:
        calls, _, see = line.partition(" -> ")
        for name, value in self.group(groups):
            self.names |= {"one": value, "last": re.split(r"[|/]", value)[-1]}
            answer = self._answers(calls)
            # A function is reported by its handler, because its name contains the name of the
            # stack.
            handler = answer.get("Handler", "").removeprefix("handlers.").removesuffix(".handler")
            label = handler if handler in HANDLERS else name
            self.raw[label] = jmespath.search(self._filled(see), answer)
            if see.startswith("{") or not isinstance(self.raw[label], dict):
                self.seen[label] = safe(self.raw[label])

    def _answers(self, calls: str) -> Seen:
        return {key: value for one in calls.split("; ") for key, value in self.call(one).items()}

    def _refuse(self, line: str) -> Finding | None:
        self.select("code: Error.Code", self.call(line, may_fail=True))
        is_accepted = self.names["code"] is None
        return failed("AWS accepted the call", **self.seen) if is_accepted else None

    def _undo(self, line: str) -> None:
        self.undo.callback(self._call_unless_gone, line)

    def _hide(self, seconds: str) -> None:
        self.names["_seconds"] = str(self._filled(seconds))
        for step in HIDE:
            self.take(step)

    def _pause(self, seconds: str) -> None:
        self.ground.pause(float(seconds))

    def _skip(self, condition: str, why: str) -> Finding | None:
        return None if self.seen.get(condition.removeprefix("if no ")) else skipped(why)

    def select(self, see: str, answer: Any) -> bool:
        """Store values of an answer, selected by `see`. Return whether the first value is true."""
        found: Seen = jmespath.search(f"{{{self._filled(see)}}}", answer) if see else {}
        self.names |= found
        self.seen |= {name: safe(found[name]) for name in found if not name.startswith("_")}
        return bool(next(iter(found.values()), True))

    def call(self, line: str, *, may_fail: bool = False) -> Any:
        operation, _, rest = line.strip().partition(" ")
        parameters = {**DEFAULTS.get(operation, {}), **self.parameters(rest)}
        try:
            answer = self.ground.call(operation, **parameters)
        except ParamValidationError:
            if not may_fail:
                raise
            return {"Error": {"Code": "ParamValidation"}}
        except ClientError as error:
            if not may_fail:
                raise
            return error.response
        for one in answer.get("Messages", ()) if operation == "sqs.receive_message" else ():
            named = {"QueueUrl": parameters["QueueUrl"], "ReceiptHandle": one["ReceiptHandle"]}
            self.undo.callback(self._delete, **named)
        return _decoded(answer)

    def parameters(self, text: str) -> Seen:
        """Return the parameters of a call. Names such as $NAME are replaced by their values."""
        filled: Seen = self._filled(parsed(text))
        return filled

    def _call_unless_gone(self, line: str) -> None:
        try:
            self.call(line)
        except ClientError as error:
            if error.response["Error"]["Code"] not in GONE:
                raise

    def _empty(self, output: str) -> None:
        self._drain(output)
        self.undo.callback(self._drain, output)

    def _delete(self, **named: str) -> None:
        with suppress(ClientError):  # The message was delivered again, or is a dead letter now.
            self.ground.call("sqs.delete_message", **named)

    def _drain(self, output: str) -> None:
        # A short poll covers only some of AWS's servers, so it can miss messages.
        wait_s = 0 if self.ground.emulator else 1
        named = {"QueueUrl": self.ground.outputs[output]}
        asked = {**RECEIVE, **named, "WaitTimeSeconds": wait_s}
        while found := self.ground.call("sqs.receive_message", **asked).get("Messages"):
            for one in found:
                handle = one["ReceiptHandle"]
                self.ground.call("sqs.delete_message", **named, ReceiptHandle=handle)

    def group(self, words: str) -> Iterator[tuple[str, str]]:
        """Yield a label and the name of each output or resource in a group that exists."""
        for word in words.split():
            for name in self._lets.get(word, [word]):
                if name in self.ground.outputs:
                    yield name, self.ground.outputs[name]
            for place, one in enumerate(self.ground.of_kind(word)):
                yield f"{word.rpartition('::')[2]}_{place}", one.name

    def _filled(self, given: Any) -> Any:
        if isinstance(given, dict):
            filled = {self._filled(key): self._filled(value) for key, value in given.items()}
            texts = {key: json.dumps(filled.pop(key)) for key in [*filled] if key.endswith("|json")}
            return filled | {key.removesuffix("|json"): text for key, text in texts.items()}
        if isinstance(given, list):
            return [self._filled(value) for value in given]
        if not isinstance(given, str):
            return given
        if whole := re.fullmatch(r"\$(\w+)", given):
            return self._value(whole[1])
        return re.sub(r"\$(\w+)", lambda found: str(self._value(found[1])), given)

    def _value(self, name: str) -> Any:
        kind, _, count = name.rpartition("_")
        if name in self.names:
            if self.names[name] is None:
                raise LookupError(f"an earlier step saw no {name}")
            return self.names[name]
        if kind == "x" and count.isdecimal():
            return "x" * int(count)
        if name in self._lets:
            return self._filled(self._lets[name])
        if kind in self._lets:
            items = []
            for place in range(int(count)):
                self.names["place"] = str(place)
                items.append(self._filled(self._lets[kind]))
            return items
        if name in self._functions:
            return self._functions[name](self.ground.config)
        return self.ground.outputs.get(name) or getattr(self.ground.config, name)


def parsed(text: str) -> Seen:
    """Parse the parameters of a call: JSON values, or words."""
    parameters, place = {}, 0
    while found := PARAMETER.match(text, place):
        end = f"{text} ".index(" ", found.end())
        value: Any = text[found.end() : end]
        if value[0] in '{["':
            value, end = json.JSONDecoder().raw_decode(text, found.end())
        elif value.isdecimal() or value in ("true", "false"):
            value = json.loads(value)
        place = end
        parameters[found[1]] = value
    if text[place:].strip():
        raise SyntaxError(f"checks.txt: {text[place:]!r} is no parameter")
    return parameters


def _decoded(answer: Any) -> Any:
    """Replace texts in an answer that are JSON objects, and streams, by their contents."""
    if isinstance(answer, dict):
        return {key: _decoded(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [_decoded(value) for value in answer]
    if hasattr(answer, "read"):
        return _decoded(answer.read().decode())
    try:
        return json.loads(answer) if isinstance(answer, str) and answer[:1] == "{" else answer
    except ValueError:
        return answer
