//! A client on rmcp: `--mode auto` speaks 2026-07-28, `--mode legacy` sends `initialize`.
#![allow(deprecated)] // 2026-07-28 deprecates sampling, roots and logging; clients still have them

mod checks;
mod host;
mod report;

use checks::Checks;
use host::{made, Host};
use report::{report, run, text, CHECK_TIME};
use rmcp::{
    model::ProtocolVersion,
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
    ClientLifecycleMode, ClientServiceExt, RoleClient,
};
use serde_json::{from_str, json};

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

fn lifecycle() -> ClientLifecycleMode {
    if option("--mode").as_deref() == Some("legacy") {
        return ClientLifecycleMode::Initialize;
    }
    let newest: ProtocolVersion = made(json!("2026-07-28"));
    ClientLifecycleMode::Discover { preferred_versions: vec![newest] }
}

async fn connect(host: Host) -> Result<RunningService<RoleClient, Host>, String> {
    let target = option("--target").ok_or("--target is missing")?;
    if option("--transport").as_deref() != Some("stdio") {
        let transport = StreamableHttpClientTransport::from_uri(target);
        return host.serve_with_lifecycle(transport, lifecycle()).await.map_err(text);
    }
    let command: Vec<String> = from_str(&target).map_err(text)?;
    let mut process = tokio::process::Command::new(&command[0]);
    process.args(&command[1..]);
    let transport = TokioChildProcess::new(process).map_err(text)?;
    host.serve_with_lifecycle(transport, lifecycle()).await.map_err(text)
}

#[tokio::main]
async fn main() {
    let host = Host::default();
    let session = match tokio::time::timeout(CHECK_TIME, connect(host.clone())).await {
        Ok(Ok(session)) => session,
        Ok(Err(error)) => return report("connect", &Err(error)),
        Err(_) => return report("connect", &Err(format!("no connection in {CHECK_TIME:?}"))),
    };
    let revision = session.peer_info().map(|info| info.protocol_version.to_string()).unwrap_or_default();
    let is_modern = revision.as_str() >= "2026-07-28";
    report("connect", &Ok(revision));
    let checks = Checks { session, host, is_modern };
    checks.run().await;
    run("close", async { checks.session.cancel().await.map(|_| String::new()).map_err(text) }).await;
    std::process::exit(0);
}
