"""A client on FastMCP 2.x, which reads only the first page of a list."""

import mcp.types as types
from checks import BIG, FORM, LOG_LINES, ROOT, WATCHED, arguments, expect, expect_in, expect_tools, innermost, report
from checks import report_end, run, until
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp.shared.exceptions import McpError

import anyio


class Host:
    """What the user and the model behind the client answer, and what they hear."""

    def __init__(self):
        self.logged, self.updated, self.action = [], [], "accept"

    async def on_log(self, message):
        self.logged.append(message.data["msg"] if isinstance(message.data, dict) else message.data)

    async def on_message(self, message):
        if isinstance(message, types.ServerNotification) and message.root.method == "notifications/resources/updated":
            self.updated.append(str(message.root.params.uri))

    async def on_sampling(self, _messages, _params, _context):
        return "Paris"

    async def on_elicitation(self, _message, response_type, _params, _context):
        return response_type(**FORM) if self.action == "accept" else ElicitResult(action=self.action)


def text_of(result) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)


async def all_checks(client: Client, host: Host) -> None:
    async def call(name, given=None, **more):
        return await client.call_tool(name, given or {}, **more)

    async def list_tools():
        return expect_tools([tool.name for tool in await client.list_tools()])

    async def echo():
        expect(text_of(await call("example-echo", {"message": "Grüße 你好"})), "Echo: Grüße 你好")

    async def structured():
        result = await call("test_structured_content")
        expect(result.structured_content, {"temperature": 22.5, "conditions": "sunny"})

    async def progress():
        heard = []

        async def on_progress(done, _total, _message):
            heard.append(done)

        await call("test_tool_with_progress", progress_handler=on_progress)
        expect(heard, [0, 50, 100])

    async def log():
        await call("test_tool_with_logging")
        await until(lambda: len(host.logged) >= len(LOG_LINES))
        expect(host.logged, LOG_LINES)

    async def tool_error():
        try:
            await call("test_error_handling")
        except ToolError as error:
            return expect_in("intentionally", str(error))
        raise AssertionError("the call did not fail")

    async def error_code():
        try:
            await call("fail_with_code")
        except McpError as error:
            return expect(error.error.code, -32050)
        raise AssertionError("the call did not fail")

    async def elicitation(action):
        host.action = action
        expect_in(action, text_of(await call("test_elicitation", {"message": "Who are you?"})))

    async def sampling():
        expect_in("Paris", text_of(await call("test_sampling", {"prompt": "Capital of France?"})))

    async def roots():
        expect_in(ROOT, text_of(await call("test_input_required_result_list_roots")))

    async def read():
        expect_in("static", (await client.read_resource("test://static-text"))[0].text)

    async def resource_updated():
        await client.session.subscribe_resource(WATCHED)
        await call("test_trigger_resource_update")
        await until(lambda: WATCHED in host.updated)

    async def prompt():
        got = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        expect_in("arg1='one', arg2='two'", got.messages[0].content.text)

    async def completion():
        reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        expect("paris" in (await client.complete(reference, {"name": "arg1", "value": "par"})).values, True)

    async def ping():
        expect(await client.ping(), True)

    async def big_result():
        expect(len(text_of(await call("big_result", {"characters": BIG}))), BIG)

    await run("list-tools", list_tools)
    await run("echo", echo)
    await run("structured", structured)
    await run("progress", progress)
    await run("log", log)
    await run("tool-error", tool_error)
    await run("error-code", error_code)
    await run("elicitation-accept", lambda: elicitation("accept"))
    await run("elicitation-decline", lambda: elicitation("decline"))
    await run("sampling", sampling)
    await run("roots", roots)
    await run("read-resource", read)
    await run("resource-updated", resource_updated)
    await run("prompt", prompt)
    await run("completion", completion)
    await run("ping", ping)
    await run("big-result", big_result)


async def main() -> None:
    options, host, is_connected = arguments(), Host(), False
    transport = SSETransport if options.transport == "sse" else StreamableHttpTransport
    try:
        async with Client(
            transport(options.target),
            roots=[ROOT],
            sampling_handler=host.on_sampling,
            elicitation_handler=host.on_elicitation,
            log_handler=host.on_log,
            message_handler=host.on_message,
            init_timeout=20,
        ) as client:
            is_connected = True
            report("connect", True, client.initialize_result.protocolVersion)
            await all_checks(client, host)
    except Exception as error:
        return report("close" if is_connected else "connect", False, repr(innermost(error)))
    report_end()


anyio.run(main)
