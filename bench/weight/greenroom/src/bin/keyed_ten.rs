//! Ten actor types.

#[path = "../keyed.rs"]
mod keyed;

use keyed::sum;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut all = 0;
    all += sum::<0>().await?;
    all += sum::<1>().await?;
    all += sum::<2>().await?;
    all += sum::<3>().await?;
    all += sum::<4>().await?;
    all += sum::<5>().await?;
    all += sum::<6>().await?;
    all += sum::<7>().await?;
    all += sum::<8>().await?;
    all += sum::<9>().await?;
    println!("{all}");
    Ok(())
}
