"""`cacp openrpc`: the methods as a document that programs read."""

import typer


def openrpc() -> None:
    """Print the OpenRPC document of this release; needs no node.

    Example: cacp openrpc | jq -r '.methods[].name'
    """
    import orjson

    from server.methods.openrpc import document

    pretty = orjson.dumps(orjson.loads(document()), option=orjson.OPT_INDENT_2)
    typer.echo(pretty.decode())
