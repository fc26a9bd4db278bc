"""Each action of the page as a person takes it: from the view that offers it, once."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from server.page.actions import ACTIONS
from tests.page.test_live import comes, live
from tests.page.test_sign_in import sign_in
from tests.support.chromium import Visitor
from tests.support.in_process_node import package
from tests.support.node import RpcError
from tests.support.skewed_clock import HOUR, SkewedNode
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.needs("chromium")

ANN, BEN, CAT, LEA = (f"aid://example.com/{name}" for name in ("ann", "ben", "cat", "lea"))
HOLDERS = {"web": ANN, "app": BEN, "ads": CAT, "lead": LEA}
PORT = {"summary": "Port?", "question": "Which port?"}
GATED = {"policy": {"human_gate": "required"}}
ATTENTION = "/ui/attention"
LOOK = """new Promise((done) => {
  document.addEventListener("page:fresh", done, { once: true });
  document.dispatchEvent(new Event("page:look"));
})"""


@dataclass
class Office:
    """A project in which something waits that each action is for. Lea is a person."""

    node: SkewedNode
    keys: dict[str, str]
    project: str = ""

    def call(self, who: str, method: str, **params: Any) -> Any:
        return self.node.call(method, key=self.keys[who], **params)

    def within(self, who: str, method: str, **params: Any) -> Any:
        """A call that concerns the project."""
        return self.call(who, f"cacp/{method}", projectId=self.project, **params)

    def proposed(self, repo: str) -> str:
        """A contract of repo web that waits for another repo."""
        given = {"type": "api_endpoint", "content": {"path": f"/{repo}"}, "parties": ["web", repo]}
        made = self.within(ANN, "contract/propose", name=f"for {repo}", **given)
        return str(made["contractId"])

    def sent(self, who: str, to: str, **params: Any) -> str:
        """The id of a message."""
        given = {"type": "knowledge.push", "payload": {"summary": "s"}} | params
        return str(self.call(who, "acp/send", to=[to], **given)["message"]["id"])

    def status(self, message: str) -> str:
        (entry,) = self.call(LEA, "acp/query", message_id=message)["messages"]
        return str(entry["message"]["status"])

    def received(self, who: str, text: str) -> bool:
        """Whether an agent has mail in which this is said."""
        mail = self.call(who, "acp/inbox", limit=100)["messages"]
        return any(text in str(message["payload"]) for message in mail)

    def contract(self, contract: str) -> Any:
        return self.within(ANN, "contract/get", contractId=contract)


@dataclass(frozen=True)
class Way:
    """How an action is taken: on which page, in the form with these hidden fields, with what filled
    in; what the page says then, and what has changed."""

    path: str
    which: dict[str, str]
    outcome: str
    has_changed: Callable[[], object]
    filled: dict[str, str] = field(default_factory=dict)


def opened(node: SkewedNode) -> Office:
    keys = {who: node.key(who, repo, human=who == LEA) for repo, who in HOLDERS.items()}
    office = Office(node, keys)
    repos = [{"name": repo, "role": "r", "language": "l"} for repo in HOLDERS]
    made = office.call(ANN, "cacp/project/create", name="Office", objective="o", repos=repos)
    office.project = made["projectId"]
    for repo, who in list(HOLDERS.items())[1:]:
        office.within(who, "project/join", repoName=repo)
    return office


@pytest.fixture(scope="module")
def office(away: SkewedNode) -> Office:
    return opened(away)


@pytest.fixture(scope="module")
def ways(office: Office) -> dict[str, Way]:
    """How each action is taken that is offered at once."""
    return by_contract(office) | by_mail(office) | by_attention(office)


@pytest.fixture(scope="module")
def late_ways(office: Office) -> dict[str, Way]:
    """How those are taken that are offered when hours have passed. They have."""
    return by_absence(office)


@pytest.fixture
def lea(browser: "Browser", office: Office) -> Iterator[Visitor]:
    """Lea, who has just signed in."""
    with Visitor(browser, office.node.url) as lea:
        page = lea.open(ATTENTION)
        sign_in(page, office.keys[LEA])
        page.wait_for_url(f"**{ATTENTION}")
        yield lea


def revoked(office: Office, who: str) -> bool:
    try:
        office.call(who, "cacp/project/list")
    except RpcError as error:
        return error.reason == "revoked_key"
    return False


def by_attention(office: Office) -> dict[str, Way]:
    """The actions that the home page offers for what waits for a person."""
    at = {"projectId": office.project}
    gated, second = (office.sent(ANN, BEN, topic=topic, **GATED) for topic in ("one", "two"))
    asked = office.within(ANN, "context/askQuestion", question="May I?")["packetId"]
    query = office.sent(ANN, LEA, type="knowledge.query", payload=PORT)
    late = {"to": BEN, "reason": "r", "package": package("late")}
    made = office.call(ANN, "acp/handoff", action="initiate", **late)["handoff"]
    handoff = {"handoff_id": made["handoffId"]}
    office.call(BEN, "acp/handoff", action="accept", **handoff)

    def handed() -> Any:
        return office.call(ANN, "acp/handoff", action="get", **handoff)["handoff"]

    def answers() -> Any:
        thread = office.within(ANN, "context/getThread", packetId=asked)["thread"]
        return thread[-1]["content"] == {"answer": "You may"}

    eventually(lambda: "escalatedAt" in handed())
    return {
        "approve": Way(
            ATTENTION,
            {"message_id": gated},
            f"The message is approved, and goes to {BEN}.",
            lambda: office.status(gated) == "pending",
        ),
        "refuse": Way(
            ATTENTION,
            {"message_id": second},
            "The message is refused, and goes to nobody.",
            lambda: office.status(second) == "failed",
            {"comment": "Not today"},
        ),
        "answer": Way(
            ATTENTION,
            at | {"packetId": asked},
            "Your answer is shared with the project.",
            answers,
            {"answer": "You may"},
        ),
        "answer-mail": Way(
            ATTENTION,
            {"message_id": query},
            f"Sent to {ANN}.",
            lambda: office.received(ANN, "Port 8765"),
            {"answer": "Port 8765"},
        ),
        "revoke-handoff": Way(
            ATTENTION,
            {"handoff_id": made["handoffId"]},
            "The handoff is closed now.",
            lambda: handed()["status"] == "closed",
            {"detail": "Too late"},
        ),
    }


def by_absence(office: Office) -> dict[str, Way]:
    """What the home page offers when agents have not been seen for hours, and what waits for them
    has waited too long."""
    at = {"projectId": office.project}

    def holder() -> Any:
        repos = office.within(ANN, "project/get")["repos"]
        return next(each.get("agent_id") for each in repos if each["name"] == "app")

    office.proposed("app")
    office.proposed("ads")
    office.node.pass_time(2 * HOUR)
    return {
        "release": Way(
            ATTENTION,
            at | {"repoName": "app"},
            f"Repo app is released from {BEN}, and free now.",
            lambda: holder() is None,
        ),
        "revoke": Way(
            ATTENTION,
            {"agentId": CAT},
            f"1 key of {CAT} revoked: it is refused from now on.",
            lambda: revoked(office, CAT),
        ),
    }


def by_contract(office: Office) -> dict[str, Way]:
    """The actions of a contract's page."""
    agreed, changed, waiting = (office.proposed(repo) for repo in ("lead", "lead", "app"))

    def place(contract: str) -> str:
        return f"/ui/projects/{office.project}/contracts/{contract}"

    return {
        "agree": Way(
            place(agreed),
            {"version": "1"},
            "You agreed to version 1. The contract is agreed now.",
            lambda: office.contract(agreed)["status"] == "agreed",
        ),
        "request-change": Way(
            place(changed),
            {"version": "1"},
            "You asked for a change of version 1. The contract is negotiating now.",
            lambda: office.contract(changed)["status"] == "negotiating",
            {"comment": "Smaller"},
        ),
        "nudge": Way(
            place(waiting),
            {"to": BEN},
            f"Nudged {BEN}.",
            # Ben himself must not call: he is away.
            lambda: office.call(LEA, "acp/query", topic="nudge")["messages"],
        ),
    }


