"""The trial of one operation of a provider: its cases, and the smallest that break the contract."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proof.exchange import RuleBreach
from proof.messages import Headers, WireAnswer, WireRequest, curl
from proof.probe_outcome import OperationTally, ProbeFailure
from proof.probe_subject import ProbeSubject, Spoiled
from proof.sender import Halted, NoAnswer, ProbeSender, ProviderGone
from schemas.plain import one_line

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SHRINK_MAX = 250
"""Requests beyond the cases of one operation, to make what fails small."""
ROUNDS_MAX = 10
"""Failures of one operation that are looked into."""
ROUND_SHARE = 4
"""Of the cases, one in so many is drawn again to look for the next failure."""
WHY_MAX = 1000
VALID_SHARE = 0.6
SUCCESS_SHARE = 0.5
"""Of the valid requests of an operation, this share must have success."""
RANDOM_SHARE = 4
"""Of the invalid requests, one in so many is at random, whatever constraints there are."""
DENIED = (401, 403)
BUSY = (429, 503)
"""What is to be sent again later: neither a success nor a refusal."""

Kind = tuple[str, str]
"""Of a failure: the rule that it breaks, and where."""
Progress = Callable[[str, int, int], None]
"""Is told the operation, how many requests went to it, and of how many."""


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """What is sent: `cases` to each operation, drawn from `seed`.

    `values` are those that parameters of a name always have. Values of headers that are `hidden`
    are not shown. `may_sign_in`: whether credentials go along, so that a refusal of them counts.
    `allow_skipped`: whether the rest may pass without the operations that nobody can call.
    """

    cases: int
    seed: int
    values: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    may_sign_in: bool = False
    allow_skipped: bool = False


class _Broken(Exception):
    """The contract is broken in a way that is looked into now."""


@dataclass(frozen=True, slots=True)
class _FoundBreach:
    """A request that broke the contract, and how."""

    request: WireRequest
    breach: RuleBreach
    headers: Headers | None = None
    """What went along, where it is not what goes with each."""


class Trial:
    """Tries one operation. `run` raises `Halted`; what was found until then stays."""

    def __init__(
        self, subject: ProbeSubject, sender: ProbeSender, plan: ProbePlan, progress: Progress
    ) -> None:
        self._subject, self._sender, self._plan = subject, sender, plan
        self._progress = progress
        self.valid = self.invalid = self.succeeded = 0
        self._statuses: Counter[int] = Counter()
        self._refused: Counter[int] = Counter()
        self._busy = {"valid": 0, "invalid": 0}
        self._findings: dict[Kind, _FoundBreach] = {}
        self._small: set[Kind] = set()
        self._last: WireRequest | None = None
        self._undrawn: list[str] = []

    # --- what was found ---------------------------------------------------------------------------

    @property
    def tally(self) -> OperationTally:
        return OperationTally(self._subject.key, self.valid, self.invalid, self.succeeded)

    def failures(self, origin: str) -> list[ProbeFailure]:
        """What broke the contract, each with the smallest request; `origin` is the provider's."""
        return [
            ProbeFailure(
                self._subject.key,
                finding.breach.rule,
                one_line(finding.breach, WHY_MAX),
                curl(self._whole(finding), origin, self._plan.hidden),
            )
            for finding in self._findings.values()
        ]

    def _whole(self, finding: _FoundBreach) -> WireRequest:
        if finding.headers is None:
            return self._sender.whole(finding.request)
        return self._sender.whole(finding.request, finding.headers)

    def unbroken(self) -> list[str]:
        """The constraints of the operation that no request could break."""
        return self._subject.unbroken()

    def unproven(self) -> list[str]:
        """What a trial without failures did not show either."""
        for kind, count in (("valid", self.valid), ("invalid", self.invalid)):
            if self._busy[kind] > count:
                of = count + self._busy[kind]
                line = f"{self._busy[kind]} of {of} {kind} requests were answered with 429 or 503"
                return [f"{self._subject.key}: {line}: send more slowly (--rate)."]
        if not self.valid:
            return [f"{self._subject.key}: no valid request could be made of its schemas."]
        lines = [*self._undrawn, *self._subject.unread()]
        if not self._findings and self._subject.promises_success:
            lines += self._without_success()
        return [f"{self._subject.key}: {line}" for line in lines]

    def _without_success(self) -> list[str]:
        """That too few valid requests had success, if that is so."""
        excused = sum(self._statuses[status] for status in self._subject.excused)
        if self.succeeded and self.succeeded >= SUCCESS_SHARE * (self.valid - excused):
            return []
        few = f"only {self.succeeded}" if self.succeeded else "none"
        line = f"{few} of {self.valid} valid requests was answered with success"
        if not self._refused:
            return [f"{line}."]
        status, count = self._refused.most_common(1)[0]
        hint = "name values of parameters that exist (--value), or prepare them (--before)"
        if status in DENIED:
            hint = "send credentials (--header)"
        elif self.succeeded:
            hint = "the contract must say what is valid, or prepare what is needed (--before)"
        return [f"{line}, {count} with {status}: {hint}."]

    # --- the trial --------------------------------------------------------------------------------

    def run(self) -> None:
        plain = self._subject.plain()
        first = [*([] if plain is None else [plain]), *self._subject.edges()]
        first = list(dict.fromkeys(first))
        if first:
            self._send_without_credentials(first[0])
        for request in first:
            self._note(request, self._judged_valid(request))
        wrong = self._subject.invalid()
        share = int(self._plan.cases * (VALID_SHARE if wrong is not None else 1.0))
        until = max(share, len(first) + share // 2)
        self._rounds(self._subject.valid(), self._judged_valid, until)
        if wrong is not None:
            self._send_broken()
            rest = self._plan.cases - share
            more = max(rest - self.invalid, rest // RANDOM_SHARE)
            self._rounds(wrong, self._judged_invalid, self.valid + self.invalid + more)

    def _send_without_credentials(self, request: WireRequest) -> None:
        """A request that an operation which asks for credentials must not answer with success."""
        rest = self._subject.without_credentials(self._sender.headers)
        if rest is None:
            return
        answer = self._answer(request, rest)
        self.invalid += 1
        if isinstance(answer, WireAnswer) and 200 <= answer.status < 300:
            why = f"It is answered with {answer.status} without the credentials that it asks for."
            self._note(request, [RuleBreach("accepts_without_credentials", "", why)], rest)

    def _send_broken(self) -> None:
        """Requests that break one constraint each: they are as small as they get."""
        for case in self._subject.broken():
            breaches = self._judged_invalid(case)
            self._note(case.request, breaches)
            self._small.update(map(_kind, breaches))

    def _rounds(
        self,
        strategy: "SearchStrategy[Any]",
        judged: Callable[[Any], list[RuleBreach]],
        until: int,
    ) -> None:
        """Draw cases until so many were sent, and again for each failure that was found."""
        for number in range(ROUNDS_MAX):
            left = until - self.valid - self.invalid
            cases = max(left, until // ROUND_SHARE if number else 0)
            if cases <= 0 or not self._round(strategy, judged, cases, number):
                return

    def _round(
        self,
        strategy: "SearchStrategy[Any]",
        judged: Callable[[Any], list[RuleBreach]],
        cases: int,
        number: int,
    ) -> bool:
        """Draw cases until one shows a failure that is not known, and make that one small. Whether
        there was one."""
        import hypothesis
        from hypothesis import errors

        known = frozenset(self._small)
        looked_into: list[Kind] = []
        most = self.valid + self.invalid + cases + SHRINK_MAX

        @hypothesis.seed(self._plan.seed + number)
        @hypothesis.settings(
            max_examples=cases,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
            verbosity=hypothesis.Verbosity.quiet,
        )
        @hypothesis.given(strategy)
        def send(case: Any) -> None:
            if self.valid + self.invalid >= most:
                return
            request = case.request if isinstance(case, Spoiled) else case
            breaches = judged(case)
            self._note(request, breaches)
            kinds = [_kind(breach) for breach in breaches]
            looked_into.extend(kind for kind in kinds if kind not in known and not looked_into)
            if not known.issuperset(kinds) and looked_into[0] in kinds:
                raise _Broken

        # What broke is kept as it is found. A provider need not do the same twice.
        with suppress(_Broken, errors.Flaky):
            try:
                send()
            except errors.Unsatisfiable:
                kind = "valid" if judged == self._judged_valid else "invalid"
                if kind == "valid" or not self.invalid:
                    self._undrawn.append(f"no {kind} requests could be drawn of its schemas.")
        self._small.update(looked_into)
        return bool(looked_into)

    def _note(
        self, request: WireRequest, breaches: list[RuleBreach], headers: Headers | None = None
    ) -> None:
        """Keep what broke, if no simpler request is known to break the same rule."""
        for breach in breaches:
            kept = self._findings.get(_kind(breach))
            if kept is None or request.size() < kept.request.size():
                self._findings[_kind(breach)] = _FoundBreach(request, breach, headers)
        sent = self.valid + self.invalid
        self._progress(self._subject.key, sent, max(sent, self._plan.cases))

    def _answer(
        self, request: WireRequest, headers: Headers | None = None
    ) -> WireAnswer | RuleBreach:
        """The answer, or how there was none. Raises `Halted` if nothing is there to answer."""
        try:
            if headers is None:
                answer = self._sender.send(request)
            else:
                answer = self._sender.send(request, headers)
        except ProviderGone as error:
            if self._last is None:
                raise Halted(f"nothing answers there: {error}") from None
            why = "After this request nothing answered any more."
            self._note(self._last, [RuleBreach("provider_gone", "", why)])
            raise Halted("the provider ended") from None
        except NoAnswer as error:
            self._last = request
            return RuleBreach(error.rule, "", str(error))
        self._last = request
        return answer

    def _judged_valid(self, request: WireRequest) -> list[RuleBreach]:
        answer = self._answer(request)
        if isinstance(answer, WireAnswer) and self._is_busy(answer, "valid"):
            return []
        self.valid += 1
        if isinstance(answer, RuleBreach):
            return [answer]
        self._statuses[answer.status] += 1
        if self._subject.is_success(answer):
            self.succeeded += 1
            self._subject.learn(answer)
        else:
            self._refused[answer.status] += 1
        if answer.status in DENIED and self._may_deny():
            return []
        return self._subject.breaches(request, answer)

    def _may_deny(self) -> bool:
        """Whether a request may be refused for want of credentials, whatever is declared: where
        none are sent, and the contract asks for some or nothing went without them yet."""
        lacks = self._subject.may_need_credentials or not self.succeeded
        return lacks and not self._plan.may_sign_in

    def _judged_invalid(self, case: Spoiled) -> list[RuleBreach]:
        answer = self._answer(case.request)
        if isinstance(answer, WireAnswer) and self._is_busy(answer, "invalid"):
            return []
        self.invalid += 1
        if isinstance(answer, RuleBreach):
            return [answer]
        return self._subject.refusal_breaches(case, answer)

    def _is_busy(self, answer: WireAnswer, kind: str) -> bool:
        """Whether an answer only asks to wait. An error that no contract names is none."""
        if answer.status not in BUSY or not self._subject.may_be_busy(answer):
            return False
        self._busy[kind] += 1
        return True


def _kind(breach: RuleBreach) -> Kind:
    """What is the same for failures of one cause: the rule, and the place in any element."""
    return breach.rule, re.sub(r"/[0-9]+(?=/|$)", "/*", breach.where)
