"""A server on FastMCP 4 that takes tokens of an issuer only: `server_fastmcp_oauth.py PORT ISSUER`."""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token

port, issuer = int(sys.argv[1]), sys.argv[2]
base = f"http://127.0.0.1:{port}"
verifier = JWTVerifier(
    jwks_uri=f"{issuer}/jwks",
    issuer=issuer,
    audience=f"{base}/mcp",
    algorithm="RS256",
    required_scopes=["mcp"],
)
server = FastMCP(
    "fastmcp-oauth-server",
    auth=RemoteAuthProvider(token_verifier=verifier, authorization_servers=[issuer], base_url=base),
)


@server.tool
def whoami() -> str:
    """Says whose token the call came with."""
    return get_access_token().claims["sub"]


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


server.run(transport="http", host="127.0.0.1", port=port, path="/mcp", show_banner=False)