def by_mail(office: Office) -> dict[str, Way]:
    """The actions of the mail."""
    dead = office.sent(LEA, BEN, topic="dead", **GATED)
    office.call(LEA, "acp/approve", message_id=dead, decision="refuse")
    news = office.sent(ANN, LEA, topic="news")

    def unread() -> bool:
        return news in [each["id"] for each in office.call(LEA, "acp/inbox")["messages"]]

    return {
        "mark-read": Way(
            f"/ui/mail/threads/{news}",
            {"ids": news},
            "1 message marked as read.",
            lambda: not unread(),
        ),
        "replay": Way(
            "/ui/mail",
            {"message_id": dead},
            f"The message to {BEN} waits for a person's approval.",
            lambda: office.call(LEA, "acp/query", topic="dead", held="gate")["messages"],
        ),
        "message": Way(
            "/ui/mail",
            {},
            f"Sent to {ANN}.",
            lambda: office.received(ANN, "Lunch is at noon"),
            {"to": ANN, "text": "Lunch is at noon"},
        ),
    }


def form_of(page: "Page", name: str, which: dict[str, str]) -> "Locator":
    """The form of an action, which is opened first where that is needed."""
    form = page.locator(f"main form[action='/ui/actions/{name}']")
    for key, value in which.items():
        form = form.filter(has=page.locator(f"input[name='{key}'][value='{value}']"))
    form = form.first
    assert form.count(), (name, which, page.inner_text("main"))
    if not form.is_visible():
        form.locator("xpath=ancestor::details[1]/summary").dispatch_event("click")
    return form


