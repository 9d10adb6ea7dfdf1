import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.McpSyncClient;
import io.modelcontextprotocol.client.transport.HttpClientSseClientTransport;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpError;
import io.modelcontextprotocol.spec.McpSchema;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.ElicitResult;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;

/** A client on the Java SDK, 1.1 and later. Prints one JSON line for each check: {"check", "ok", "detail"}. */
public final class JavaClient {
  private static final Duration CHECK_TIME = Duration.ofSeconds(20);
  private static final int BIG = 900_000;
  private static final String WATCHED = "test://watched-resource";
  private static final String ROOT = "file:///home/ada";
  private static final List<Object> LOG_LINES =
      List.of("Tool execution started", "Tool processing data", "Tool execution completed");

  private final List<Object> logged = new CopyOnWriteArrayList<>();
  private final List<Double> progressed = new CopyOnWriteArrayList<>();
  private final List<String> updated = new CopyOnWriteArrayList<>();
  private volatile ElicitResult.Action action = ElicitResult.Action.ACCEPT;
  private McpSyncClient client;

  private interface Check {
    Object run() throws Exception;
  }

  public static void main(String[] arguments) {
    new JavaClient().run(valueOf(arguments, "--transport"), valueOf(arguments, "--target"));
    System.exit(0); // the HTTP client's threads would hold the process for a minute
  }

  private void run(String transport, String target) {
    try {
      client = build(transport(transport, URI.create(target)));
      report("connect", true, client.initialize().protocolVersion());
    } catch (Throwable error) {
      report("connect", false, describe(error));
      return;
    }
    checkTools();
    checkQuestions();
    checkOthers();
    check("close", () -> {
      expect(client.closeGracefully(), true);
      return "";
    });
  }

  private McpClientTransport transport(String name, URI target) {
    String origin = target.getScheme() + "://" + target.getAuthority();
    return name.equals("sse")
        ? HttpClientSseClientTransport.builder(origin).sseEndpoint(target.getPath()).build()
        : HttpClientStreamableHttpTransport.builder(origin).endpoint(target.getPath()).build();
  }

  private McpSyncClient build(McpClientTransport transport) {
    return McpClient.sync(transport)
        .requestTimeout(CHECK_TIME)
        .initializationTimeout(CHECK_TIME)
        .capabilities(McpSchema.ClientCapabilities.builder().roots(true).sampling().elicitation().build())
        .roots(new McpSchema.Root(ROOT, "Home"))
        .sampling(request -> McpSchema.CreateMessageResult.builder()
            .role(McpSchema.Role.ASSISTANT).message("Paris").model("a-model").build())
        .elicitation(request -> new ElicitResult(action,
            action == ElicitResult.Action.ACCEPT ? Map.of("username", "Ada", "email", "ada@example.com") : null))
        .loggingConsumer(message -> logged.add(message.data()))
        .progressConsumer(message -> progressed.add(message.progress()))
        .resourcesUpdateConsumer(contents -> contents.forEach(content -> updated.add(content.uri())))
        .build();
  }

  private void checkTools() {
    check("list-tools", () -> {
      List<String> names = new ArrayList<>();
      String cursor = null;
      do {
        var page = cursor == null ? client.listTools() : client.listTools(cursor);
        page.tools().forEach(tool -> names.add(tool.name()));
        cursor = page.nextCursor();
      } while (cursor != null);
      expect(names.stream().filter(name -> name.startsWith("numbered_")).count(), 150L);
      expect(names.contains("example-echo"), true);
      return names.size() + " tools";
    });
    check("echo", () -> expect(call("example-echo", Map.of("message", "Grüße 你好")), "Echo: Grüße 你好"));
    check("structured", () -> expect(
        client.callTool(request("test_structured_content", Map.of()).build()).structuredContent(),
        Map.of("temperature", 22.5, "conditions", "sunny")));
    check("progress", () -> {
      client.callTool(request("test_tool_with_progress", Map.of()).progressToken("progress-1").build());
      await(() -> progressed.size() >= 3);
      // The SDK handles notifications side by side, so their order is lost in the client.
      return expect(progressed.stream().sorted().toList(), List.of(0.0, 50.0, 100.0));
    });
    check("log", () -> {
      call("test_tool_with_logging", Map.of());
      await(() -> logged.size() >= LOG_LINES.size());
      return expect(Set.copyOf(logged), Set.copyOf(LOG_LINES));
    });
    check("tool-error", () -> expect(client.callTool(request("test_error_handling", Map.of()).build()).isError(), true));
    check("error-code", () -> {
      try {
        call("fail_with_code", Map.of());
      } catch (McpError error) {
        return expect(error.getJsonRpcError().code(), -32050);
      }
      throw new AssertionError("the call did not fail");
    });
    check("big-result", () -> expect(call("big_result", Map.of("characters", BIG)).length(), BIG));
  }

