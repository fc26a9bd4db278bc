"""A program that makes Python types of OpenAPI documents, one a line: see `cli.pull_types`.

It reads a JSON list of documents and prints a JSON object for each: `{"text": …}`, or `{"why": …}`
if the generator can't make types of it. It runs in a process of its own, which can be ended.
"""

import json
import sys
from typing import Any


def types_of(document: Any) -> str:
    """TypedDicts and aliases for the schemas of a document."""
    from datamodel_code_generator import (  # type: ignore[attr-defined]
        DataModelType,
        InputFileType,
        LiteralType,
        generate,
    )
    from datamodel_code_generator.format import Formatter, PythonVersion

    return str(
        generate(
            json.dumps(document),
            input_file_type=InputFileType.OpenAPI,
            output_model_type=DataModelType.TypingTypedDict,
            target_python_version=PythonVersion.PY_311,
            enum_field_as_literal=LiteralType.All,
            formatters=[Formatter.BUILTIN],
            custom_file_header="#",
            # A key stays as it is: `_id` is no `field_id`.
            special_field_name_prefix="",
            disable_timestamp=True,
            allow_remote_refs=False,
            use_closed_typed_dict=False,
            use_schema_description=True,
            use_standard_collections=True,
            use_union_operator=True,
        )
    )


def answer(document: Any) -> dict[str, str]:
    try:
        return {"text": types_of(document)}
    except Exception as error:
        return {"why": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    for given in json.load(sys.stdin):
        print(json.dumps(answer(given)), flush=True)
