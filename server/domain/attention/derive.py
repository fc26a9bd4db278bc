"""The one function of all kinds: `attention(facts, who)` (design-next N1)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from server.domain.attention import claims, contract_view, handoffs, mail, questions
from server.domain.attention.claims import FreeRepoSubject, LostClaimSubject
from server.domain.attention.contract_view import ContractSubject
from server.domain.attention.handoffs import HandoffSubject
from server.domain.attention.items import Actor, WaitingItem
from server.domain.attention.mail import GatedSubject, UnreadSubject
from server.domain.attention.questions import MailQuestionSubject, QuestionSubject

AttentionFacts = (
    ContractSubject
    | QuestionSubject
    | MailQuestionSubject
    | FreeRepoSubject
    | LostClaimSubject
    | HandoffSubject
    | UnreadSubject
    | GatedSubject
)
"""The facts about one subject."""

_ITEMS: dict[type[Any], Callable[[Any, Actor], Iterator[WaitingItem]]] = {
    ContractSubject: contract_view.items,
    QuestionSubject: questions.items,
    MailQuestionSubject: questions.mail_items,
    FreeRepoSubject: claims.free_items,
    LostClaimSubject: claims.items,
    HandoffSubject: handoffs.items,
    UnreadSubject: mail.items,
    GatedSubject: mail.gated_items,
}


def attention(facts: Iterable[AttentionFacts], who: Actor) -> list[WaitingItem]:
    """What waits for an agent: the most urgent first, then the oldest. The same for the same facts,
    in whatever order they are given or were learnt."""
    waiting = (item for subject in facts for item in _ITEMS[type(subject)](subject, who))
    return sorted(waiting, key=lambda item: item.rank)