  private void checkQuestions() {
    check("elicitation-accept", () -> expectIn("accept", elicit(ElicitResult.Action.ACCEPT)));
    check("elicitation-decline", () -> expectIn("decline", elicit(ElicitResult.Action.DECLINE)));
    check("sampling", () -> expectIn("Paris", call("test_sampling", Map.of("prompt", "Capital of France?"))));
    check("roots", () -> expectIn(ROOT, call("test_input_required_result_list_roots", Map.of())));
  }

  private void checkOthers() {
    check("read-resource", () -> {
      var read = client.readResource(new McpSchema.ReadResourceRequest("test://static-text"));
      return expectIn("static", ((McpSchema.TextResourceContents) read.contents().get(0)).text());
    });
    check("resource-updated", () -> {
      client.subscribeResource(new McpSchema.SubscribeRequest(WATCHED));
      call("test_trigger_resource_update", Map.of());
      await(() -> updated.contains(WATCHED));
      client.unsubscribeResource(new McpSchema.UnsubscribeRequest(WATCHED));
      return "";
    });
    check("prompt", () -> {
      var prompt = client.getPrompt(
          new McpSchema.GetPromptRequest("test_prompt_with_arguments", Map.of("arg1", "one", "arg2", "two")));
      return expectIn("arg1='one', arg2='two'", ((McpSchema.TextContent) prompt.messages().get(0).content()).text());
    });
    check("completion", () -> {
      var completed = client.completeCompletion(new McpSchema.CompleteRequest(
          new McpSchema.PromptReference("test_prompt_with_arguments"),
          new McpSchema.CompleteRequest.CompleteArgument("arg1", "par")));
      return expect(completed.completion().values().contains("paris"), true);
    });
    check("ping", () -> {
      client.ping();
      return "";
    });
  }

  private static CallToolRequest.Builder request(String name, Map<String, Object> given) {
    return CallToolRequest.builder().name(name).arguments(given);
  }

  private String call(String name, Map<String, Object> given) {
    CallToolResult result = client.callTool(request(name, given).build());
    StringBuilder text = new StringBuilder();
    for (var content : result.content()) if (content instanceof McpSchema.TextContent block) text.append(block.text());
    return text.toString();
  }

  private String elicit(ElicitResult.Action answer) {
    action = answer;
    return call("test_elicitation", Map.of("message", "Who are you?"));
  }

  private static void check(String name, Check check) {
    try {
      report(name, true, String.valueOf(check.run()));
    } catch (Throwable error) {
      report(name, false, describe(error));
    }
  }

  private static void await(BooleanSupplier condition) throws InterruptedException {
    long end = System.nanoTime() + Duration.ofSeconds(10).toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > end) throw new AssertionError("the notification did not come in 10 s");
      Thread.sleep(20);
    }
  }

  private static Object expect(Object value, Object wanted) {
    if (!wanted.equals(value)) throw new AssertionError("expected " + wanted + ", got " + value);
    return "";
  }

  private static Object expectIn(String wanted, String text) {
    if (!text.contains(wanted)) throw new AssertionError("expected " + wanted + " in " + text);
    return "";
  }

  private static String describe(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
    return cause.getClass().getSimpleName() + ": " + cause.getMessage();
  }

  private static void report(String check, boolean ok, Object detail) {
    String text = String.valueOf(detail);
    StringBuilder quoted = new StringBuilder();
    for (char c : text.substring(0, Math.min(500, text.length())).toCharArray())
      quoted.append(c < ' ' || c > '~' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
    System.out.printf("{\"check\":\"%s\",\"ok\":%s,\"detail\":\"%s\"}%n", check, ok, quoted);
  }

  private static String valueOf(String[] arguments, String name) {
    for (int i = 0; i + 1 < arguments.length; i++) if (arguments[i].equals(name)) return arguments[i + 1];
    throw new IllegalArgumentException(name + " is missing");
  }
}
