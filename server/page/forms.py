"""The forms of the page, as browsers send them."""

from urllib.parse import parse_qsl

from starlette.requests import Request

from server.domain.errors import InvalidInput, InvalidRequest
from server.http.body import read_body

FORM_LIMIT = 64 * 1024
"""Bytes of a form, at most."""
FIELDS_MAX = 40
_FORM = "application/x-www-form-urlencoded"


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form; line breaks are `\\n`.

    Raises InvalidRequest for a body of another type, TooLarge, InvalidInput.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise InvalidRequest(f"Send Content-Type: {_FORM}", reason="unsupported_media_type")
    body = await read_body(request.receive, dict(request.scope["headers"]), FORM_LIMIT)
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise InvalidInput(f"The form is not {_FORM} in UTF-8, or has too many fields") from None
    fields = {name: value.replace("\r\n", "\n") for name, value in pairs}
    if len(fields) < len(pairs):
        raise InvalidInput("The form has a field twice")
    for name, value in pairs:
        if "\0" in name + value:
            raise InvalidInput("The form has a NUL character, which no text may have")
    return fields
