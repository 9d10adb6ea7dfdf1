"""A server on Python `mcp` 2.x that elicits, logs and lists roots: `server_mcp.py stdio` or `server_mcp.py http PORT`."""

import sys

from typing import Annotated

from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("mcp-server")


class Name(BaseModel):
    name: str


def greeting(answer) -> str:
    return f"Hello, {answer.data.name}!" if answer.action == "accept" else f"No name: {answer.action}"


@server.tool()
async def greet(ctx: Context) -> str:
    """Asks the user for a name while the call runs: the SDK can do so only before 2026-07-28."""
    return greeting(await ctx.elicit("What is your name?", schema=Name))


async def ask_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


@server.tool()
async def introduce(answer: Annotated[ElicitationResult[Name], Resolve(ask_name)]) -> str:
    """Asks the user for a name in the way of the connection's revision."""
    return greeting(answer)


@server.tool()
async def log_lines(ctx: Context) -> str:
    """Logs three lines."""
    for line in ("first", "second", "third"):
        await ctx.info(line)
    return "logged"


@server.tool()
async def show_roots(ctx: Context) -> str:
    """Lists the roots of the client."""
    return ", ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


if sys.argv[1] == "http":
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run(transport="stdio")
