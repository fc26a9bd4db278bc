"""What one side sends the other compared: parameters, headers, bodies, and their schemas."""

from collections.abc import Mapping
from typing import Any

from contracts.changes import ChangeLog
from contracts.model import Interface, Located, Parameter, Part, Path, Side
from contracts.sameness import Sameness
from contracts.schema_objects import IGNORED, LOST, NOT_YET
from contracts.schema_reader import SchemaReader
from contracts.schema_within import Containment
from contracts.work import Work
from schemas.dialect import Direction, Effect

WHY: Mapping[tuple[Side, bool], str] = {
    ("consumer", True): "What consumers send today may be refused.",
    ("consumer", False): "Consumers will send what a provider as built today may refuse.",
    ("provider", True): "A provider as built today may not send what consumers will expect.",
    ("provider", False): "Consumers as built today may not expect what will be sent.",
}
"""By who sends, and whether the sender is the one as built today."""
FITS = "What is built today still fits."


class PartComparer:
    """Compares what is sent, and notes what changed.

    Every change has two effects: `forward` on a sender as built today who meets a receiver at the
    new content, and `backward` on a receiver as built today.
    """

    def __init__(self, log: ChangeLog, work: Work, before: Interface, after: Interface) -> None:
        self._log, self._work = log, work
        self._before, self._after = before, after
        self._sameness = Sameness(before, after) if before.draft == after.draft else None
        self._readers: dict[tuple[bool, Direction], SchemaReader] = {}
        self._containments: dict[tuple[Direction, Side, bool, bool], Containment] = {}
        self.user = ""
        """The key of the operation that is compared."""

    def part(
        self,
        before: Part,
        after: Part,
        direction: Direction,
        sent_by: Side,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        """Two parts. `renamed` has the new names of path parameters."""
        was = {_key(each, renamed or {}): each for each in before.parameters}
        now = {_key(each, {}): each for each in after.parameters}
        for key in [*was, *(key for key in now if key not in was)]:
            earlier, later = was.get(key), now.get(key)
            if earlier is not None and later is not None:
                self._parameters(earlier, later, direction, sent_by)
            elif earlier is not None:
                self._lost_parameter(earlier, sent_by)
            elif later is not None:
                self._new_parameter(later, sent_by)
        self._bodies(before, after, direction, sent_by)

    def note(
        self,
        path: Path,
        rule: str,
        sent_by: Side,
        forward: Effect,
        backward: Effect,
        before: Any = None,
        after: Any = None,
        why: str | None = None,
    ) -> None:
        """Note a change of what is sent."""
        consumer, provider = (forward, backward) if sent_by == "consumer" else (backward, forward)
        if why is None:
            is_consumers = consumer != "compatible"
            is_fine = not is_consumers and provider == "compatible"
            why = FITS if is_fine else WHY[sent_by, is_consumers == (sent_by == "consumer")]
        self._log.add(
            path,
            rule,
            why,
            before=before,
            after=after,
            side="request" if sent_by == "consumer" else "response",
            provider=provider,
            consumer=consumer,
            user=self.user,
        )

    # --- parameters and headers -------------------------------------------------------------------

    def _parameters(
        self, was: Parameter, now: Parameter, direction: Direction, sent_by: Side
    ) -> None:
        # Headers of events may have types, and what is of a media type is read by that.
        as_text = self._after.dialect != "asyncapi" and not any(
            (each.style or "").startswith("content") for each in (was, now)
        )
        self.schemas(was.schema, now.schema, direction, sent_by, as_text)
        self._need(was.required, now.required, now.path, sent_by)
        if was.style != now.style:
            styles = (was.style, now.style)
            self.note(now.path, "style_changed", sent_by, "breaking", "breaking", *styles)

    def _need(self, was: bool, now: bool, path: Path, sent_by: Side) -> None:
        if now and not was:
            self.note(path, "became_required", sent_by, "breaking", "compatible")
        elif was and not now:
            self.note(path, "became_optional", sent_by, "compatible", "breaking")

    def _lost_parameter(self, was: Parameter, sent_by: Side) -> None:
        backward: Effect = "breaking" if was.required else "compatible"
        if sent_by == "provider":
            rule = "required_header_removed" if was.required else "header_removed"
            self.note(was.path, rule, sent_by, "compatible", "breaking", was.name, None, LOST)
        else:
            rule = "required_parameter_removed" if was.required else "parameter_removed"
            self.note(was.path, rule, sent_by, "unknown", backward, was.name, None, IGNORED)

    def _new_parameter(self, now: Parameter, sent_by: Side) -> None:
        forward: Effect = "breaking" if now.required else "compatible"
        if sent_by == "provider":
            rule = "required_header_added" if now.required else "header_added"
            self.note(now.path, rule, sent_by, forward, "compatible", None, now.name)
        else:
            rule = "required_parameter_added" if now.required else "parameter_added"
            why = None if now.required else NOT_YET
            self.note(now.path, rule, sent_by, forward, "unknown", None, now.name, why)

    # --- bodies -----------------------------------------------------------------------------------

    def _bodies(self, before: Part, after: Part, direction: Direction, sent_by: Side) -> None:
        if before.bodies and after.bodies:
            self._need(before.body_required, after.body_required, after.path, sent_by)
            for media in [
                *before.bodies,
                *(each for each in after.bodies if each not in before.bodies),
            ]:
                self._media(media, before, after, direction, sent_by)
        elif before.bodies:
            if sent_by == "provider":
                effects: tuple[Effect, Effect] = ("compatible", "breaking")
                self.note(before.path, "body_removed", sent_by, *effects, why=LOST)
            else:
                backward: Effect = "breaking" if before.body_required else "compatible"
                self.note(before.path, "body_removed", sent_by, "unknown", backward, why=IGNORED)
        elif after.bodies:
            if sent_by == "provider":
                self.note(after.path, "body_added", sent_by, "breaking", "compatible")
            else:
                forward: Effect = "breaking" if after.body_required else "compatible"
                self.note(after.path, "body_added", sent_by, forward, "unknown")

    def _media(
        self, media: str, before: Part, after: Part, direction: Direction, sent_by: Side
    ) -> None:
        """One media type. One that is gone breaks consumers, whoever sends it: they send it or ask
        for it. A new one breaks providers."""
        was, now = _of_media(before.bodies, media), _of_media(after.bodies, media)
        if was is not None and now is not None:
            self.schemas(was, now, direction, sent_by)
        elif was is not None:
            gone: tuple[Effect, Effect] = ("breaking", "compatible")
            effects = gone if sent_by == "consumer" else (gone[1], gone[0])
            self.note(was.path, "media_type_removed", sent_by, *effects, media, None)
        elif now is not None:
            new: tuple[Effect, Effect] = ("compatible", "breaking")
            effects = new if sent_by == "consumer" else (new[1], new[0])
            self.note(now.path, "media_type_added", sent_by, *effects, None, media)

    # --- schemas ----------------------------------------------------------------------------------

    def schemas(
        self,
        before: Located,
        after: Located,
        direction: Direction,
        sent_by: Side,
        as_text: bool = False,
    ) -> None:
        """Two schemas of what one side sends, `as_text` where a value has no type on its way, as in
        a URL. Raises TooMuchWork."""
        if self._sameness is not None and self._sameness.same(before, after):
            return
        was = self._reader(True, direction).view(before)
        now = self._reader(False, direction).view(after)
        for forward in (True, False):
            containment = self._containment(direction, sent_by, forward, as_text)
            sub, sup = (was, now) if forward else (now, was)
            for number in sorted(containment.findings_of(sub, sup, after.path)):
                finding = containment.findings[number]
                effects: tuple[Effect, Effect] = (
                    (finding.effect, "compatible") if forward else ("compatible", finding.effect)
                )
                values = finding.before, finding.after
                self.note(finding.path, finding.rule, sent_by, *effects, *values, finding.why)

    def _reader(self, before: bool, direction: Direction) -> SchemaReader:
        key = (before, direction)
        if key not in self._readers:
            interface = self._before if before else self._after
            self._readers[key] = SchemaReader(interface, direction, self._work)
        return self._readers[key]

    def _containment(
        self, direction: Direction, sent_by: Side, forward: bool, as_text: bool
    ) -> Containment:
        key = (direction, sent_by, forward, as_text)
        if key not in self._containments:
            was, now = self._reader(True, direction), self._reader(False, direction)
            sender, receiver = (was, now) if forward else (now, was)
            self._containments[key] = Containment(
                sender,
                receiver,
                sent_by=sent_by,
                forward=forward,
                work=self._work,
                as_text=as_text,
            )
        return self._containments[key]


def _key(parameter: Parameter, renamed: Mapping[str, str]) -> tuple[str, str]:
    name = parameter.name
    if parameter.place == "path":
        name = renamed.get(name, name)
    return parameter.place, name.lower() if parameter.place == "header" else name


def _of_media(bodies: Mapping[str, Located], media: str) -> Located | None:
    """The body that a media type has, also by a range (`text/*`) that holds it."""
    kind = media.split(";")[0].strip().lower()
    for name in (media, kind, f"{kind.split('/')[0]}/*", "*/*"):
        if name in bodies:
            return bodies[name]
    return next(
        (body for name, body in bodies.items() if name.split(";")[0].strip().lower() == kind), None
    )
