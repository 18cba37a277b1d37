//! One actor type.

#[path = "../plain.rs"]
mod plain;

use plain::sum;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", sum::<0>().await?);
    Ok(())
}
