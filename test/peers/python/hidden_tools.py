"""Finds and calls tools that the budget of a workspace hides; `list_names` and `call` are those of one SDK."""

from checks import WARNINGS, expect, expect_in, run, until

SERVERS = ["demo", "scripted"]  # one of 2026-07-28, one of 2025-11-25


async def hidden_checks(list_names, call) -> None:
    async def text_of(name, given, **more):
        return "".join(getattr(block, "text", "") for block in (await call(name, given, **more)).content)

    async def through(tool, given=None, **more):
        return await text_of("call_tool", {"name": tool, "arguments": given or {}}, **more)

    async def short_list():
        expect(await list_names(), ["search_tools", "describe_tool", "call_tool"])

    async def find_hidden():
        found = await text_of("search_tools", {"query": "report progress while a tool works"})
        for server in SERVERS:
            expect_in(f"{server}__test_tool_with_progress(", found)
        expect_in('"inputSchema"', await text_of("describe_tool", {"name": "demo__test_elicitation"}))

    async def progress():
        for server in SERVERS:
            heard = []

            async def on_progress(done, _total, _message):
                heard.append(done)

            await through(f"{server}__test_tool_with_progress", progress_callback=on_progress)
            await until(lambda: len(heard) >= 3)
            expect(heard, [0, 50, 100])

    async def question():
        for server in SERVERS:
            expect_in("Ada", await through(f"{server}__test_elicitation", {"message": "Who are you?"}))

    async def by_name():
        for server in SERVERS:
            expect_in("Ada", await text_of(f"{server}__test_elicitation", {"message": "Who are you?"}))
        # The SDK has no output schema of a tool that is not listed, and says so.
        WARNINGS.lines[:] = [line for line in WARNINGS.lines if "not listed by server" not in line]

    await run("short-list", short_list)
    await run("find-hidden", find_hidden)
    await run("hidden-progress", progress)
    await run("hidden-question", question)
    await run("hidden-by-name", by_name)
