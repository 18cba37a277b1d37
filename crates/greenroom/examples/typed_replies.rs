//! How does one actor give replies of different types?
//!
//! Each variant of its message that needs an answer carries its own reply port, which
//! [`ask`](greenroom::Address::ask) puts in. A port can be kept and answered later.
//!
//! `cargo run -p greenroom --example typed_replies`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{convert::Infallible, time::Duration};

use greenroom::{CallError, ReplyPort, prelude::*};

#[derive(Debug, PartialEq, Eq)]
struct Overdrawn {
    missing: u64,
}

enum Account {
    Deposit(u64),
    Balance(ReplyPort<u64>),
    Owner(ReplyPort<&'static str>),
    Withdraw(u64, ReplyPort<u64, Overdrawn>),
    /// Answered when there is this much.
    WhenAtLeast(u64, ReplyPort<()>),
}

#[derive(Default)]
struct Ledger {
    balance: u64,
    waiting: Vec<(u64, ReplyPort<()>)>,
}

impl Ledger {
    fn deposit(&mut self, amount: u64) {
        self.balance += amount;
        let balance = self.balance;
        for (_, port) in self.waiting.extract_if(.., |(least, _)| *least <= balance) {
            let _ = port.reply(()); // whoever has given up waiting misses nothing
        }
    }

    fn withdraw(&mut self, amount: u64, port: ReplyPort<u64, Overdrawn>) {
        match self.balance.checked_sub(amount) {
            Some(rest) => {
                self.balance = rest;
                let _ = port.reply(rest);
            }
            None => port.fail(Overdrawn { missing: amount - self.balance }),
        }
    }
}

impl Actor for Ledger {
    type Message = Account;
    type Reply = ();
    type Error = Infallible;

    async fn handle(
        &mut self,
        message: Account,
        _cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        match message {
            Account::Deposit(amount) => self.deposit(amount),
            Account::Balance(port) => drop(port.reply(self.balance)),
            Account::Owner(port) => drop(port.reply("Ada")),
            Account::Withdraw(amount, port) => self.withdraw(amount, port),
            Account::WhenAtLeast(amount, port) => self.waiting.push((amount, port)),
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let account = Pool::new(|_slot| Ledger::default()).workers(1).spawn().await?;
    account.send(Account::Deposit(50)).await?;

    let balance: u64 = account.ask(Account::Balance).await?;
    let owner: &str = account.ask(Account::Owner).await?;
    println!("{owner} has {balance}");
    assert_eq!((balance, owner), (50, "Ada"));

    let overdrawn = account.ask(|port| Account::Withdraw(80, port)).await;
    assert_eq!(overdrawn, Err(CallError::Failed(Overdrawn { missing: 30 })));
    println!("80 cannot be withdrawn: 30 are missing");

    let rich = account.ask(|port| Account::WhenAtLeast(80, port));
    let (rich, deposited) = tokio::join!(rich, account.send(Account::Deposit(30)));
    deposited?;
    rich?;
    println!("answered later: now there is enough");
    assert_eq!(account.ask(|port| Account::Withdraw(80, port)).await, Ok(0));

    account.stop(Stop::within(Duration::from_secs(1))).await;
    Ok(())
}
