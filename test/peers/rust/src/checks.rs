use std::time::{Duration, SystemTime};

use rmcp::{
    model::*,
    service::{PeerRequestOptions, RunningService, ServiceError},
    RoleClient,
};
use serde_json::{json, to_value, Value};

use crate::{
    host::{made, Host, ROOT},
    report::{expect, expect_in, run, text, until, Outcome},
};

const BIG: usize = 900_000;
const WATCHED: &str = "test://watched-resource";

pub struct Checks {
    pub session: RunningService<RoleClient, Host>,
    pub host: Host,
    pub is_modern: bool,
}

impl Checks {
    pub async fn run(&self) {
        run("list-tools", self.list_tools()).await;
        run("echo", self.text("example-echo", json!({ "message": "Grüße 你好" }), "Echo: Grüße 你好")).await;
        run("structured", self.structured()).await;
        run("progress", self.progress()).await;
        run("log", self.log()).await;
        run("tool-error", self.tool_error()).await;
        run("error-code", self.error_code()).await;
        run("elicitation-accept", self.elicitation("accept")).await;
        run("elicitation-decline", self.elicitation("decline")).await;
        run("sampling", self.text("test_sampling", json!({ "prompt": "Capital of France?" }), "Paris")).await;
        run("roots", self.text("test_input_required_result_list_roots", json!({}), ROOT)).await;
        run("read-resource", self.read_resource()).await;
        run("resource-updated", self.resource_updated()).await;
        run("prompt", self.prompt()).await;
        run("completion", self.completion()).await;
        if !self.is_modern {
            run("ping", self.ping()).await;
        }
        run("cancellation", self.cancellation()).await;
        run("big-result", self.big_result()).await;
    }

    async fn call(&self, name: &str, given: Value) -> Result<Value, ServiceError> {
        let mut params = json!({ "name": name, "arguments": given });
        if self.is_modern {
            params["_meta"] = json!({ "io.modelcontextprotocol/logLevel": "debug" });
        }
        let result = self.session.call_tool(made(params)).await?;
        Ok(to_value(result).expect("a result is JSON"))
    }

    async fn text(&self, name: &str, given: Value, wanted: &str) -> Outcome {
        expect_in(wanted, &text_of(&self.call(name, given).await.map_err(text)?))
    }

    async fn list_tools(&self) -> Outcome {
        let tools = self.session.list_all_tools().await.map_err(text)?;
        expect(tools.iter().filter(|tool| tool.name.starts_with("numbered_")).count(), 150)
    }

    async fn structured(&self) -> Outcome {
        let result = self.call("test_structured_content", json!({})).await.map_err(text)?;
        expect(result["structuredContent"].clone(), json!({ "temperature": 22.5, "conditions": "sunny" }))
    }

    /// The SDK gives every request a progress token of its own.
    async fn progress(&self) -> Outcome {
        self.call("test_tool_with_progress", json!({})).await.map_err(text)?;
        until(|| self.host.heard.lock().unwrap().progress.len() >= 3).await;
        // The SDK handles notifications side by side, so their order is lost in the client.
        let mut heard = self.host.heard.lock().unwrap().progress.clone();
        heard.sort_by(f64::total_cmp);
        expect(heard, vec![0.0, 50.0, 100.0])
    }

    async fn log(&self) -> Outcome {
        self.call("test_tool_with_logging", json!({})).await.map_err(text)?;
        until(|| self.host.heard.lock().unwrap().logged.len() >= 3).await;
        let wanted = ["Tool execution started", "Tool processing data", "Tool execution completed"];
        let heard = self.host.heard.lock().unwrap().logged.clone();
        let missing: Vec<_> = wanted.into_iter().filter(|line| !heard.contains(&json!(line))).collect();
        expect(missing, vec![])
    }

    async fn tool_error(&self) -> Outcome {
        let result = self.call("test_error_handling", json!({})).await.map_err(text)?;
        expect(result["isError"].clone(), json!(true))
    }

    async fn error_code(&self) -> Outcome {
        match self.call("fail_with_code", json!({})).await {
            Err(ServiceError::McpError(error)) => expect(error.code.0, -32050),
            other => Err(format!("expected a JSON-RPC error, got {other:?}")),
        }
    }

    async fn elicitation(&self, action: &str) -> Outcome {
        self.host.heard.lock().unwrap().action = action.into();
        self.text("test_elicitation", json!({ "message": "Who are you?" }), action).await
    }

    async fn read_resource(&self) -> Outcome {
        let read = self.session.read_resource(made(json!({ "uri": "test://static-text" }))).await.map_err(text)?;
        expect_in("static", &to_value(read).map_err(text)?["contents"][0]["text"].to_string())
    }

    async fn resource_updated(&self) -> Outcome {
        if self.is_modern {
            let filter = made(json!({ "resourceSubscriptions": [WATCHED] }));
            let mut subscription = self.session.listen(filter).await.map_err(text)?;
            self.call("test_trigger_resource_update", json!({})).await.map_err(text)?;
            let notification = subscription.next().await.map_err(text)?;
            return expect_in(WATCHED, &to_value(notification).map_err(text)?.to_string());
        }
        self.session.subscribe(made(json!({ "uri": WATCHED }))).await.map_err(text)?;
        self.call("test_trigger_resource_update", json!({})).await.map_err(text)?;
        until(|| self.host.heard.lock().unwrap().updated.iter().any(|uri| uri == WATCHED)).await;
        Ok(String::new())
    }

    async fn prompt(&self) -> Outcome {
        let given = json!({ "name": "test_prompt_with_arguments", "arguments": { "arg1": "one", "arg2": "two" } });
        let prompt = self.session.get_prompt(made(given)).await.map_err(text)?;
        expect_in("arg1='one', arg2='two'", &to_value(prompt).map_err(text)?.to_string())
    }

    async fn completion(&self) -> Outcome {
        let completed = self.session.complete_prompt_simple("test_prompt_with_arguments", "arg1", "par").await;
        expect(completed.map_err(text)?.contains(&"paris".to_string()), true)
    }

    async fn ping(&self) -> Outcome {
        let request = ClientRequest::PingRequest(Default::default());
        self.session.send_request(request).await.map(|_| String::new()).map_err(text)
    }

    async fn cancellation(&self) -> Outcome {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(text)?;
        let token = json!({ "token": now.as_nanos().to_string() });
        let request: ClientRequest =
            made(json!({ "method": "tools/call", "params": { "name": "wait_for_cancel", "arguments": token } }));
        let options = PeerRequestOptions::no_options();
        let waiting = self.session.send_cancellable_request(request, options).await.map_err(text)?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        waiting.cancel(None).await.map_err(text)?;
        expect(text_of(&self.call("was_cancelled", token).await.map_err(text)?), "cancelled".to_string())
    }

    async fn big_result(&self) -> Outcome {
        let result = self.call("big_result", json!({ "characters": BIG })).await.map_err(text)?;
        expect(text_of(&result).len(), BIG)
    }
}

fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
