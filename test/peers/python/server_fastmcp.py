"""A server on FastMCP 4 that elicits, logs and lists roots: `server_fastmcp.py stdio` or `server_fastmcp.py http PORT`."""

import sys
from dataclasses import dataclass

import mcp_types as types
from fastmcp import Context, FastMCP

server = FastMCP("fastmcp-server")


@dataclass
class Name:
    name: str


async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", response_type=Name)
    return f"Hello, {answer.data.name}!" if answer.action == "accept" else f"No name: {answer.action}"


@server.tool
async def greet(ctx: Context) -> str:
    """Asks the user for a name while the call runs: FastMCP can do so only before 2026-07-28."""
    return await ask(ctx)


@server.tool(output_schema=None)
async def introduce(ctx: Context):
    """Asks the user for a name in the way of the connection's revision."""
    if ctx.request_context.protocol_version < "2026-07-28":
        return await ask(ctx)
    if ctx.input_responses is None:
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        params = types.ElicitRequestFormParams(message="What is your name?", requested_schema=form)
        return types.InputRequiredResult(input_requests={"name": types.ElicitRequest(params=params)})
    answer = ctx.input_responses["name"]
    return f"Hello, {answer.content['name']}!" if answer.action == "accept" else f"No name: {answer.action}"


@server.tool
async def log_lines(ctx: Context) -> str:
    """Logs three lines."""
    for line in ("first", "second", "third"):
        await ctx.info(line)
    return "logged"


@server.tool
async def show_roots(ctx: Context) -> str:
    """Lists the roots of the client."""
    return ", ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


if sys.argv[1] == "http":
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), path="/mcp", show_banner=False)
else:
    server.run(transport="stdio", show_banner=False)
