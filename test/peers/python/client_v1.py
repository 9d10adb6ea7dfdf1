"""A client on Python `mcp` 1.x; 1.8 has neither elicitation nor paging nor structured results."""

import inspect
import json
from datetime import timedelta

import anyio
from checks import BIG, FORM, LOG_LINES, ROOT, WATCHED, arguments, expect, expect_in, expect_tools, innermost, report
from checks import report_end, run, token, until
from hidden_tools import hidden_checks
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError
from pydantic import AnyUrl

HAS_ELICITATION = "elicitation_callback" in inspect.signature(ClientSession.__init__).parameters
HAS_PAGES = "cursor" in inspect.signature(ClientSession.list_tools).parameters
HAS_PROGRESS = "progress_callback" in inspect.signature(ClientSession.call_tool).parameters
HAS_STRUCTURED = "structuredContent" in types.CallToolResult.model_fields


def connect(options):
    if options.transport == "sse":
        return sse_client(options.target)
    if options.transport == "stdio":
        command, *args = json.loads(options.target)
        return stdio_client(StdioServerParameters(command=command, args=args))
    return streamablehttp_client(options.target)


def text_of(result) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)


class Client:
    """What the session hears besides its results."""

    def __init__(self):
        self.logged, self.updated, self.action = [], [], "accept"

    async def on_log(self, params):
        self.logged.append(params.data)

    async def on_message(self, message):
        if isinstance(message, types.ServerNotification) and message.root.method == "notifications/resources/updated":
            self.updated.append(str(message.root.params.uri))

    async def on_sampling(self, _context, _params):
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="Paris"), model="a-model"
        )

    async def on_roots(self, _context):
        return types.ListRootsResult(roots=[types.Root(uri=ROOT, name="Home")])

    async def on_elicitation(self, _context, _params):
        return types.ElicitResult(action=self.action, **({"content": FORM} if self.action == "accept" else {}))


async def tool_names(session: ClientSession) -> list[str]:
    listed = await session.list_tools()
    names = [tool.name for tool in listed.tools]
    while HAS_PAGES and listed.nextCursor:
        listed = await session.list_tools(listed.nextCursor)
        names += [tool.name for tool in listed.tools]
    return names


async def all_checks(session: ClientSession, client: Client) -> None:
    async def call(name, given=None, **more):
        return await session.call_tool(name, given or {}, **more)

    async def list_tools():
        return expect_tools(await tool_names(session))

    async def echo():
        expect(text_of(await call("example-echo", {"message": "Grüße 你好"})), "Echo: Grüße 你好")

    async def structured():
        result = await call("test_structured_content")
        expect(result.structuredContent, {"temperature": 22.5, "conditions": "sunny"})

    async def progress():
        heard = []

        async def on_progress(done, _total, _message):
            heard.append(done)

        await call("test_tool_with_progress", progress_callback=on_progress)
        expect(heard, [0, 50, 100])

    async def log():
        await call("test_tool_with_logging")
        await until(lambda: len(client.logged) >= len(LOG_LINES))
        expect(client.logged, LOG_LINES)

    async def tool_error():
        expect((await call("test_error_handling")).isError, True)

    async def error_code():
        try:
            await call("fail_with_code")
        except McpError as error:
            return expect(error.error.code, -32050)
        raise AssertionError("the call did not fail")

    async def elicitation(action):
        client.action = action
        expect_in(action, text_of(await call("test_elicitation", {"message": "Who are you?"})))

    async def sampling():
        expect_in("Paris", text_of(await call("test_sampling", {"prompt": "Capital of France?"})))

    async def roots():
        expect_in(ROOT, text_of(await call("test_input_required_result_list_roots")))

    async def read():
        expect_in("static", (await session.read_resource(AnyUrl("test://static-text"))).contents[0].text)

    async def resource_updated():
        await session.subscribe_resource(AnyUrl(WATCHED))
        await call("test_trigger_resource_update")
        await until(lambda: WATCHED in client.updated)
        await session.unsubscribe_resource(AnyUrl(WATCHED))

    async def prompt():
        got = await session.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        expect_in("arg1='one', arg2='two'", got.messages[0].content.text)

    async def completion():
        reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        completed = await session.complete(reference, {"name": "arg1", "value": "par"})
        expect("paris" in completed.completion.values, True)

    async def ping():
        await session.send_ping()

    async def cancellation():
        mark = token()
        request_id = session._request_id  # the id of the next request: the SDK has no cancel of its own

        async def waiting():
            try:
                await call("wait_for_cancel", {"token": mark}, read_timeout_seconds=timedelta(seconds=10))
            except McpError:
                pass

        async with anyio.create_task_group() as group:
            group.start_soon(waiting)
            await anyio.sleep(0.5)
            cancelled = types.CancelledNotification(
                method="notifications/cancelled", params=types.CancelledNotificationParams(requestId=request_id)
            )
            await session.send_notification(types.ClientNotification(cancelled))
            expect(text_of(await call("was_cancelled", {"token": mark})), "cancelled")
            group.cancel_scope.cancel()

    async def big_result():
        expect(len(text_of(await call("big_result", {"characters": BIG}))), BIG)

    await run("list-tools", list_tools)
    await run("echo", echo)
    if HAS_STRUCTURED:
        await run("structured", structured)
    if HAS_PROGRESS:
        await run("progress", progress)
    await run("log", log)
    await run("tool-error", tool_error)
    await run("error-code", error_code)
    if HAS_ELICITATION:
        await run("elicitation-accept", lambda: elicitation("accept"))
        await run("elicitation-decline", lambda: elicitation("decline"))
    await run("sampling", sampling)
    await run("roots", roots)
    await run("read-resource", read)
    await run("resource-updated", resource_updated)
    await run("prompt", prompt)
    await run("completion", completion)
    await run("ping", ping)
    await run("cancellation", cancellation)
    await run("big-result", big_result)


async def main() -> None:
    options, client, is_connected = arguments(), Client(), False
    try:
        async with connect(options) as streams:
            callbacks = {"elicitation_callback": client.on_elicitation} if HAS_ELICITATION else {}
            async with ClientSession(
                *streams[:2],
                sampling_callback=client.on_sampling,
                list_roots_callback=client.on_roots,
                logging_callback=client.on_log,
                message_handler=client.on_message,
                **callbacks,
            ) as session:
                with anyio.fail_after(20):
                    result = await session.initialize()
                is_connected = True
                report("connect", True, result.protocolVersion)
                if options.checks == "hidden":
                    await hidden_checks(lambda: tool_names(session), session.call_tool)
                else:
                    await all_checks(session, client)
    except Exception as error:
        return report("close" if is_connected else "connect", False, repr(innermost(error)))
    report_end()


anyio.run(main)
