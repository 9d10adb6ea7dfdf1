use std::sync::{Arc, Mutex};

use rmcp::{
    model::*,
    service::{NotificationContext, RequestContext},
    ClientHandler, ErrorData, RoleClient,
};
use serde::de::DeserializeOwned;
use serde_json::{from_value, json, Value};

pub const ROOT: &str = "file:///home/ada";

/// What the host has heard, and how its user answers forms.
#[derive(Default)]
pub struct Heard {
    pub logged: Vec<Value>,
    pub progress: Vec<f64>,
    pub updated: Vec<String>,
    pub action: String,
}

/// Answers what servers ask, and keeps what they tell.
#[derive(Clone, Default)]
pub struct Host {
    pub heard: Arc<Mutex<Heard>>,
}

/// The model types cannot be written as literals outside their crate.
pub fn made<T: DeserializeOwned>(value: Value) -> T {
    from_value(value).expect("the value has the shape of its type")
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        made(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {}, "sampling": {}, "roots": {} },
            "clientInfo": { "name": "rust-client", "version": "1.0.0" },
        }))
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let content = json!({ "type": "text", "text": "Paris" });
        Ok(made(json!({ "role": "assistant", "model": "a-model", "content": content })))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(made(json!({ "roots": [{ "uri": ROOT, "name": "Home" }] })))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let action = self.heard.lock().unwrap().action.clone();
        if action != "accept" {
            return Ok(made(json!({ "action": action })));
        }
        Ok(made(json!({ "action": action, "content": { "username": "Ada", "email": "ada@example.com" } })))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.heard.lock().unwrap().progress.push(params.progress);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.heard.lock().unwrap().logged.push(params.data);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.heard.lock().unwrap().updated.push(params.uri);
    }
}
