"""Runs the checks of one client and prints one JSON line for each: {"check", "ok", "detail"}."""

import argparse
import json
import logging
import uuid

import anyio

CHECK_SECONDS = 20
BIG = 900_000
LOG_LINES = ["Tool execution started", "Tool processing data", "Tool execution completed"]
WATCHED = "test://watched-resource"
ROOT = "file:///home/ada"
FORM = {"username": "Ada", "email": "ada@example.com"}


class Warnings(logging.Handler):
    """Keeps what the SDK logs as a warning or an error: a peer that follows the specification gives no cause."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []
        logging.getLogger().addHandler(self)

    def emit(self, record):
        self.lines.append(record.getMessage())


WARNINGS = Warnings()


def report(check: str, ok: bool, detail: object = "") -> None:
    print(json.dumps({"check": check, "ok": ok, "detail": str(detail)[:500]}), flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=["streamable", "sse", "stdio"], required=True)
    parser.add_argument("--target", required=True, help="a URL, or for stdio a JSON array: the command line")
    parser.add_argument("--mode", default="auto")
    parser.add_argument("--checks", choices=["all", "hidden"], default="all")
    return parser.parse_args()


def innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


async def run(check: str, body) -> None:
    """Runs one check; the body returns the detail, or raises."""
    try:
        with anyio.fail_after(CHECK_SECONDS):
            report(check, True, await body() or "")
    except Exception as error:
        cause = innermost(error)
        report(check, False, f"{type(cause).__name__}: {cause}")


async def until(condition) -> None:
    while not condition():
        await anyio.sleep(0.02)


def expect(value: object, wanted: object) -> None:
    if value != wanted:
        raise AssertionError(f"expected {wanted!r}, got {str(value)[:200]!r}")


def expect_in(wanted: str, text: str) -> None:
    if wanted not in text:
        raise AssertionError(f"expected {wanted!r} in {text[:300]!r}")


def token() -> str:
    return uuid.uuid4().hex


def expect_tools(names: list[str]) -> str:
    numbered = [name for name in names if name.startswith("numbered_")]
    expect(len(numbered), 150)
    expect("example-echo" in names, True)
    return f"{len(names)} tools"


def report_end() -> None:
    report("close", True)
    report("no-warnings", not WARNINGS.lines, " | ".join(WARNINGS.lines))
