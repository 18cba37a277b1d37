//! One actor type.

#[path = "../keyed.rs"]
mod keyed;

use keyed::sum;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", sum::<0>().await?);
    Ok(())
}
