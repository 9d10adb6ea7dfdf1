"""A FastMCP 4 server that speaks both eras, asks and logs.

    python3 -m venv venv && venv/bin/pip install 'fastmcp>=4'
    venv/bin/python dual_era_server.py stdio
    venv/bin/python dual_era_server.py http 8000      # http://127.0.0.1:8000/mcp

Its wire behaviour is scripted in test/support/servers/dual-era.mjs, which needs no Python.
"""

import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP

server = FastMCP("dual")


@dataclass
class Name:
    name: str


@server.tool
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("Who are you?", Name)
    return f"hello {answer.data.name}" if answer.action == "accept" else answer.action


@server.tool
async def log(ctx: Context) -> str:
    await ctx.info("an info line")
    return "logged"


if sys.argv[1] == "stdio":
    server.run(show_banner=False)
else:
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
