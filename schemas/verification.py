"""What verifies a contract, and who provides and who consumes it. Imports nothing heavy: commands
name it in their options."""

from typing import Literal

VerificationPolicy = Literal["word", "receipt", "receipt_both", "independent", "independent_both"]
"""What verifies a contract. `word`: a party's agent says so. `receipt`: a runner's receipts prove
every provider; `independent`: of a runner that is not the agent that built it. With `_both`, every
consumer too."""
VERIFIED_BY: dict[str, str] = {
    "word": "the word of a party's agent",
    "receipt": "a runner's receipt for each provider",
    "receipt_both": "a runner's receipts for each provider and consumer",
    "independent": "a receipt for each provider, of a runner that is not the agent that built it",
    "independent_both": "receipts for each provider and consumer, of runners that are not the "
    "agents that built them",
}
"""What verifies a contract under each policy, as people and models read it."""
PartyRole = Literal["provider", "consumer", "both"]
"""A provider serves and emits, a consumer calls and reads."""
