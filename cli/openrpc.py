"""`cacp openrpc`: the methods as a document for programs."""

import typer


def openrpc() -> None:
    """Print the OpenRPC document: all methods with their params, results and errors.

    It describes the installed release. It needs no running node.

    Example: cacp openrpc | jq -r '.methods[].name'
    """
    import orjson

    from server.methods.openrpc import document

    pretty = orjson.dumps(orjson.loads(document()), option=orjson.OPT_INDENT_2)
    typer.echo(pretty.decode())
