"""A client on Python `mcp` 2.x, which speaks 2026-07-28 (`--mode auto`) and the revisions before it (`--mode legacy`)."""

import json
import warnings

import anyio
from checks import BIG, FORM, LOG_LINES, ROOT, WATCHED, arguments, expect, expect_in, expect_tools, innermost, report
from checks import report_end, run, token, until
from hidden_tools import hidden_checks
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.sse import sse_client

warnings.simplefilter("ignore")


class Host:
    """What the user, the model and the host behind the client answer, and what they hear."""

    def __init__(self):
        self.logged, self.updated, self.action = [], [], "accept"

    async def on_log(self, params):
        self.logged.append(params.data)

    async def on_message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.append(str(message.params.uri))

    async def on_sampling(self, _context, _params):
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="Paris"), model="a-model"
        )

    async def on_roots(self, _context):
        return types.ListRootsResult(roots=[types.Root(uri=ROOT, name="Home")])

    async def on_elicitation(self, _context, _params):
        return types.ElicitResult(action=self.action, **({"content": FORM} if self.action == "accept" else {}))


def target_of(options):
    if options.transport == "sse":
        return sse_client(options.target)
    if options.transport == "stdio":
        command, *args = json.loads(options.target)
        return StdioServerParameters(command=command, args=args)
    return options.target


def text_of(result) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)


async def tool_names(client: Client) -> list[str]:
    listed = await client.list_tools()
    names = [tool.name for tool in listed.tools]
    while listed.next_cursor:
        listed = await client.list_tools(cursor=listed.next_cursor)
        names += [tool.name for tool in listed.tools]
    return names


async def all_checks(client: Client, host: Host, is_modern: bool) -> None:
    async def call(name, given=None, **more):
        return await client.call_tool(name, given or {}, **more)

    async def list_tools():
        return expect_tools(await tool_names(client))

    async def echo():
        expect(text_of(await call("example-echo", {"message": "Grüße 你好"})), "Echo: Grüße 你好")

    async def structured():
        result = await call("test_structured_content")
        expect(result.structured_content, {"temperature": 22.5, "conditions": "sunny"})

    async def progress():
        heard = []

        async def on_progress(done, _total, _message):
            heard.append(done)

        await call("test_tool_with_progress", progress_callback=on_progress)
        await until(lambda: len(heard) >= 3)
        expect(heard, [0, 50, 100])

    async def log():
        await call("test_tool_with_logging")
        await until(lambda: len(host.logged) >= len(LOG_LINES))
        expect(host.logged, LOG_LINES)

    async def tool_error():
        expect((await call("test_error_handling")).is_error, True)

    async def error_code():
        try:
            await call("fail_with_code")
        except MCPError as error:
            return expect(error.code, -32050)
        raise AssertionError("the call did not fail")

    async def elicitation(action):
        host.action = action
        expect_in(action, text_of(await call("test_elicitation", {"message": "Who are you?"})))

    async def sampling():
        expect_in("Paris", text_of(await call("test_sampling", {"prompt": "Capital of France?"})))

    async def roots():
        expect_in(ROOT, text_of(await call("test_input_required_result_list_roots")))

    async def read():
        expect_in("static", (await client.read_resource("test://static-text")).contents[0].text)

    async def resource_updated():
        if not is_modern:
            await client.subscribe_resource(WATCHED)
            await call("test_trigger_resource_update")
            return await until(lambda: WATCHED in host.updated)
        async with client.listen(resource_subscriptions=[WATCHED]) as subscription:
            await call("test_trigger_resource_update")
            async for event in subscription:
                return expect(str(event.uri), WATCHED)

    async def prompt():
        got = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        expect_in("arg1='one', arg2='two'", got.messages[0].content.text)

    async def completion():
        reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        completed = await client.complete(reference, {"name": "arg1", "value": "par"})
        expect("paris" in completed.completion.values, True)

    async def ping():
        await client.send_ping()

    async def cancellation():
        mark = token()
        with anyio.move_on_after(0.5):
            await call("wait_for_cancel", {"token": mark})
        expect(text_of(await call("was_cancelled", {"token": mark})), "cancelled")

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
    if not is_modern:
        await run("ping", ping)
    await run("cancellation", cancellation)
    await run("big-result", big_result)


async def main() -> None:
    options, host, is_connected = arguments(), Host(), False
    try:
        async with Client(
            target_of(options),
            mode=options.mode,
            log_level="debug",
            sampling_callback=host.on_sampling,
            list_roots_callback=host.on_roots,
            elicitation_callback=host.on_elicitation,
            logging_callback=host.on_log,
            message_handler=host.on_message,
        ) as client:
            is_connected = True
            report("connect", True, client.protocol_version)
            if options.checks == "hidden":
                await hidden_checks(lambda: tool_names(client), client.call_tool)
            else:
                await all_checks(client, host, client.protocol_version >= "2026-07-28")
    except Exception as error:
        return report("close" if is_connected else "connect", False, repr(innermost(error)))
    report_end()


anyio.run(main)
