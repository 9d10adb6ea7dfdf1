use std::{fmt::Display, future::Future, time::Duration};

use serde_json::json;

pub const CHECK_TIME: Duration = Duration::from_secs(20);

pub type Outcome = Result<String, String>;

/// Prints one JSON line for a check: {"check", "ok", "detail"}.
pub fn report(check: &str, outcome: &Outcome) {
    let (Ok(detail) | Err(detail)) = outcome;
    let detail: String = detail.chars().take(500).collect();
    println!("{}", json!({ "check": check, "ok": outcome.is_ok(), "detail": detail }));
}

/// Runs one check within its time.
pub async fn run(check: &str, body: impl Future<Output = Outcome>) {
    let outcome = tokio::time::timeout(CHECK_TIME, body).await;
    report(check, &outcome.unwrap_or_else(|_| Err(format!("no result in {CHECK_TIME:?}"))));
}

pub fn text(error: impl Display) -> String {
    error.to_string()
}

pub fn expect<T: PartialEq + std::fmt::Debug>(value: T, wanted: T) -> Outcome {
    if value == wanted {
        return Ok(String::new());
    }
    Err(format!("expected {wanted:?}, got {value:?}"))
}

pub fn expect_in(wanted: &str, value: &str) -> Outcome {
    if value.contains(wanted) {
        return Ok(String::new());
    }
    Err(format!("expected {wanted:?} in {value:?}"))
}

/// Waits until the condition holds; the time of the check bounds it.
pub async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