def take(ways: dict[str, Way], lea: Visitor) -> None:
    page, at = lea.context.pages[0], ""
    for name, way in ways.items():
        if way.path != at:
            lea.open(way.path)
        form = form_of(page, name, way.which)
        for field_name, text in way.filled.items():
            form.locator(f"[name={field_name}]").fill(text)
        with page.expect_navigation(wait_until="domcontentloaded"):
            # Not by the mouse: the page refreshes itself, and what is below it may move.
            form.locator("button").dispatch_event("click")
        note = page.locator("#message[aria-live=polite] .note")
        assert (note.get_attribute("data-kind"), note.inner_text()) == ("good", way.outcome), name
        assert way.has_changed(), name
        at = re.sub(r"^https?://[^/]+", "", page.url)
        assert at == way.path, "an action leads back to where it was taken"


def test_what_is_typed_survives_a_fresh_look(ways: dict[str, Way], lea: Visitor) -> None:
    page = lea.context.pages[0]
    for name, way in ways.items():
        if not way.filled:
            continue
        lea.open(way.path)
        form = form_of(page, name, way.which)
        for field_name, text in way.filled.items():
            form.locator(f"[name={field_name}]").fill(text)
        page.evaluate("document.activeElement.blur()")
        page.evaluate(LOOK)
        for field_name, text in way.filled.items():
            assert form.locator(f"[name={field_name}]").input_value() == text, name


def test_each_action_is_taken_from_the_view_that_offers_it(
    ways: dict[str, Way], lea: Visitor
) -> None:
    take(ways, lea)


def test_what_is_half_typed_survives_a_fresh_look(office: Office, lea: Visitor) -> None:
    asked = office.within(ANN, "context/askQuestion", question="How large?")["packetId"]
    page = lea.open(ATTENTION)
    live(page)
    form = form_of(page, "answer", {"packetId": asked})
    field_ = form.locator("textarea")
    field_.press_sequentially("At most ")
    office.sent(ANN, BEN, topic="comes in between", **GATED)
    comes(page, "comes in between")
    page.keyboard.type("one megabyte")
    assert field_.input_value() == "At most one megabyte"
    form.locator("button").dispatch_event("click")
    page.get_by_text("Your answer is shared with the project.").wait_for()
    thread = office.within(ANN, "context/getThread", packetId=asked)["thread"]
    assert thread[-1]["content"] == {"answer": "At most one megabyte"}


@pytest.mark.sqlite
def test_what_is_offered_after_hours_is_taken_too(
    ways: dict[str, Way], late_ways: dict[str, Way], lea: Visitor
) -> None:
    assert {*ways, *late_ways} == {*ACTIONS}, "a new action needs its way here"
    take(late_ways, lea)
